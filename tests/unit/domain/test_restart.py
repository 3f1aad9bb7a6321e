"""What follows a failure: another attempt or the end, by the job's rules."""

from datetime import timedelta

import pytest

from coordinator.core.attempts.restarts import GiveUp, Restart, verdict
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.restart import ExitCodes, ExitRules, RestartPolicy, parse_exit_codes

NOT_AGAIN = [
    FailureKind.COMMAND_NOT_FOUND,
    FailureKind.INVALID_OPTION,
    FailureKind.TIME_LIMIT,
]
AT_ONCE = Restart(pause=timedelta())


def exited(code: int) -> Failure:
    return Failure(kind=FailureKind.EXIT_CODE, message="", exit=Exit(code=code))


GONE = Failure(kind=FailureKind.RUNTIME, message="Docker was stopped")


def test_a_job_that_says_nothing_is_not_restarted() -> None:
    assert verdict(RestartPolicy(), [exited(1)]) == GiveUp()
    assert verdict(RestartPolicy(), [GONE]) == GiveUp()


def test_the_first_restart_comes_at_once_and_the_next_ones_after_growing_pauses() -> None:
    policy = RestartPolicy(limit=9, backoff=timedelta(seconds=5))
    pauses = [verdict(policy, [exited(1)] * count) for count in range(1, 5)]
    assert pauses == [AT_ONCE, *(Restart(pause=timedelta(seconds=each)) for each in (5, 10, 20))]


def test_no_pause_is_longer_than_five_minutes() -> None:
    policy = RestartPolicy(limit=1000, backoff=timedelta(hours=1))
    assert verdict(policy, [exited(1)] * 900) == Restart(pause=timedelta(minutes=5))


def test_failures_of_the_code_are_counted_apart_from_those_of_the_infrastructure() -> None:
    policy = RestartPolicy(limit=1, infrastructure=2, backoff=timedelta())
    assert verdict(policy, [exited(1), GONE, GONE]) == AT_ONCE
    assert isinstance(verdict(policy, [exited(1), GONE, GONE, GONE]), GiveUp)
    assert isinstance(verdict(policy, [GONE, exited(1), exited(1)]), GiveUp)


def test_giving_up_says_how_often_it_was_tried() -> None:
    given_up = verdict(RestartPolicy(limit=1), [exited(1), exited(1)])
    reason = "it was restarted once after failures of its code, as often as the job allows"
    assert given_up == GiveUp(reason=reason)


def test_an_exit_code_that_ends_the_job_is_not_restarted() -> None:
    policy, rules = RestartPolicy(limit=5), ExitRules(fail=parse_exit_codes("2,64-78"))
    reason = "exit code 65 ends the job (exit_codes.fail: 2,64-78)"
    assert verdict(policy, [exited(65)], rules) == GiveUp(reason=reason)
    assert verdict(policy, [exited(3)], rules) == AT_ONCE


def test_a_code_that_ends_the_job_wins_over_one_to_restart_on() -> None:
    rules = ExitRules(restart=parse_exit_codes("1-5"), fail=parse_exit_codes("3"))
    assert verdict(RestartPolicy(limit=5), [exited(2)], rules) == AT_ONCE
    assert isinstance(verdict(RestartPolicy(limit=5), [exited(3)], rules), GiveUp)


def test_only_listed_exit_codes_are_restarted() -> None:
    policy, rules = RestartPolicy(limit=5), ExitRules(restart=parse_exit_codes("137"))
    assert verdict(policy, [exited(137)], rules) == AT_ONCE
    assert isinstance(verdict(policy, [exited(1)], rules), GiveUp)


def test_exit_codes_do_not_matter_for_failures_of_the_infrastructure() -> None:
    policy = RestartPolicy(limit=5, infrastructure=5)
    assert verdict(policy, [GONE], ExitRules(restart=parse_exit_codes("1"))) == AT_ONCE


def test_a_lost_node_is_a_failure_of_the_infrastructure() -> None:
    lost = Failure(kind=FailureKind.NODE_LOST, message="")
    assert verdict(RestartPolicy(limit=1, infrastructure=1), [lost]) == AT_ONCE
    assert isinstance(verdict(RestartPolicy(limit=1), [lost]), GiveUp)


@pytest.mark.parametrize("kind", NOT_AGAIN)
def test_what_would_fail_again_is_not_restarted(kind: FailureKind) -> None:
    given_up = verdict(RestartPolicy(limit=5, infrastructure=5), [Failure(kind=kind, message="")])
    assert isinstance(given_up, GiveUp)
    assert given_up.reason


def test_exit_codes_are_read_and_written_as_ranges() -> None:
    codes = parse_exit_codes("5, 3-4, 1,4-5")
    assert str(codes) == "1,3-5"
    assert [code for code in range(8) if code in codes] == [1, 3, 4, 5]
    assert 1 not in ExitCodes()


@pytest.mark.parametrize("text", ["", "0", "256", "5-3", "a", "1,,2", "-1", "1-"])
def test_what_are_no_exit_codes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"exit code|does not lie"):
        parse_exit_codes(text)
