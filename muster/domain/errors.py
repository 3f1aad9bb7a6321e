"""The error tree. A message says what happened, to what, and what to do.

MusterError
├── InvalidJobError        the request itself is wrong; nothing was accepted
├── UnknownNameError       no such job, node or execution
├── ConflictError          the request does not fit the present state
├── UnavailableError       a peer did not answer in time or is not there
├── ExhaustedError         a limit is reached, or the disk is full; nothing was accepted
├── PermissionDeniedError  the peer is not allowed to do that
└── IllegalTransitionError a bug: a state machine was asked for a move that its table does not list
"""


class MusterError(Exception):
    """Root of everything that Muster raises on purpose."""


class InvalidJobError(MusterError):
    """The job as submitted cannot be accepted."""


class UnknownNameError(MusterError, LookupError):
    """Nothing is known by that name or id."""


class ConflictError(MusterError):
    """The request is well formed but does not fit the present state."""


class UnavailableError(MusterError):
    """A peer did not answer in time, or is not there."""


class ExhaustedError(MusterError):
    """A limit is reached, or the disk is full; nothing was accepted, and it may be later."""


class PermissionDeniedError(MusterError):
    """The peer is known but not allowed to do that."""


class IllegalTransitionError(MusterError):
    """A move that the transition table does not list; carries subject, state and trigger."""

    def __init__(self, subject: str, state: str, trigger: str) -> None:
        super().__init__(f"{subject} is {state}; the trigger {trigger} is not possible there")
        self.subject = subject
        self.state = state
        self.trigger = trigger


def first_of(group: BaseExceptionGroup[MusterError]) -> MusterError:
    """One error out of a group of them, however deep; tasks that end together raise groups."""
    error = group.exceptions[0]
    return first_of(error) if isinstance(error, BaseExceptionGroup) else error
