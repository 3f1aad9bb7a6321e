"""What inputs hold for a job: what the first of its nodes has found, and what every other one is held to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

from muster.domain.data.job_input import FoundInput, JobInput, without_query
from muster.domain.fleet.secret import DeliveredSecret, SecretKind
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.quantity import format_duration, size_text

AskForInputs = Callable[[ExecutionId, Sequence[FoundInput], Sequence[str]], Awaitable[Sequence[FoundInput]]]
"""Tells the coordinator what was found, and gets what counts for the URLs that are named; raises ExecutionError."""


AskForKeys = Callable[[ExecutionId], Awaitable[Sequence[DeliveredSecret]]]
"""What opens the stores and servers of an execution's data; raises ExecutionError."""


async def what_opens(ask: AskForKeys, execution: ExecutionId, each: JobInput, kind: SecretKind) -> Mapping[str, bytes]:
    """The values of the secret that opens an input; raises ExecutionError where there is none any more."""
    for given in await ask(execution):
        if given.name == each.secret and given.kind is kind:
            return given.values
    message = f"inputs.{each.name}: the project has no secret {each.secret!r} of kind {kind} any more"
    raise ExecutionError(FailureKind.INVALID_OPTION, message)


async def what_counts(
    ask: AskForInputs, execution: ExecutionId, origin: str, found: Sequence[FoundInput]
) -> FoundInput | None:
    """What an input holds for its job, after what was found here; None: nobody has said so yet."""
    return next((said for said in await ask(execution, found, (origin,)) if said.url == origin), None)


def refuse_unwanted(each: JobInput, sha256: str) -> None:
    """Raise ExecutionError where a job has said that an input holds something else."""
    if each.sha256 and sha256 != each.sha256:
        url = each.url if each.is_in_bucket else without_query(each.url)  # a `?` is a wildcard in names of objects
        message = f"inputs.{each.name}: {url} holds {sha256}, and the job wants {each.sha256} (sha256)"
        raise ExecutionError(FailureKind.DATA_REFUSED, message)


def no_more_came(each: JobInput, error: Exception, there: int, stall: timedelta) -> ExecutionError:
    """The failure of an input of which nothing has come for too long."""
    return ExecutionError(
        FailureKind.DATA,
        f"inputs.{each.name}: {error}; {size_text(there)} are here, and no more came in {format_duration(stall)} "
        "(timeouts.stall)",
    )
