"""The port at which an agent answers its peers: chosen once and kept, as they know it from their assignments."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import chain
from pathlib import Path

from agent.executions.ports import PortLedger
from agent.fencing.peer_server import GIVES_NOTHING, GivenToPeers, Respondent, answering
from agent.identity.peers import Shown
from muster.domain.errors import PermissionDeniedError
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.job import PortRequest

log = logging.getLogger(__name__)

PEER_PORT_FILE = "peer_port"
"""File in the state directory with the number of the port."""

AGENT = ExecutionId("the agent itself")
"""Stands in the ledger of ports for who has it, so that it is never leased."""

ATTEMPTS = 3
CANDIDATES = 100


class PeerPort:
    """The port on which one node answers its peers."""

    def __init__(self, state: Path, ports: PortLedger, shown: Shown) -> None:
        self._path = state / PEER_PORT_FILE
        self._ports = ports
        self._shown = shown
        self.number = 0
        """0: peers cannot ask this node."""

    @asynccontextmanager
    async def answering(
        self, node: NodeId, respondent: Respondent, address: str, given: GivenToPeers = GIVES_NOTHING
    ) -> AsyncIterator[None]:
        """Answer peers while the context is open; without a port there is none, and the node is no worse off."""
        async with AsyncExitStack() as stack:
            for _ in range(ATTEMPTS):
                try:
                    chosen = self._choose()
                    served = answering(node, respondent, address, chosen, self._shown, given)
                    self.number = await stack.enter_async_context(served)
                    break
                except (OSError, PermissionDeniedError) as error:
                    log.warning("no port for questions of peers", extra={"node": node, "cause": str(error)})
            self._note()
            try:
                yield
            finally:
                self.number = 0
                self._ports.free(AGENT)

    def _choose(self) -> int:
        """The port of before, or the last one that is free: jobs rather ask for the first. Held in the ledger."""
        self._ports.free(AGENT)
        noted = self._noted()
        wishes = chain(() if noted is None else (noted,), reversed(self._ports.numbers[-CANDIDATES:]))
        for number in wishes:
            with suppress(ExecutionError):
                self._ports.hold(AGENT, (PortRequest(name="peers", port=number),))
                self._ports.let_go(AGENT)
                return number
        raise OSError(f"the last {CANDIDATES} ports of the range are taken")

    def _noted(self) -> int | None:
        with suppress(OSError, ValueError):
            return int(self._path.read_text(encoding="ascii"))
        return None

    def _note(self) -> None:
        with suppress(OSError):
            self._path.touch(mode=0o600)
            self._path.write_text(f"{self.number}\n", encoding="ascii")
