"""The loop of a node without a coordinator, and what it reports."""

from collections import deque
from collections.abc import Mapping
from pathlib import Path

from agent.attach.caller import DoorCaller, GangRefusedError
from agent.core.door.packets import GangCommandAsked
from agent.core.events import LogCompleted
from agent.core.step import AgentState
from agent.executions.directories import ExecutionDirectories
from agent.executions.held_resources import HeldResources
from agent.executions.ports import PortLedger
from agent.fencing.guard import FenceGuard, FenceSite
from agent.logs.push import LogPusher
from agent.loop.loop import Loop
from agent.loop.workbench import Workbench
from agent.mailbox import Inbox, Outbox
from agent.runtimes.runtime import Runtime
from muster import wire
from muster.domain.gangs.plan import Report
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.job import RuntimeKind

NODE = NodeId("a")


class NoGangCommands:
    """Stands for the other agents of a gang: there are none."""

    async def run(self, execution: ExecutionId, asked: GangCommandAsked, _caller: DoorCaller) -> int:
        raise GangRefusedError(f"{asked.target} is no member of the attempt of {execution}")


class LoneLoop:
    """A loop with everything that it works with."""

    def __init__(
        self,
        directory: Path,
        executions: Path,
        runtimes: Mapping[RuntimeKind, Runtime],
        ports: PortLedger,
        address: str,
    ) -> None:
        site = FenceSite(node=NODE, state=directory, executions=executions, outputs=directory / "outputs")
        guard, inbox, outbox = FenceGuard(site), Inbox(), Outbox()
        self._messages = outbox.open()
        self._reports: deque[Report] = deque()
        self.state = AgentState(guard.clock.now())
        bench = Workbench(
            inbox=inbox,
            guard=guard,
            directories=ExecutionDirectories(site.executions, site.outputs),
            held=HeldResources(ports, self.state.ledger.gpus),
            runtimes=runtimes,
            logs=LogPusher(NODE, lambda execution: inbox.put(LogCompleted(execution=execution))),
            address=address,
            interface=None,
        )
        self.loop = Loop(bench, outbox, self.state, NoGangCommands())

    async def told(self) -> Report:
        """The next report."""
        while not self._reports:
            self._reports.extend(map(wire.report_from_wire, (await self._messages.get()).reports.reports))
        return self._reports.popleft()
