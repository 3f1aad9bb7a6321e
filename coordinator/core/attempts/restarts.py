"""Whether a job that failed is started again, by its rules and what happened so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from muster.domain.jobs.failure import Failure, FailureKind
from muster.domain.jobs.restart import RestartPolicy

LONGEST_PAUSE = timedelta(minutes=5)
"""Between two attempts, however often it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Another attempt, after a pause."""

    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """No other attempt, and why; empty where the job never asked for any."""

    reason: str = ""


_NOT_AGAIN = {
    FailureKind.COMMAND_NOT_FOUND: "a command that is not there will not be there the next time",
    FailureKind.INVALID_OPTION: "the job asks for something that the node does not allow",
    FailureKind.TOO_LARGE: "it would be as large the next time",
    FailureKind.TIME_LIMIT: "the job has used up its time",
}


def verdict(policy: RestartPolicy, failures: Sequence[Failure]) -> Restart | GiveUp:
    """What follows from the first failures of all attempts so far, oldest first; the last one is what just happened."""
    last = failures[-1]
    if last.kind is FailureKind.DRAINED:
        return Restart(pause=timedelta())  # an operator's doing: not counted against the job, and not its choice
    failures = [failure for failure in failures if failure.kind is not FailureKind.DRAINED]
    limit = policy.limit if last.kind.user else policy.infrastructure
    if limit == 0:
        return GiveUp()
    refusal = _refusal(policy, last)
    if refusal is not None:
        return GiveUp(reason=refusal)
    alike = sum(failure.kind.user == last.kind.user for failure in failures)
    if alike > limit:
        whose = "failures of its code" if last.kind.user else "failures of the infrastructure"
        return GiveUp(reason=f"it was restarted {limit} times after {whose}, as often as the job allows")
    return Restart(pause=_pause(policy, len(failures)))


def _refusal(policy: RestartPolicy, failure: Failure) -> str | None:
    """Why this failure is not worth another attempt."""
    if failure.kind in _NOT_AGAIN:
        return _NOT_AGAIN[failure.kind]
    if failure.exit is None or not failure.kind.user:
        return None
    code = failure.exit.code
    if code in policy.fail_on:
        return f"exit code {code} ends the job (restarts.fail_on: {policy.fail_on})"
    if policy.restart_on is not None and code not in policy.restart_on:
        return f"exit code {code} is not one to restart on (restarts.restart_on: {policy.restart_on})"
    return None


def _pause(policy: RestartPolicy, failed: int) -> timedelta:
    if failed <= 1:
        return timedelta()
    doublings = min(failed - 2, 20)  # beyond that it is the longest pause anyway
    return min(policy.backoff * (1 << doublings), LONGEST_PAUSE)
