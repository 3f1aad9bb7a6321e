"""A page that stays open in somebody's browser, from its bytes to the end of the job, by a clock that a test sets."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from agent.attach.relayed.usage import Usage
from agent.core.watching.idle import UseSample, used_at
from coordinator.core.notes import WentUnused
from coordinator.views.jobs import job_view
from muster.domain.gangs.plan import Stage
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.interactive import Interactive, notice_before_end, use_told_every
from muster.domain.jobs.job import Timeouts
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, pass_time, spec

LIMIT = timedelta(minutes=20)
LOOK = use_told_every(LIMIT)
HOUR = timedelta(hours=1)


class Page:
    """A forwarded connection to an interactive job, and the job."""

    def __init__(self) -> None:
        self.world = World(("a", 8))
        self.job = self.world.running(spec(1, interactive=Interactive(), timeouts=Timeouts(idle=LIMIT)))
        self._execution = self.world.rank(self.job, 0).id
        self._usage = Usage()
        self._before = self._sample()

    def moves_bytes(self) -> None:
        """A WebSocket that is open says something, or hears it."""
        self._usage.note(self._execution, self.world.now)

    def time_passes(self, how_long: timedelta) -> Iterator[datetime]:
        """Each moment at which the agent looks, and tells the coordinator if the job was used."""
        end = self.world.now + how_long
        while self.world.now < end and self.phase is JobPhase.RUNNING:
            pass_time(self.world, int(LOOK.total_seconds()))
            yield self.world.now
            sample = self._sample()
            at = used_at(self._before, sample)
            self._before = sample
            if at is not None:
                self.world.tell(self.job, 0, Stage.RUNNING, used_at=at)

    @property
    def phase(self) -> JobPhase:
        return self.world.phase(self.job)

    @property
    def notices(self) -> list[datetime]:
        """The ends of which people were told."""
        return [note.ends_at for note in self.world.notes if isinstance(note, WentUnused)]

    def _sample(self) -> UseSample:
        """What the agent sees: a program that waits uses a percent of a CPU."""
        seconds = self.world.now.timestamp()
        attached_at = self._usage.last(self._execution)
        return UseSample(at=self.world.now, seconds=seconds, attached_at=attached_at, cpu_seconds=seconds / 100)


def test_a_page_whose_websocket_says_something_now_and_then_keeps_its_job_for_hours() -> None:
    page = Page()
    for at in page.time_passes(3 * HOUR):
        if at.minute % 7 == 0:
            page.moves_bytes()

    assert (page.phase, page.notices) == (JobPhase.RUNNING, [])


def test_a_page_whose_websocket_is_open_and_silent_for_an_hour_loses_its_job_after_a_notice() -> None:
    page = Page()
    for _ in page.time_passes(HOUR / 3):
        page.moves_bytes()
    last_used = page.world.now
    for _ in page.time_passes(HOUR):
        pass

    assert page.phase is JobPhase.STOPPING
    [end] = page.notices
    assert last_used + LIMIT <= end <= last_used + LIMIT + 2 * LOOK
    assert end <= page.world.now < end + LOOK
    page.world.tell(page.job, 0, Stage.EXITED, exit=Exit(code=143))
    assert (page.phase, job_view(page.world.cluster, page.job).summary) == (JobPhase.STOPPED, "stopped: idle for 20m")


def test_a_page_that_says_something_after_the_notice_keeps_its_job() -> None:
    page = Page()
    for _ in page.time_passes(HOUR):
        if page.notices:
            page.moves_bytes()
            break
    [end] = page.notices
    assert end - page.world.now <= notice_before_end(LIMIT)
    for _ in page.time_passes(2 * notice_before_end(LIMIT)):
        pass

    assert page.world.now > end
    assert (page.phase, page.notices) == (JobPhase.RUNNING, [end])
