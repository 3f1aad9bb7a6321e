"""Rules of commands between the nodes of a gang: what is signed, and what the node that is asked checks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from muster.domain.attachments.frame import GangCommand
from muster.domain.gangs.roster import Roster
from muster.domain.ids import AttemptId, ExecutionId, NodeId
from muster.trust.attempt_signature import attempt_signature, same_signature

MOST_NONCES = 4096
"""Commands of which a node remembers that it has seen them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPart:
    """What a node knows of an attempt of which it runs a part."""

    attempt: AttemptId
    secret: bytes
    roster: Roster | None
    """None: the agent has started anew, and the coordinator has not told it yet."""
    running: Mapping[int, ExecutionId]
    """Executions here that are to run, by rank; user code may still be starting."""
    ahead: frozenset[int] = frozenset()
    """Ranks here that are not told to run yet."""


class CommandFault(Enum):
    """Kinds of reasons why a node does not run a command for another one."""

    UNKNOWN = "unknown"  #: nothing of the attempt is here
    UNPROVEN = "unproven"  #: it is not shown that the command is one of the attempt
    TOO_EARLY = "too early"  #: the execution will run soon
    TOO_MANY = "too many"  #: others of the same execution run already
    NOT_HERE = "not here"  #: it does not run here, or not any more


@dataclass(frozen=True, slots=True)
class CommandRejected:
    """Why a node does not run a command for another one."""

    fault: CommandFault
    text: str


def signed(command: GangCommand, secret: bytes, asked: NodeId) -> GangCommand:
    """The command with the signature that shows to one node that it is of the attempt."""
    return replace(command, signature=_signature(command, secret, asked))


def accepted(
    command: GangCommand, part: GangPart | None, *, here: NodeId, shown: bool, nonces: "Nonces"
) -> ExecutionId | CommandRejected:
    """The execution in which a command may run that another node has sent to this one.

    `shown`: whether the other side has proven that it is the node that the command names. The nonce of a command that
    proves itself is taken as seen.
    """
    if not shown:
        return _unproven("the command is not that of the node that shows itself")
    if part is None or not part.secret:
        return CommandRejected(CommandFault.UNKNOWN, "nothing of this attempt is here")
    if not same_signature(command.signature, _signature(command, part.secret, here)):
        return _unproven("the command is not signed with the secret of the attempt")
    if not nonces.take(command.nonce):
        return _unproven("the same command was sent before")
    return _execution(command, part, here)


def _unproven(text: str) -> CommandRejected:
    return CommandRejected(CommandFault.UNPROVEN, text)


def _execution(command: GangCommand, part: GangPart, here: NodeId) -> ExecutionId | CommandRejected:
    roster, rank = part.roster, command.to_rank
    if roster is None:
        return CommandRejected(CommandFault.TOO_EARLY, f"the agent of {here} has just started and knows no roster yet")
    if command.from_rank >= len(roster.nodes) or roster.nodes[command.from_rank] != command.node:
        return _unproven(f"rank {command.from_rank} of this attempt is not on {command.node}")
    if rank in part.running:
        return part.running[rank]
    if rank in part.ahead:
        return CommandRejected(CommandFault.TOO_EARLY, f"rank {rank} on {here} has not been started yet")
    return CommandRejected(CommandFault.NOT_HERE, f"rank {rank} does not run on {here}, or not any more")


class Nonces:
    """Nonces that were seen; the oldest are forgotten."""

    def __init__(self, most: int = MOST_NONCES) -> None:
        self._most = most
        self._seen: dict[bytes, None] = {}

    def take(self, nonce: bytes) -> bool:
        """Note a nonce; False: it was seen before."""
        if nonce in self._seen:
            return False
        self._seen[nonce] = None
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]
        return True


def _signature(command: GangCommand, secret: bytes, asked: NodeId) -> bytes:
    return attempt_signature(
        secret,
        "command",
        command.job,
        str(command.attempt),
        str(command.from_rank),
        str(command.to_rank),
        command.node,
        asked,
        command.nonce,
        str(len(command.words)),
        *command.words,
        *command.env,
        str(int(command.daemon)),
        str(int(command.has_input)),
    )
