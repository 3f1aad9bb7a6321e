"""Commands that user code wants in other executions of its gang: each goes to a companion or to another agent."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from agent.attach.caller import GangRefusedError
from agent.attach.gang_site import CommandCaller, GangSite, NotYetError
from agent.attach.local_commands import LocalCommand, LocalCommands
from agent.attach.remote_command import PeerAgent, run_at_peer
from agent.attach.several import run_in_several, run_step
from agent.core.door.gang_rules import GangPart, signed
from agent.core.door.packets import GangCommandAsked, Targets
from agent.core.door.targets import TargetRefused, ranks_of
from agent.identity.peers import Shown
from muster.domain.attachments.frame import COMMAND_NONCE, GangCommand
from muster.domain.gangs.roster import Roster
from muster.domain.ids import ExecutionId, NodeId

TRY_LIMIT = 10.0
"""Seconds for which a command is tried again that cannot be started yet."""

TRY_PAUSE = 0.2
"""Seconds between two tries."""

Tried = TypeVar("Tried")


class CommandsInGangs:
    """Carries out what callers at the doors of one node ask for."""

    def __init__(
        self, node: NodeId, site: GangSite, commands: LocalCommands, shown: Shown, patience: float = TRY_LIMIT
    ) -> None:
        self._node = node
        self._site = site
        self._commands = commands
        self._shown = shown
        self._patience = patience

    async def run(self, execution: ExecutionId, asked: GangCommandAsked, caller: CommandCaller) -> int:
        """Run a command elsewhere in the gang of an execution; its exit code. Raises GangRefusedError.

        It is cancelled when the caller goes away.
        """
        _, _, roster = await self._patiently(lambda: self._known_place(execution))
        ranks = ranks_of(roster, asked.targets, asked.target)
        if isinstance(ranks, TargetRefused):
            raise GangRefusedError(ranks.text)

        async def run(rank: int, caller: CommandCaller) -> int:
            own = replace(asked, has_input=asked.has_input and not (asked.step and rank != ranks[0]))
            return await self._patiently(lambda: self._once(execution, rank, own, caller))

        if asked.targets is Targets.ONE:
            return await run(ranks[0], caller)
        if asked.step:
            return await run_step(ranks, run, caller)
        return await run_in_several(ranks, run, caller, has_input=asked.has_input)

    async def _once(self, execution: ExecutionId, rank: int, asked: GangCommandAsked, caller: CommandCaller) -> int:
        part, own_rank, roster = await self._known_place(execution)
        if roster.nodes[rank] == self._node:
            wanted = LocalCommand(
                execution=_here(part, rank),
                from_rank=own_rank,
                words=asked.words,
                env=asked.env,
                daemon=asked.daemon,
                has_input=asked.has_input,
            )
            return await self._commands.run(wanted, caller)
        peer = _peer(roster, rank)
        command = GangCommand(
            job=part.attempt.job,
            attempt=part.attempt.number,
            from_rank=own_rank,
            to_rank=rank,
            node=self._node,
            nonce=os.urandom(COMMAND_NONCE),
            words=asked.words,
            env=asked.env,
            daemon=asked.daemon,
            has_input=asked.has_input,
        )
        return await run_at_peer(peer, signed(command, part.secret, peer.node), self._shown(), caller)

    async def _known_place(self, execution: ExecutionId) -> tuple[GangPart, int, Roster]:
        place = self._site.place(execution)
        if place is None or place[0].roster is None:
            raise NotYetError("the agent has just started and has not heard from the coordinator yet; try again")
        return (*place, place[0].roster)

    async def _patiently(self, trial: Callable[[], Awaitable[Tried]]) -> Tried:
        """Try again for a while what cannot be done yet: members of a gang do not start at the same moment."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        while True:
            try:
                return await trial()
            except NotYetError as error:
                if loop.time() >= until:
                    raise GangRefusedError(str(error)) from None
            await asyncio.sleep(TRY_PAUSE)


def _here(part: GangPart, rank: int) -> ExecutionId:
    if rank in part.running:
        return part.running[rank]
    if rank in part.ahead:
        raise NotYetError(f"rank {rank} on this node has not been started yet")
    raise GangRefusedError(f"rank {rank} on this node has ended")


def _peer(roster: Roster, rank: int) -> PeerAgent:
    """The agent of a member's node; what stands between them is no business of user code."""
    node, address, port = NodeId(roster.nodes[rank]), roster.addresses[rank], roster.peer_ports[rank]
    if not int(port):
        raise GangRefusedError(
            f"the agent of {node} has no port for other agents: all of its --ports were taken when it started; "
            "give it more of them and restart it"
        )
    return PeerAgent(node, f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
