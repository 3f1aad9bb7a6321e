"""User code on a node that is cut off is dead in time, and not before it must be."""

from datetime import timedelta

from agent.core.actions import AskPeers
from agent.core.events import Exited, Started
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Goal, Stage
from muster.domain.jobs.failure import Exit, FailureKind
from tests.unit.agent.core.fence_builders import (
    ALL_WITHOUT,
    ALONE,
    ATTEMPT,
    ME,
    STOPPER,
    WITNESSES,
    A,
    B,
    FencedAgent,
    asks,
    cuts,
)


def test_a_deadline_counts_from_when_the_acknowledged_message_was_sent() -> None:
    agent = FencedAgent(STOPPER).run()
    agent.contact(sent_at=60.0, heard_at=69.0)
    assert agent.deadline() == 141.0


def test_an_older_acknowledgement_does_not_take_a_contact_back() -> None:
    agent = FencedAgent(STOPPER).run()
    agent.contact(20.0)
    agent.contact(10.0, heard_at=21.0)
    assert agent.deadline() == 101.0


def test_it_is_stopped_by_its_grace_before_the_deadline_and_not_earlier() -> None:
    agent = FencedAgent(STOPPER, grace=4.0).run()
    assert cuts(agent.pass_time(76.999)) == []
    assert agent.fencing.wake_at() == 77.0
    assert [cut.grace for cut in cuts(agent.pass_time(77.0))] == [timedelta(seconds=4)]


def test_a_longer_grace_is_cut_to_ten_seconds() -> None:
    agent = FencedAgent(STOPPER, grace=600.0).run()
    assert cuts(agent.pass_time(70.999)) == []
    assert [cut.grace for cut in cuts(agent.pass_time(71.0))] == [timedelta(seconds=10)]


def test_what_is_noticed_late_gets_only_the_grace_that_is_left() -> None:
    agent = FencedAgent(STOPPER).run()
    assert [cut.grace for cut in cuts(agent.pass_time(78.0))] == [timedelta(seconds=3)]


def test_what_is_overdue_gets_no_grace() -> None:
    agent = FencedAgent(STOPPER).run()
    assert [cut.grace for cut in cuts(agent.pass_time(500.0))] == [timedelta(0)]


def test_a_contact_after_the_deadline_comes_too_late() -> None:
    """A node that slept: what it did not kill in its sleep dies before anything else."""
    agent = FencedAgent(STOPPER).run()
    assert [cut.grace for cut in cuts(agent.contact(sent_at=300.0))] == [timedelta(0)]


def test_a_contact_just_before_the_deadline_puts_it_off() -> None:
    agent = FencedAgent(STOPPER, grace=0.0).run()
    assert agent.contact(sent_at=80.9) == []
    assert agent.deadline() == 161.9


def test_what_is_being_stopped_is_not_reprieved_by_a_contact() -> None:
    agent = FencedAgent(STOPPER).run()
    agent.pass_time(71.0)
    agent.contact(72.0)
    assert agent.deadline() == 81.0
    assert agent.pass_time(80.0) == []


def test_alone_and_kept_it_has_no_deadline_and_asks_nobody() -> None:
    agent = FencedAgent(ALONE).run()
    assert agent.pass_time(1_000_000.0) == []
    assert (agent.deadline(), agent.fencing.wake_at()) == (None, None)


def test_questions_begin_when_the_last_contact_is_a_lease_old() -> None:
    agent = FencedAgent().run()
    assert agent.fencing.wake_at() == 30.0
    assert agent.pass_time(29.999) == []
    assert agent.pass_time(30.0) == [AskPeers(attempt=ATTEMPT, asked_at=30.0, witnesses=WITNESSES, key=b"secret")]


def test_questions_are_asked_again_every_two_seconds() -> None:
    agent = FencedAgent().run()
    agent.pass_time(30.0)
    assert agent.pass_time(31.999) == []
    assert agent.fencing.wake_at() == 32.0
    assert [ask.asked_at for ask in asks(agent.pass_time(32.0))] == [32.0]


def test_executions_of_one_attempt_ask_together() -> None:
    agent = FencedAgent().run().run(rank=1)
    assert len(asks(agent.pass_time(30.0))) == 1


def test_a_job_that_stops_asks_nobody() -> None:
    agent = FencedAgent(STOPPER).run()
    assert agent.pass_time(60.0) == []


def test_a_permit_counts_from_the_question_and_not_from_the_answer() -> None:
    agent = FencedAgent().run()
    agent.answers(asked_at=70.0, words=ALL_WITHOUT, at=70.9)
    assert agent.deadline() == 90.0


def test_a_permit_does_not_take_time_away() -> None:
    agent = FencedAgent().run()
    agent.answers(asked_at=40.0, words=ALL_WITHOUT)
    assert agent.deadline() == 81.0


def test_an_older_round_that_ends_later_does_not_shorten_a_permit() -> None:
    agent = FencedAgent().run()
    agent.answers(asked_at=70.0, words=ALL_WITHOUT, at=71.0)
    agent.answers(asked_at=68.0, words=ALL_WITHOUT, at=71.5)
    assert agent.deadline() == 90.0


def test_one_doubt_among_the_witnesses_is_no_permit() -> None:
    for word in (PeerWord.CONNECTED, PeerWord.OVER):
        agent = FencedAgent().run()
        agent.answers(asked_at=70.0, words={A: PeerWord.WITHOUT, B: word})
        assert agent.deadline() == 81.0


def test_one_missing_answer_is_no_permit() -> None:
    agent = FencedAgent().run()
    agent.answers(asked_at=70.0, words={A: PeerWord.WITHOUT})
    assert agent.deadline() == 81.0


def test_a_permit_that_was_given_holds_to_its_end() -> None:
    agent = FencedAgent().run()
    agent.answers(asked_at=69.0, words=ALL_WITHOUT)
    agent.answers(asked_at=70.0, words={A: PeerWord.CONNECTED, B: PeerWord.WITHOUT})
    assert agent.deadline() == 89.0


def test_an_answer_after_the_deadline_comes_too_late() -> None:
    agent = FencedAgent(grace=0.0).run()
    agent.answers(asked_at=80.5, words=ALL_WITHOUT, at=81.0)
    assert agent.deadline() == 81.0
    assert len(agent.halts) == 1


def test_as_long_as_all_are_without_the_coordinator_nobody_is_stopped() -> None:
    agent = FencedAgent().run()
    for second in range(30, 10_000, 2):
        assert asks(agent.pass_time(float(second)))
        agent.answers(float(second), ALL_WITHOUT, at=second + 1.0)
    assert agent.halts == []


def test_a_stop_that_is_too_patient_is_made_shorter() -> None:
    agent = FencedAgent(STOPPER, grace=600.0).run()
    agent.plan(Goal.STOP)
    agent.pass_time(71.0)
    assert [halt.grace for _, halt in agent.halts] == [timedelta(seconds=10)]


def test_a_start_under_way_is_finished_and_then_stopped() -> None:
    agent = FencedAgent(STOPPER).start()
    assert cuts(agent.pass_time(75.0)) == []
    assert [halt.grace for halt in cuts(agent.take(Started(execution=ME)))] == [timedelta(seconds=6)]


def test_nothing_is_started_when_it_would_have_to_be_stopped() -> None:
    agent = FencedAgent(STOPPER).start()
    assert agent.fencing.may_start(ME, 70.999)
    assert not agent.fencing.may_start(ME, 71.0)


def test_nothing_is_started_before_there_was_any_contact() -> None:
    assert not FencedAgent(STOPPER, contact=None).start().fencing.may_start(ME, 1.0)


def test_alone_and_kept_it_may_start_whenever_it_is_told_to() -> None:
    assert FencedAgent(ALONE).start().fencing.may_start(ME, 1_000_000.0)


def test_its_end_is_the_nodes_fault_and_says_who_did_not_answer() -> None:
    agent = FencedAgent().run()
    agent.answers(asked_at=70.0, words={A: PeerWord.WITHOUT})
    agent.pass_time(81.0)
    agent.take(Exited(execution=ME, exit=Exit(code=143)))
    [report] = agent.ledger.reports()
    assert report.failure is not None
    assert (report.stage, report.failure.kind) == (Stage.EXITED, FailureKind.NODE_LOST)
    assert report.failure.message == (
        "stopped by its agent: no word from the coordinator for 81 s "
        "and node b, which has a part in the job, does not answer"
    )


def test_an_end_with_exit_code_0_is_no_success_when_it_was_brought_about() -> None:
    agent = FencedAgent(STOPPER).run()
    agent.pass_time(71.0)
    agent.take(Exited(execution=ME, exit=Exit(code=0)))
    assert [(report.stage, report.exit) for report in agent.ledger.reports()] == [(Stage.FAILED, Exit(code=0))]


def test_the_message_of_a_job_that_stops_says_so() -> None:
    agent = FencedAgent(STOPPER).run()
    agent.pass_time(71.0)
    assert agent.messages == [
        "stopped by its agent: no word from the coordinator for 71 s, and the job says on_disconnect: stop"
    ]


def test_once_it_has_ended_nothing_is_noted_and_nobody_woken() -> None:
    agent = FencedAgent().run()
    agent.take(Exited(execution=ME, exit=Exit(code=1)))
    assert agent.pass_time(90.0) == []
    assert (agent.deadline(), agent.fencing.wake_at()) == (None, None)


def test_each_execution_is_cut_off_once() -> None:
    agent = FencedAgent(STOPPER).run()
    assert len(cuts(agent.pass_time(71.0))) == 1
    assert agent.pass_time(90.0) == []
