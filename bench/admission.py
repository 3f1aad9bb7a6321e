"""What admission costs of a call: the smallest call at two servers of this process, with admission and without.

Both know callers by their tokens, keep their pace and have the gate. The one without admission does so once the message
is there, serves a call as gRPC does by itself, and bounds nothing.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from bench.figures import Bar
from bench.setting import Setting, Turns
from coordinator.clock import wall_time
from coordinator.engine.engine import Engine
from coordinator.rpc import limits
from coordinator.rpc.admission.interceptor import Admission, AdmissionPolicy
from coordinator.rpc.callers import CALLER, Context
from coordinator.rpc.calls import is_public
from coordinator.rpc.clients.trust import TrustOperations, TrustService
from coordinator.rpc.doors import by_token
from coordinator.rpc.gate import Gate
from coordinator.rpc.pace import Pace, Rates
from coordinator.service.known_projects import KnownProjects
from coordinator.service.operations import Operations
from coordinator.service.trust.accounts import AccountOperations
from coordinator.service.trust.audit import AuditOperations
from coordinator.service.trust.authority import AuthorityOperations
from coordinator.service.trust.enrolment import EnrolmentOperations
from coordinator.service.trust.rotations import Rotations
from coordinator.service.trust.tokens import TokenOperations
from coordinator.store.records.memory import MemoryStore
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.registry import ADMIN, Registry
from muster.daemon.rates import Rate
from muster.domain.fleet.access import EVERYWHERE, Access, Account, AccountKind, AuditEntry, IssuedToken
from muster.rpc.v1 import trust_pb2, trust_pb2_grpc
from muster.trust.tokens import new_api_token

WITH, WITHOUT = "the smallest call, with admission", "the smallest call, without admission"
BAR = Bar(figure="the smallest call: with admission / without", limit=1.03)
EACH = 100
"""Calls of one turn at each server, one after the other and the servers in turn."""
UNHURRIED = Rate(burst=1_000_000, per_second=1_000_000)

Call = Callable[[], Awaitable[Any]]


async def measure(setting: Setting) -> None:
    """Calls to both servers in turn."""
    await setting.quiet("the smallest call with admission and without")
    turns = Turns(setting.repeats(60, 20))
    async with _calls(setting.scratch.fresh("admission")) as calls:
        for _ in turns:
            waits: dict[str, list[float]] = {name: [] for name in calls}
            for number in range(EACH):
                # Whoever comes second finds the caches as the first has left them.
                for name in sorted(calls, reverse=bool(number % 2)):
                    began = time.perf_counter()
                    await calls[name]()
                    waits[name].append((time.perf_counter() - began) * 1e6)
            turns.keep({name: sorted(each)[EACH // 2] for name, each in waits.items()})
    for name, values in turns.found.items():
        setting.findings.take(name, values, "µs")
    setting.findings.ratio(BAR, WITH, WITHOUT)


@asynccontextmanager
async def _calls(directory: Path) -> AsyncIterator[dict[str, Call]]:
    """A call to each server, made with the token of an admin."""
    now, secret = wall_time(), new_api_token()
    trust = SqlTrust.open(directory / "coordinator.db")
    engine = Engine(MemoryStore(), lambda _: None)
    registry = Registry(trust, KnownProjects(engine))
    audit = AuditLog(registry)
    admin = Account(name=ADMIN, kind=AccountKind.USER, created_at=now, grants={EVERYWHERE: Access.ADMIN})
    made = AuditEntry(at=now, who="", what="first start", target=ADMIN, origin="", result="ok")
    token = IssuedToken(id=secret.id, account=ADMIN, note="", created_at=now)
    await registry.add_first_admin(admin, secret, token, made)
    door, who, pace = limits.CLIENTS, by_token(registry), Pace(Rates(accounts=UNHURRIED))
    operations = Operations(registry.projects, audit)
    gate = Gate(registry, operations)
    policy = AdmissionPolicy(who=who, public=is_public, bounds=door.bounds, known=door.known, strangers=door.strangers)
    service = TrustService(
        TrustOperations(
            accounts=AccountOperations(operations, registry),
            tokens=TokenOperations(operations, registry),
            enrolment=EnrolmentOperations(operations, registry.joined, None),
            authority=AuthorityOperations(operations, Rotations(None, registry.joined, engine)),
            audit=AuditOperations(operations, registry, audit),
        )
    )
    async with AsyncExitStack() as stack:
        calls: dict[str, Call] = {}
        for name, first in ((WITH, Admission(policy, pace, gate.refused)), (WITHOUT, _Late(policy, pace))):
            server = grpc.aio.server(options=door.options, interceptors=[first, gate])
            trust_pb2_grpc.add_TrustServiceServicer_to_server(service, server)
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            stack.push_async_callback(server.stop, None)
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
            calls[name] = _call(channel, str(secret))
        yield calls
    trust.close()


def _call(channel: grpc.aio.Channel, secret: str) -> Call:
    stub: Any = trust_pb2_grpc.TrustServiceStub(channel)
    shown = (("authorization", f"Bearer {secret}"),)
    return lambda: stub.WhoAmI(trust_pb2.WhoAmIRequest(), metadata=shown)


class _Late(grpc.aio.ServerInterceptor):
    """Knows callers once their message is there."""

    def __init__(self, policy: AdmissionPolicy, pace: Pace) -> None:
        self._policy = policy
        self._pace = pace

    async def intercept_service(self, continuation: Any, details: Any) -> Any:  # noqa: ANN401 - as gRPC has it
        handler = await continuation(details)
        metadata = dict(details.invocation_metadata)

        async def unary(request: Any, context: Context) -> Any:  # noqa: ANN401 - messages of every call
            who = self._policy.who(metadata, context, wall_time())
            self._pace.known(who)
            CALLER.set(who)
            return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(unary, handler.request_deserializer, handler.response_serializer)
