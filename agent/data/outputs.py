"""The outputs of the executions of one node, for which nothing is loaded until the first job leaves some."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent.data.live.place import OutputsPlace
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import ExecutionOutputs, OutputsPass
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.lean.absent import AGENTS_DO_WITHOUT, take_back
from muster.rpc.channel import Credentials

if TYPE_CHECKING:  # it loads OpenSSL, for its hashes
    from agent.data.storing import AskToStore, OutputsStoring


async def nowhere_to_store(execution: ExecutionId) -> OutputsPass:
    """No depot, for agents without a coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"nobody tells this agent where the outputs of {execution} go")


class OutputStore:
    """Has what executions leave stored in the depot."""

    def __init__(
        self,
        ask: "AskToStore" = nowhere_to_store,
        coordinator: Callable[[], str] = str,
        credentials: Callable[[], Credentials] = Credentials,
    ) -> None:
        """Touch nothing yet; what `coordinator` and `credentials` give is asked again for each connection."""
        self._ask = ask
        self._coordinator = coordinator
        self._credentials = credentials
        self._storing: OutputsStoring | None = None

    async def store(
        self,
        execution: ExecutionId,
        place: OutputsPlace,
        told: Callable[[ExecutionOutputs], None],
    ) -> ExecutionOutputs:
        """Store what lies in an outputs directory; what became of it.

        `told` hears how much it is before it is stored.
        """
        return await self._loaded().store(execution, place, told)

    async def store_live(
        self, execution: ExecutionId, place: OutputsPlace, terms: OutputTerms
    ) -> ExecutionOutputs | None:
        """Store what nobody may write to any more while user code runs; what is stored so far, None: nothing.

        Raises UnavailableError where the depot or the store is away, another MusterError or ExecutionError where it
        cannot be stored, or OSError.
        """
        return await self._loaded().store_live(execution, place, terms)

    def stored_live(self, place: OutputsPlace) -> ExecutionOutputs | None:
        """What an agent has noted as stored while user code runs, which may be another one; None: nothing."""
        return self._loaded().stored_live(place) if place.has_note else None

    def _loaded(self) -> "OutputsStoring":
        if self._storing is None:
            take_back(AGENTS_DO_WITHOUT)
            from agent.data.storing import OutputsStoring  # noqa: PLC0415 - agents without such jobs do without it

            self._storing = OutputsStoring(self._ask, self._coordinator, self._credentials)
        return self._storing


def left_something(directory: Path) -> bool:
    """Whether there is anything in an outputs directory; one look, as every end waits for it."""
    try:
        with os.scandir(directory) as listed:
            return next(listed, None) is not None
    except OSError:
        return False
