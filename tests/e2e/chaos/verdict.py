"""What must hold of every job once all is at rest."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator.core.attempts.restarts import Restart, verdict
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import Failure, FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import NO_EXIT_RULES
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView, LogLine
from tests.e2e.chaos.faults import ENGINES, Kind, Spell
from tests.e2e.chaos.fences import Course
from tests.e2e.chaos.user_code import Deeds, Stamp, deeds, overlaps, stamps

NUMBERED = {"stdout": re.compile(rb"out (\d+)"), "stderr": re.compile(rb"err (\d+)")}
MARKER = b"[muster] "

UNPROVEN = "no other node can tell that it does not"
"""Why a job is given up whose rules allow another attempt, in its summary."""

TROUBLED_FOR = 60.0
"""Seconds after its end for which an absence of an engine may cost lines: engines start slowly on a busy machine."""


LATE = 0.25
"""Seconds by which clocks are read and rounded differently."""

KILLED = 137
"""The exit code of a program that SIGKILL has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job at rest, with all that is known of it."""

    view: JobView
    stamps: Path
    stopped_at_attempt: int
    """0: nobody has stopped it."""
    lines: Mapping[int, Sequence[LogLine]]
    """What each attempt printed."""
    spells: Sequence[Spell]
    """What was broken."""
    struck: Collection[str] = ()
    """Executions of which a process was killed."""
    booted_at: float = 0.0
    """When the clock of the stamps was 0, in seconds since the epoch."""

    def wrongs(self) -> Iterator[str]:
        """What must not be, in words."""
        made = stamps(self.stamps)
        for wrong in (*overlaps(made), *self._ending(made), *self._afterwards(made), *self._executions(made)):
            yield f"{self.view.spec.name} ({self.view.id}): {wrong}"
        for course in self.courses():
            for wrong in (*course.overruns(), *(() if self.stopped_at_attempt else course.needlessly_stopped())):
                yield f"{self.view.spec.name} ({self.view.id}): attempt {course.attempt.number} {wrong}"

    def courses(self) -> Iterator[Course]:
        """The job's attempts, with what their workers did."""
        made = stamps(self.stamps)
        for attempt in self.view.attempts:
            known = {each.rank: deeds(made, attempt.number, each.rank) for each in attempt.executions}
            yield Course(view=self.view, attempt=attempt, deeds=known, spells=self.spells)

    def _ending(self, made: Sequence[Stamp]) -> Iterator[str]:
        view = self.view
        if not view.phase.ended:
            yield f"has not ended: {view.summary}"
        if view.phase is JobPhase.FAILED and (view.failure is None or not view.failure.message):
            yield "failed, and nobody says why"
        if view.phase is JobPhase.STOPPED and not self.stopped_at_attempt:
            yield "is stopped, and nobody wanted that"
        if self.stopped_at_attempt and view.attempts[-1].number > self.stopped_at_attempt:
            yield f"was told to stop at attempt {self.stopped_at_attempt} and went on to {view.attempts[-1].number}"
        yield from self._restarts(made)

    def _afterwards(self, made: Sequence[Stamp]) -> Iterator[str]:
        """What went on after the end; of what is lost nobody has confirmed it, and only another attempt would wait."""
        if self.view.ended_at is None or any(
            execution.state is State.LOST for execution in self.view.attempts[-1].executions
        ):
            return
        ended = self.view.ended_at.timestamp() - self.booted_at
        late = [stamp for stamp in made if stamp.at > ended + LATE]
        if late:
            yield f"went on for {late[-1].at - ended:.2f} s after its end ({len(late)} stamps, first {late[0]})"

    def _restarts(self, made: Sequence[Stamp]) -> Iterator[str]:
        """Another attempt whenever the job's rules say so, and only then."""
        failures = [attempt.failure for attempt in self.view.attempts if attempt.failure is not None]
        for count in range(1, len(self.view.attempts)):
            if len(failures) < count or not self._goes_again(failures[:count]):
                yield f"attempt {count + 1} began against the rules"
        if self.view.phase is not JobPhase.FAILED or self.stopped_at_attempt or not failures:
            return
        if self._goes_again(failures) and not self._unproven(made):
            yield f"gave up though it may be started again: {self.view.summary}"

    def _goes_again(self, failures: Sequence[Failure]) -> bool:
        """Whether another attempt follows by the rules of the job, and of the role of the rank that failed last."""
        spec, rank = self.view.spec, failures[-1].rank
        rules = NO_EXIT_RULES if rank is None else spec.role_of(rank).exit_codes
        return isinstance(verdict(spec.restarts, failures, rules), Restart)

    def _unproven(self, made: Sequence[Stamp]) -> bool:
        """Whether nobody could tell that the last attempt does not run on: the only reason not to begin anew."""
        attempt = self.view.attempts[-1]
        lost = {execution.node for execution in attempt.executions if execution.state is State.LOST}
        witnesses = {
            execution.node
            for execution in attempt.executions
            if execution.state is not State.SUCCEEDED and deeds(made, attempt.number, execution.rank).code != 0
        }
        ran = attempt.released_at is not None and self.view.spec.on_disconnect is OnDisconnect.KEEP
        return UNPROVEN in self.view.summary and ran and bool(lost) and not witnesses - lost

    def _executions(self, made: Sequence[Stamp]) -> Iterator[str]:
        for attempt in self.view.attempts:
            by_rank: dict[int, list[LogLine]] = defaultdict(list)
            for line in self.lines[attempt.number]:
                by_rank[line.rank].append(line)
            for execution in attempt.executions:
                known = deeds(made, attempt.number, execution.rank)
                wrongs = (
                    *_ends(execution, attempt, known, struck=execution.id in self.struck),
                    *_log(execution, known, by_rank[execution.rank]),
                    *self._markers(execution, known, by_rank[execution.rank]),
                )
                for wrong in wrongs:
                    yield f"attempt {attempt.number} rank {execution.rank} on {execution.node}: {wrong}"

    def _markers(self, execution: ExecutionView, known: Deeds, lines: Sequence[LogLine]) -> Iterator[str]:
        """Words about missing lines are for where what keeps them was killed or had no space, and nowhere else."""
        if execution.id in self.struck:
            return
        troubles = [
            spell
            for spell in self.spells
            if spell.fault.place == execution.node and spell.fault.kind in {*ENGINES, Kind.SUPERVISOR, Kind.DISK}
        ]
        if any(each.overlaps(known.first_at - TROUBLED_FOR, known.last_at + TROUBLED_FOR) for each in troubles):
            return
        for marker in {line.text.decode() for line in lines if line.text.startswith(MARKER)}:
            yield f"its log says {marker!r}, and nothing was broken that could cost lines"


def _ends(execution: ExecutionView, attempt: AttemptView, known: Deeds, *, struck: bool) -> Iterator[str]:
    """How it ended, beside what it says itself."""
    if known.starts > 1:
        yield f"user code was started {known.starts} times"
    if known.starts and attempt.released_at is None:
        yield "user code ran before the release"
    match execution.state:
        case State.SUCCEEDED:
            if known.code != 0:
                yield f"succeeded, but its own last word is exit code {known.code}"
        case State.FAILED:
            yield from _failed(execution, known, struck=struck)
        case State.STOPPED | State.LOST:
            pass
        case _:
            yield f"is {execution.state} at the end"
    exit_ = execution.exit
    if exit_ is not None and known.code is not None and exit_.code not in {known.code, KILLED, 143}:
        yield f"exit code {exit_.code} is reported, {known.code} is true"


def _failed(execution: ExecutionView, known: Deeds, *, struck: bool) -> Iterator[str]:
    failure = execution.failure
    if struck and failure is not None and failure.exit is not None and failure.exit.code == KILLED:
        return
    if failure is None:
        yield "failed, and nobody says why"
    elif failure.kind.user and failure.exit is not None and known.code != failure.exit.code:
        yield f"{failure.message}, but its own last word is exit code {known.code}"
    elif failure.kind is FailureKind.NODE_LOST and known.code is not None:
        yield f"ended by itself with exit code {known.code}, and counts as lost: {failure.message}"


def _log(execution: ExecutionView, known: Deeds, lines: Sequence[LogLine]) -> Iterator[str]:
    """Numbered lines without a gap or double, as many as were printed; where some are missing a marker says so."""
    if execution.node is not None and not execution.log_complete:
        yield "its log never became complete"
    markers = [line.text for line in lines if line.text.startswith(MARKER)]
    for stream, pattern in NUMBERED.items():
        printed = [line.text for line in lines if line.stream == stream and not _extra(line.text)]
        found = [pattern.fullmatch(text) for text in printed]
        if None in found:
            yield f"{stream} has strange lines: {printed[found.index(None)]!r}"
            continue
        numbers = [int(match[1]) for match in found if match is not None]
        if numbers != sorted(set(numbers)):
            yield f"{stream} has lines twice or out of order: {_first_step(numbers, back=True)}"
        if markers:
            continue
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"{stream} has a gap and no marker: {_first_step(numbers, back=False)}"
        elif len(numbers) < known.lines:
            yield f"{stream} ends after {len(numbers)} of {known.lines} lines, and no marker"
        elif known.ended and len(numbers) > known.lines:
            yield f"{stream} has {len(numbers)} lines, {known.lines} were printed"


def _extra(text: bytes) -> bool:
    """What workers did not print: our markers, and what a shell says when SIGTERM hits the program it waits for."""
    return text.startswith(MARKER) or text == b"Terminated"


def _first_step(numbers: Sequence[int], *, back: bool) -> str:
    """Where the numbers do not go on by one."""
    for before, after in zip((0, *numbers), numbers, strict=False):
        if (after <= before) if back else (after != before + 1):
            return f"{after} after {before} (of {len(numbers)})"
    return "nowhere"
