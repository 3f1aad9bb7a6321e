"""What user code is told when it is stopped, which signal it gets, and that its time to end never begins anew."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent.core.actions import Action, Halt, Tell
from agent.core.events import Armed, Fenced, Prepared, Recovered, Saved, Started, StoppingFound
from muster.domain.gangs.plan import Desired, Goal
from muster.domain.jobs.stopping.notice import StopNotice, StopOrder, StopReason, read_notice
from muster.domain.jobs.stopping.preemption import PreemptSignal
from tests.unit.agent.core.ledger_builders import MASTER, NOW, Agent, assignment, desired, execution, roster

ME = execution()
MINUTE = timedelta(minutes=1)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def stopped(reason: StopReason, grace: timedelta = MINUTE) -> Desired:
    return replace(desired(Goal.STOP), stop=StopOrder(reason=reason, grace=grace))


def halts(actions: list[Action]) -> list[Halt]:
    return [action for action in actions if isinstance(action, Halt)]


def saved(actions: list[Action]) -> list[datetime | None]:
    return [action.report.saved_at for action in actions if isinstance(action, Tell)]


@pytest.fixture
def agent() -> Agent:
    """An agent whose only execution runs, of a job that wants SIGUSR1 before it gives way."""
    agent = Agent()
    known = assignment(preempt_signal=PreemptSignal.USR1)
    agent.plan(Desired(execution=ME, goal=Goal.PREPARE, assignment=known))
    agent.step(Prepared(execution=ME, address="10.0.0.1", ports=(MASTER,)))
    agent.plan(desired(Goal.ARM), rosters=(roster(),))
    agent.step(Armed(execution=ME))
    agent.plan(desired(Goal.RUN))
    agent.step(Started(execution=ME))
    return agent


@pytest.fixture
def next_agent() -> Agent:
    """An agent that has found a running execution of a former life."""
    agent = Agent()
    agent.step(Recovered(execution=ME, started=True))
    return agent


@pytest.mark.parametrize("reason", StopReason)
def test_user_code_hears_why_it_is_stopped_and_when_it_is_killed(agent: Agent, reason: StopReason) -> None:
    [halt] = halts(agent.plan(stopped(reason)))
    assert halt.grace == MINUTE
    assert halt.notice == StopNotice(reason=reason, kill_at=NOW + MINUTE)


@pytest.mark.parametrize("reason", StopReason)
def test_the_signal_of_the_job_is_sent_where_the_job_comes_back_and_sigterm_elsewhere(
    agent: Agent, reason: StopReason
) -> None:
    comes_back = reason in {StopReason.PREEMPTED, StopReason.SUSPENDED, StopReason.DRAINED}
    [halt] = halts(agent.plan(stopped(reason)))
    assert halt.signal is (PreemptSignal.USR1 if comes_back else PreemptSignal.TERM)


def test_what_has_not_run_gets_no_notice() -> None:
    agent = Agent()
    agent.plan(desired(Goal.PREPARE))
    [halt] = halts(agent.plan(stopped(StopReason.PREEMPTED)))
    assert halt.notice is None


def test_what_is_not_wanted_any_more_is_stopped_as_if_somebody_had_asked_for_it(agent: Agent) -> None:
    [halt] = halts(agent.plan(removed=(ME,)))
    assert halt.notice == StopNotice(reason=StopReason.STOPPED, kill_at=later(10))


def test_the_next_agent_keeps_the_time_of_the_kill_and_sends_no_second_signal(next_agent: Agent) -> None:
    notice = StopNotice(reason=StopReason.PREEMPTED, kill_at=later(42))
    assert halts(next_agent.step(StoppingFound(execution=ME, notice=notice))) == [
        Halt(execution=ME, grace=timedelta(seconds=42), signal=None, notice=notice)
    ]
    assert halts(next_agent.whole_plan(replace(stopped(StopReason.PREEMPTED), assignment=assignment()))) == []


def test_a_kill_that_is_overdue_when_the_next_agent_starts_comes_at_once(next_agent: Agent) -> None:
    notice = StopNotice(reason=StopReason.STOPPED, kill_at=later(-5))
    [halt] = halts(next_agent.step(StoppingFound(execution=ME, notice=notice)))
    assert halt.grace == timedelta()


def test_a_node_that_is_cut_off_shortens_the_time_and_says_so(agent: Agent) -> None:
    agent.plan(stopped(StopReason.PREEMPTED))
    [halt] = halts(agent.step(Fenced(execution=ME, grace=timedelta(seconds=5), message="alone")))
    assert (halt.grace, halt.signal) == (timedelta(seconds=5), PreemptSignal.TERM)
    assert halt.notice == StopNotice(reason=StopReason.DISCONNECTED, kill_at=later(5))


def test_a_node_that_is_cut_off_late_does_not_put_the_kill_off(agent: Agent) -> None:
    agent.plan(stopped(StopReason.PREEMPTED, timedelta(seconds=3)))
    [halt] = halts(agent.step(Fenced(execution=ME, grace=timedelta(seconds=5), message="alone")))
    assert (halt.grace, halt.notice) == (
        timedelta(seconds=3),
        StopNotice(reason=StopReason.DISCONNECTED, kill_at=later(3)),
    )


def test_a_checkpoint_is_told_to_the_coordinator_and_never_goes_back(agent: Agent) -> None:
    assert saved(agent.step(Saved(execution=ME, at=later(60)))) == [later(60)]
    assert saved(agent.step(Saved(execution=ME, at=later(30)))) == []
    assert saved(agent.step(Saved(execution=ME, at=later(90)))) == [later(90)]


def test_a_checkpoint_that_is_older_than_the_start_is_of_somebody_else(agent: Agent) -> None:
    assert agent.step(Saved(execution=ME, at=later(-1))) == []


def test_a_checkpoint_in_the_grace_counts(agent: Agent) -> None:
    agent.plan(stopped(StopReason.PREEMPTED))
    assert saved(agent.step(Saved(execution=ME, at=later(20)))) == [later(20)]


def test_a_notice_is_read_as_it_was_written() -> None:
    notice = StopNotice(reason=StopReason.IDLE, kill_at=datetime(2026, 11, 25, 9, 30, 0, 250_000, UTC))
    assert notice.written() == b'{"reason": "idle", "kill_at": "2026-11-25T09:30:00.250+00:00"}\n'
    assert read_notice(notice.written()) == notice


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"{}", b'{"reason": "idle"}', b'{"reason": "x", "kill_at": "2026-11-25T09:30:00+00:00"}',
     b'{"reason": "idle", "kill_at": 7}', b'{"reason": "idle", "kill_at": "2026-11-25T09:30:00"}'],
)  # fmt: skip
def test_what_is_no_notice_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_notice(text)
