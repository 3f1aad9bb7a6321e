"""Operations of callers: each asks the table whether its caller may, and writes down how it ended."""

import asyncio
import secrets
from collections.abc import Container
from itertools import count
from types import TracebackType
from typing import Self

from coordinator.clock import wall_time
from coordinator.core.causes import EventCause
from coordinator.service.causes import Cause, cause_of
from coordinator.service.rules import RULES, AccessScope, Audited
from coordinator.trust.audit.log import AuditLog, shortened
from coordinator.trust.caller import Caller, CallerKind
from muster.domain.errors import MusterError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access, AuditEntry, no_project

_KNOWN = frozenset({CallerKind.USER, CallerKind.SERVICE, CallerKind.CONSOLE, CallerKind.LOCAL})
_HOW_IT_ENDED = frozenset({Audited.ALL, Audited.LATER})
_CANCELLED = "cancelled: its caller went away, and it may have been carried out"
_NODES = frozenset({CallerKind.NODE, CallerKind.LOCAL})
_CONSOLES = frozenset({CallerKind.CONSOLE, CallerKind.LOCAL})
_SHOWN = {AccessScope.NODE: "a node's certificate", AccessScope.CONSOLE: "a token of a console's account"}
"""What callers show who do what others never may."""


class Operations:
    """The way into every operation; knows which projects there are and where the audit log is."""

    def __init__(self, projects: Container[str], audit: AuditLog) -> None:
        self._projects = projects
        self._audit = audit
        self._life = secrets.token_hex(2)
        """Part of the names of calls that tells those of one life of the coordinator from those of another."""
        self._calls = count(1)

    def begin(self, caller: Caller, name: str, target: str = "") -> "Operation":
        """An operation of this name by this caller, to be entered with `async with`; about `target` as far as known."""
        return Operation(caller, name, target, self._projects, self._audit, f"{self._life}-{next(self._calls)}")

    def refused(self, caller: Caller, name: str, result: str) -> None:
        """Write down that a caller was refused before the operation, of whatever name, could begin."""
        self._audit.note_refusal(_entry(caller, name, "", result))


class Operation:
    """One operation while it goes on.

    Entering raises PermissionDeniedError unless the caller may do it. What is about a project asks `require_in`, or
    `require_access`, before anything else, as only the service knows which project that is. Leaving writes the audit
    entry.
    """

    __slots__ = ("_asked", "_audit", "_call", "_name", "_noted", "_projects", "_rule", "caller", "target")

    def __init__(
        self, caller: Caller, name: str, target: str, projects: Container[str], audit: AuditLog, call: str
    ) -> None:
        self.caller = caller
        self.target = target
        """What it is about, as the audit log says; may be set while it goes on."""
        self._name = name
        self._call = call
        self._rule = RULES[name]
        self._projects = projects
        self._audit = audit
        self._asked = self._rule.scope is not AccessScope.PROJECT
        self._noted = False

    async def __aenter__(self) -> Self:
        if not self._may():
            raise self._denied()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            assert self._asked, f"{self._name} has not asked whether its caller may"
            if self._rule.audited in _HOW_IT_ENDED and not self._noted:
                self.ended(self.target)
            if self._rule.audited is Audited.ALL:
                await self._audit.kept()
        elif not self._noted:
            self._broke_off(error)

    @property
    def cause(self) -> EventCause:
        """What the engine notes as the cause of all that follows from this operation."""
        return EventCause(f"call {self._call} {self._name}", self.caller.name)

    def require_in(self, project: str) -> None:
        """Raise PermissionDeniedError unless the caller may do it in this project, which must be there.

        Raises UnknownNameError for a project that is not there, or of which the caller must not know.
        """
        if project not in self._projects:
            raise self._unknown(project)
        self.require_access(project)

    def require_access(self, project: str, access: Access | None = None) -> None:
        """Raise PermissionDeniedError unless the caller may do it in this project, even if that was removed.

        What outlives its project, as jobs that have ended do, is asked about so. Raises UnknownNameError for a project
        of which the caller must not know. `access` is more than the table asks, where what it is about needs that.
        """
        if not self.caller.may(Access.VIEWER, project):
            raise self._unknown(project)
        self._asked = True
        if not self.caller.may(access or self._rule.access, project):
            raise self._denied(access)

    def unseen(self) -> None:
        """Write down that the caller asked for something that is not there, or that it must not know of."""
        self._refused(self.target, "not found among what the caller may see")

    def ended(self, target: str) -> None:
        """Write down that it was done, for one of several things that it is about."""
        self._noted = True
        self._audit.note(self._entry(target))

    def failed(self, target: str, error: MusterError) -> None:
        """Write down how it failed, for one of several things that it is about."""
        self._failed(target, cause_of(error), str(error))

    def failed_because(self, cause: Cause, reason: str) -> None:
        """Write down why it failed, where no error of ours says so."""
        self._failed(self.target, cause, reason)

    def refused(self, result: str) -> None:
        """Write down that it was refused, in words that the caller may not be told."""
        self._refused(self.target, result)

    def entry(self, target: str, result: str = "ok") -> AuditEntry:
        """An entry of the audit log about this operation, as it is written together with a change."""
        return audit_entry(self.caller, self._name, target, result)

    def done(self, how: str = "") -> AuditEntry:
        """The entry for a change that has succeeded; `how` says what came of it."""
        return self.entry(self.target, f"ok, {how}" if how else "ok")

    def _broke_off(self, error: BaseException) -> None:
        """Write down why it ended without an answer."""
        match error:
            case MusterError():
                self.failed(self.target, error)
            case asyncio.CancelledError() if self._rule.audited in _HOW_IT_ENDED:
                self._audit.note(self._entry(self.target, _CANCELLED))
            case Exception():
                self._failed(self.target, Cause.INTERNAL, str(error))

    def _may(self) -> bool:
        who, rule = self.caller, self._rule
        match rule.scope:
            case AccessScope.PUBLIC | AccessScope.PROJECT:
                return True
            case AccessScope.NODE:
                return who.kind in _NODES
            case AccessScope.CONSOLE:
                return who.kind in _CONSOLES and who.may_anywhere(rule.access)
            case AccessScope.KNOWN:
                return who.kind in _KNOWN
            case AccessScope.ANYWHERE:
                return who.may_anywhere(rule.access)
            case AccessScope.EVERYWHERE:
                return who.may(rule.access)

    def _denied(self, access: Access | None = None) -> PermissionDeniedError:
        """Write down that the caller may not do it; the error to raise."""
        scope, access = self._rule.scope, access or self._rule.access
        self._refused(self.target, f"needs {access} ({scope.value})")
        where = "every project" if scope is AccessScope.EVERYWHERE else "the project"
        needed = _SHOWN.get(scope, f"{access} access to {where}")
        return PermissionDeniedError(f"{self.caller.name or 'a stranger'} may not do that; it needs {needed}")

    def _unknown(self, project: str) -> UnknownNameError:
        """Write down that the caller asked for a project that is not there, or of which it must not know; the error."""
        self.unseen()
        return UnknownNameError(no_project(project))

    def _failed(self, target: str, cause: Cause, reason: str) -> None:
        if cause is Cause.PERMISSION_DENIED:
            self._refused(target, reason)
        elif self._rule.audited is not Audited.REFUSALS:
            self._noted = True
            self._audit.note(self._entry(target, cause))

    def _refused(self, target: str, result: str) -> None:
        self._noted = True
        self._audit.note_refusal(self._entry(target, result))

    def _entry(self, target: str, result: str = "ok") -> AuditEntry:
        """An entry as the audit log takes it, which shortens it by itself."""
        return _entry(self.caller, self._name, target, result)


def audit_entry(caller: Caller, operation: str, target: str, result: str) -> AuditEntry:
    """What the audit log is to say of an operation, as it is written together with a change."""
    return shortened(_entry(caller, operation, target, result))


def _entry(caller: Caller, operation: str, target: str, result: str) -> AuditEntry:
    return AuditEntry(
        at=wall_time(), who=caller.name, what=operation, target=target, origin=caller.origin, result=result
    )
