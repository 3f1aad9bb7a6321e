"""Whether a job that failed is started again, by its rules and what happened so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from muster.domain.jobs.failure import Failure, FailureKind
from muster.domain.jobs.restart import NO_EXIT_RULES, ExitRules, RestartPolicy

LONGEST_RESTART_PAUSE = timedelta(minutes=5)
"""Between two attempts, however often it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Another attempt, after a pause."""

    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """No other attempt, and why; empty where the job never asked for any."""

    reason: str = ""


UNCOUNTED = frozenset({FailureKind.DRAINED, FailureKind.PREEMPTED, FailureKind.SUSPENDED})
"""What others did to a job: not counted against it, and not its fault."""

_NOT_AGAIN = {
    FailureKind.COMMAND_NOT_FOUND: "a command that is not there will not be there the next time",
    FailureKind.INVALID_OPTION: "the job asks for something that the node does not allow",
    FailureKind.TOO_LARGE: "it would be as large the next time",
    FailureKind.TIME_LIMIT: "the job has used up its time",
    FailureKind.QUEUE_TIMEOUT: "it was in the queue for as long as it may be",
}


def verdict(
    policy: RestartPolicy, failures: Sequence[Failure], exit_codes: ExitRules = NO_EXIT_RULES
) -> Restart | GiveUp:
    """What follows from the first failures of all attempts so far, oldest first; the last one is what just happened.

    `exit_codes` are the rules of the role that failed last.
    """
    last = failures[-1]
    if last.kind in UNCOUNTED:
        return Restart(pause=timedelta())
    failures = [failure for failure in failures if failure.kind not in UNCOUNTED]
    limit = policy.limit if last.kind.user else policy.infrastructure
    if limit == 0:
        return GiveUp()
    refusal = _refusal(exit_codes, last)
    if refusal is not None:
        return GiveUp(reason=refusal)
    alike = sum(failure.kind.user == last.kind.user for failure in failures)
    if alike > limit:
        whose = "failures of its code" if last.kind.user else "failures of the infrastructure"
        return GiveUp(reason=f"it was restarted {_times(limit)} after {whose}, as often as the job allows")
    return Restart(pause=_pause(policy, len(failures)))


def _refusal(rules: ExitRules, failure: Failure) -> str | None:
    """Why this failure is not worth another attempt."""
    if failure.kind in _NOT_AGAIN:
        return _NOT_AGAIN[failure.kind]
    if failure.exit is None or not failure.kind.user:
        return None
    code = failure.exit.code
    if code in rules.fail:
        return f"exit code {code} ends the job (exit_codes.fail: {rules.fail})"
    if rules.restart is not None and code not in rules.restart:
        return f"exit code {code} is not one to restart on (exit_codes.restart: {rules.restart})"
    return None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _pause(policy: RestartPolicy, failed: int) -> timedelta:
    if failed <= 1:
        return timedelta()
    doublings = min(failed - 2, 20)  # beyond that it is the longest pause anyway
    return min(policy.backoff * (1 << doublings), LONGEST_RESTART_PAUSE)
