"""The gate: every call passes here, and here alone it is decided whether its caller may make it.

Admission has let the caller in before, and says who it is; the gate has the request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import grpc
import grpc.aio

from coordinator.clock import wall_time
from coordinator.core.cluster.cluster import Cluster
from coordinator.engine import Engine
from coordinator.rpc.callers import Context, caller, entry, outcomes, target_of
from coordinator.rpc.calls import OPERATIONS
from coordinator.rpc.refusals import fail
from coordinator.rpc.rules import RULES, Audited, CallRule, CallScope
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.registry import Registry
from coordinator.views import views
from muster.domain.errors import MusterError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.ids import NodeId
from muster.domain.jobs.job import DEFAULT_PROJECT
from muster.rpc.notices import AUTHORITIES, TOKEN_ENDS

Handler = Callable[[Any, Context], Awaitable[Any]]

_STATUSES = {status.value[0]: status for status in grpc.StatusCode}


class Gate(grpc.aio.ServerInterceptor):
    """Stands before all services of one server, behind admission."""

    def __init__(self, registry: Registry, audit: AuditLog, engine: Engine) -> None:
        self._registry = registry
        self._audit = audit
        self._engine = engine
        self.authorities: Callable[[], str] = str
        """Gives the digest of the authorities that count, for clients that may know others; empty: nothing to tell."""
        self._streams: dict[object, tuple[Caller, Callable[[], None]]] = {}

    async def intercept_service(self, continuation: Any, details: Any) -> Any:  # noqa: ANN401 - as gRPC has it
        """The handler of a call, behind the gate."""
        handler = await continuation(details)
        rule = RULES.get(details.method)
        if handler is None:
            return None
        if rule is not None and rule.scope is CallScope.PUBLIC:
            return handler
        if details.method in OPERATIONS:
            return _Call(self, details.method, None).guarded(handler)
        return _Call(self, details.method, rule or CallRule(CallScope.PEER)).guarded(handler)

    def look_again(self, node: NodeId | None) -> None:
        """End the streams of those who would not be let in any more: of a node, or with None of anybody.

        While the authority changes, thousands of nodes change their keys one after the other.
        """
        now = wall_time()
        for held, end in list(self._streams.values()):
            if (node is None or held.node == node) and not self._registry.still_counts(held, now):
                end()

    def notices(self, who: Caller) -> Iterator[tuple[str, str]]:
        """Metadata that tell a caller what it should know, whatever it asked."""
        if who.warned_from is not None and who.until is not None and who.warned_from <= wall_time():
            yield TOKEN_ENDS, who.until.isoformat()
        if authorities := self.authorities():
            yield AUTHORITIES, authorities

    async def check(self, rule: CallRule, request: Any) -> None:  # noqa: ANN401 - any message
        """Raise PermissionDeniedError, or UnknownNameError for what the caller must not even know of."""
        who = caller()
        match rule.scope:
            case CallScope.NODE:
                allowed = who.kind in {CallerKind.NODE, CallerKind.LOCAL}
            case CallScope.KNOWN:
                allowed = who.kind in {CallerKind.USER, CallerKind.SERVICE, CallerKind.LOCAL}
            case CallScope.ANYWHERE:
                allowed = who.may_anywhere(rule.access)
            case CallScope.EVERYWHERE:
                allowed = who.may(rule.access)
            case CallScope.SPEC:
                allowed = self._may_in(who, rule.access, request.spec.project or DEFAULT_PROJECT)
            case CallScope.SPECS:
                projects = {each.spec.project or DEFAULT_PROJECT for each in request.jobs} or {DEFAULT_PROJECT}
                allowed = all(self._may_in(who, rule.access, project) for project in sorted(projects))
            case CallScope.PROJECT:
                allowed = self._may_in(who, rule.access, request.project or DEFAULT_PROJECT)
            case CallScope.JOB:
                allowed = who.may(rule.access) or await self._may_touch(who, rule.access, request)
            case _:
                allowed = False
        if not allowed:
            where = "every project" if rule.scope is CallScope.EVERYWHERE else "the project"
            needed = "a node's certificate" if rule.scope is CallScope.NODE else f"{rule.access} access to {where}"
            raise PermissionDeniedError(f"{who.name or 'a stranger'} may not do that; it needs {needed}")

    def refused(self, context: Context, method: str, target: str, result: str) -> None:
        """Write down that somebody was refused."""
        self._audit.note_refusal(entry(context, method, target, result, wall_time()))

    def kept_out(self, context: Context, method: str, result: str) -> None:
        """Write down that somebody was not let in, whose message nobody has read."""
        self.refused(context, method, "", result)

    def ended(self, context: Context, method: str, target: str, result: str) -> None:
        """Write down how a call ended."""
        self._audit.note(entry(context, method, target, result, wall_time()))

    async def kept(self, context: Context) -> None:
        """Wait until what was written down is on the disk; the call fails if that cannot be."""
        try:
            await self._audit.kept()
        except MusterError as error:
            await fail(context, error)

    @contextmanager
    def holding(self, who: Caller, end: Callable[[], None]) -> Iterator[None]:
        """While a stream is open, `end` is called as soon as its caller does not count any more."""
        key = object()
        self._streams[key] = (who, end)
        timer = None
        if who.until is not None:
            timer = asyncio.get_running_loop().call_later(max(0.0, (who.until - wall_time()).total_seconds()), end)
        try:
            yield
        finally:
            del self._streams[key]
            if timer is not None:
                timer.cancel()

    def _may_in(self, who: Caller, access: Access, project: str) -> bool:
        if project not in self._registry.projects or not who.may(Access.VIEWER, project):
            raise UnknownNameError(f"there is no project {project!r}; `muster projects list` shows yours")
        return who.may(access, project)

    async def _may_touch(self, who: Caller, access: Access, request: Any) -> bool:  # noqa: ANN401
        """Of what the caller may see; the request means that very job from here on."""

        def found(cluster: Cluster, _: datetime) -> tuple[str, str]:
            job = views.resolve(cluster, request.job, who.seen_projects)
            return job, cluster.jobs[job].spec.project

        request.job, project = await self._engine.look(found)
        return who.may(access, project)


class _Call:
    """One kind of call on its way through the gate."""

    def __init__(self, gate: Gate, method: str, rule: CallRule | None) -> None:
        self._gate = gate
        self._method = method
        self._rule = rule

    def guarded(self, handler: Any) -> Any:  # noqa: ANN401 - as gRPC has it
        """The handler that answers only those who may call."""
        kind = _kind(handler)
        answer = getattr(handler, kind)

        async def unary(request: Any, context: Context) -> Any:  # noqa: ANN401
            await self._admit(request, context)
            return await self._observed(answer, request, context)

        async def stream(request: Any, context: Context) -> Any:  # noqa: ANN401
            await self._admit(None if kind.startswith("stream_") else request, context)
            return await self._observed(self._while_it_counts(answer), request, context)

        guard = unary if kind == "unary_unary" else stream
        return _KINDS[kind](guard, handler.request_deserializer, handler.response_serializer)

    async def _admit(self, request: Any, context: Context) -> None:  # noqa: ANN401
        who = caller()
        if notices := tuple(self._gate.notices(who)):
            context.set_trailing_metadata(notices)
        if self._rule is None:
            return
        target = target_of(request)
        try:
            await self._gate.check(self._rule, request)
        except PermissionDeniedError as error:
            self._gate.refused(context, self._method, target, f"needs {self._rule.access} ({self._rule.scope.value})")
            await fail(context, error)
        except MusterError as error:
            if isinstance(error, UnknownNameError):
                self._gate.refused(context, self._method, target, "not found among what he may see")
            await fail(context, error)

    async def _observed(self, answer: Handler, request: Any, context: Context) -> Any:  # noqa: ANN401
        if self._rule is None:
            return await answer(request, context)
        try:
            response = await answer(request, context)
        except grpc.aio.AbortError:
            self._note_failure(context, target_of(request))
            raise
        if self._rule.record in {Audited.ALL, Audited.LATER}:
            for outcome in outcomes(request, response):
                self._note(context, *outcome)
        if self._rule.record is Audited.ALL:
            await self._gate.kept(context)
        return response

    def _note_failure(self, context: Context, target: str) -> None:
        status = _status(context)
        assert self._rule is not None
        if status is grpc.StatusCode.PERMISSION_DENIED or self._rule.record is not Audited.REFUSALS:
            self._note(context, target, status.name, _details(context))

    def _note(self, context: Context, target: str, status: str, details: str) -> None:
        if status == grpc.StatusCode.PERMISSION_DENIED.name:
            self._gate.refused(context, self._method, target, details)
        else:
            self._gate.ended(context, self._method, target, status.lower())

    def _while_it_counts(self, answer: Handler) -> Handler:
        """The handler of a stream, ended when its caller loses his right to it."""

        async def held(request: Any, context: Context) -> Any:  # noqa: ANN401
            own, lost, response = asyncio.current_task(), False, None
            assert own is not None

            def end() -> None:
                nonlocal lost
                lost = True
                own.cancel()

            try:
                with self._gate.holding(caller(), end):
                    response = await answer(request, context)
            except asyncio.CancelledError:
                if not lost:
                    raise
                own.uncancel()
            if lost:
                self._gate.refused(context, self._method, "", "stream ended: revoked, changed or expired")
                with suppress(grpc.aio.InternalError):
                    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "what you have shown counts no more")
            return response

        return held


_KINDS: Mapping[str, Any] = {
    "unary_unary": grpc.unary_unary_rpc_method_handler,
    "unary_stream": grpc.unary_stream_rpc_method_handler,
    "stream_unary": grpc.stream_unary_rpc_method_handler,
    "stream_stream": grpc.stream_stream_rpc_method_handler,
}


def _kind(handler: Any) -> str:  # noqa: ANN401 - as gRPC has it
    return next(kind for kind in _KINDS if getattr(handler, kind))


def _status(context: Context) -> grpc.StatusCode:
    code: Any = context.code()
    return code if isinstance(code, grpc.StatusCode) else _STATUSES.get(code or 0, grpc.StatusCode.UNKNOWN)


def _details(context: Context) -> str:
    details: Any = context.details()
    return details.decode(errors="replace") if isinstance(details, bytes) else str(details)
