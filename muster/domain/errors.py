"""The error tree. A message says what happened, to what, and what to do.

MusterError
├── InvalidJobError        the request itself is wrong; nothing was accepted
├── UnknownNameError       no such job, node or execution
├── ConflictError          the request does not fit the present state
├── UnavailableError       a peer did not answer in time or is not there
├── ExhaustedError         a limit is reached, or the disk is full; nothing was accepted
├── PermissionDeniedError  the peer is not allowed to do that
│   └── NotSignedInError   nobody knows who asks
├── JobsRefusedError       of many jobs that are accepted together or not at all, some were refused
├── ClientNotOpenError     a client is used before it was opened, or after it was closed
└── IllegalTransitionError a bug: a state machine was asked for a move that its table does not list
"""

from collections.abc import Mapping, Sequence
from typing import Self

from muster.domain.fault import Fault
from muster.domain.ids import JobId


class MusterError(Exception):
    """Root of everything that Muster raises on purpose."""


class InvalidJobError(MusterError):
    """The job as submitted cannot be accepted."""

    faults: Sequence[Fault] = ()
    """Everything that is wrong and where; empty when only the coordinator has found it."""

    @classmethod
    def of(cls, message: str, faults: Sequence[Fault]) -> Self:
        """The error with this message about these faults."""
        error = cls(message)
        error.faults = tuple(faults)
        return error


class UnknownNameError(MusterError, LookupError):
    """Nothing is known by that name or id."""


class ConflictError(MusterError):
    """The request is well formed but does not fit the present state."""


class UnavailableError(MusterError):
    """A peer did not answer in time, or is not there."""

    address: str | None = None
    """The address of the coordinator that was asked; None where it was somebody else."""


class ExhaustedError(MusterError):
    """A limit is reached, or the disk is full; nothing was accepted, and it may be later."""

    retry_after: float | None = None
    """Seconds after which it may go well, where the coordinator has said so."""


class PermissionDeniedError(MusterError):
    """The peer is known but not allowed to do that."""


class NotSignedInError(PermissionDeniedError):
    """Nobody knows who asks: no token was shown, or one that does not count."""


class JobsRefusedError(MusterError):
    """Some jobs of a list were refused, so none was accepted."""

    def __init__(self, names: Sequence[str], refused: Mapping[int, MusterError], accepted: Sequence[JobId]) -> None:
        super().__init__(names, refused, accepted)
        self.names = names
        """The names of all jobs in the list."""
        self.refused = refused
        """Why, by place in the list from 0; of very many the first ones."""
        self.accepted = tuple(accepted)
        """The first ones of the list, if it was longer than what is accepted together."""

    def __str__(self) -> str:
        accepted = f"the first {len(self.accepted)} were accepted" if self.accepted else "none was accepted"
        told = (f"\njob {place + 1} ({self.names[place]}): {error}" for place, error in self.refused.items())
        return f"of {len(self.names)} jobs {accepted}:{''.join(told)}"


class ClientNotOpenError(MusterError):
    """A client is used that is not open."""

    def __init__(self) -> None:
        super().__init__(
            "this client is not open: use it in `async with Client() as client:` or `with SyncClient() as client:`, "
            "or call its `open` first"
        )


class IllegalTransitionError(MusterError):
    """A move that the transition table does not list; carries subject, state, trigger and the subject's last moves."""

    def __init__(self, subject: str, state: str, trigger: str, moves: Sequence[str] = ()) -> None:
        told = f" (last moves: {'; '.join(moves)})" if moves else ""
        super().__init__(f"{subject} is {state}; the trigger {trigger} is not possible there{told}")
        self.subject = subject
        self.state = state
        self.trigger = trigger
        self.moves = tuple(moves)
        """Each with its time and, where it is known, its cause; oldest first."""

    def after(self, moves: Sequence[str]) -> "IllegalTransitionError":
        """The same error with the last moves of its subject."""
        return IllegalTransitionError(self.subject, self.state, self.trigger, moves)


def first_of(group: BaseExceptionGroup[MusterError]) -> MusterError:
    """One error out of a group of them, however deep; tasks that end together raise groups."""
    error = group.exceptions[0]
    return first_of(error) if isinstance(error, BaseExceptionGroup) else error
