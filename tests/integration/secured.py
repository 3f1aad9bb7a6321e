"""A real coordinator that speaks TLS, real agents that join it, and people who log in."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from typer.testing import CliRunner, Result

from agent.identity.enrolment import join
from coordinator.clock import wall_time
from coordinator.companions.depot_desk import DepotDesk
from coordinator.companions.relay_desk import RelayDesk
from coordinator.companions.socket import serving_companion
from coordinator.depot.messages import DEPOT_DESK_TALK
from coordinator.logins.desk import LoginDesk
from coordinator.logins.provider import Provider
from coordinator.logins.settings import LoginSettings
from coordinator.relay.messages import RELAY_DESK_TALK
from coordinator.rpc.pace import Pace
from coordinator.rpc.server import Doors, serving
from coordinator.service.trust.rotations import Rotations
from coordinator.service.trust.sessions import ConsoleKnown
from coordinator.store.bundles import BundleStore
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.authority import FleetAuthority, load_or_make
from coordinator.trust.registry import ADMIN, Registry
from coordinator.trust.rotation import RotationFile
from muster.cli.program import program
from muster.client.client import Client
from muster.domain.fleet.access import EVERYWHERE, Access, Account, AccountKind, AuditEntry, IssuedToken
from muster.domain.ids import NodeId
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.status import reason_lost
from muster.rpc.v1 import agents_pb2_grpc
from muster.trust.certificates import new_key, request_certificate
from muster.trust.tickets import TICKET_SECRET_BYTES
from muster.trust.tokens import new_api_token, parse_join_token
from tests.integration.depots import depot
from tests.integration.parts import working_parts
from tests.integration.programs import ROOT
from tests.integration.relays import relay, until
from tests.integration.strangers import hello

READY_WITHIN = 30.0


@dataclass(kw_only=True)
class Secured:
    """A coordinator with both doors open."""

    directory: Path
    doors: Doors
    authority: FleetAuthority
    registry: Registry
    audit: AuditLog
    admin_token: str
    secrets: list[str] = field(default_factory=list)
    """Everything that may stand nowhere."""

    def client(self, token: str | None = None) -> Client:
        """Whoever has that token; the admin otherwise."""
        shown = Credentials(authority=self.authority.certificate, token=token or self.admin_token)
        return Client(self.doors.clients, shown)

    async def user(self, name: str, grants: Mapping[str, Access], ttl: timedelta | None = None) -> str:
        """The token of a new person."""
        async with self.client() as admin:
            known = {project.name for project in await admin.projects.list()}
            for project in grants.keys() - {EVERYWHERE} - known:
                await admin.projects.add(project)
            await admin.accounts.add(name, AccountKind.USER, grants)
            secret, _ = await admin.tokens.create(name, ttl=ttl)
        self.secrets.append(secret)
        return secret

    async def join_token(self, **wish: Any) -> str:
        """A new join token."""
        async with self.client() as admin:
            secret, _ = await admin.join_tokens.create(**wish)
        self.secrets.append(secret)
        return secret

    def node(self, name: str, life: timedelta = timedelta(hours=1)) -> Credentials:
        """What a node shows whose certificate was signed here, whether it has joined or not."""
        key = new_key()
        certificate = self.authority.certify(request_certificate(key, NodeId(name)), NodeId(name), wall_time(), life)
        return Credentials(authority=self.authority.certificate, certificate=certificate, key=key)


async def muster(fleet: Secured, token: str, *words: str) -> Result:
    """The command line of whoever has that token."""
    env: Mapping[str, str] = {
        "MUSTER_COORDINATOR": fleet.doors.clients,
        "MUSTER_TLS_CA": str(fleet.directory / "trust" / "authority.pem"),
        "MUSTER_TOKEN": token,
        "MUSTER_HOME": str(fleet.directory / "home"),
        "COLUMNS": "250",
    }
    return await asyncio.to_thread(CliRunner().invoke, program(words), words, env=env)


@asynccontextmanager
async def secured(  # noqa: PLR0913 - one for each thing that a coordinator can have
    directory: Path,
    clients: str = "127.0.0.1:0",
    pace: Pace | None = None,
    login: LoginSettings | None = None,
    bundle_signers: frozenset[str] = frozenset(),
    *,
    beside: tuple[str, ...] = (),
    console: ConsoleKnown | None = None,
) -> AsyncIterator[Secured]:
    """Serve until the context ends, clients at that address; people may come from an identity provider.

    `beside` are programs beside it: a `relay`, through which they attach, and a `depot`, for code of jobs. `console` is
    what it knows of the console.
    """
    directory.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - what only takes a moment
    bundles = BundleStore(directory / "bundles", signers=bundle_signers, largest=4 << 20, left_free=0)
    logins = None if login is None else LoginDesk(Provider(login))
    authorities: list[FleetAuthority] = []
    desk = RelayDesk(bytes(TICKET_SECRET_BYTES), "fleet", "127.0.0.1:0", lambda: authorities[0].server)
    more: dict[str, Any] = {"relay": desk} if "relay" in beside else {}
    depot_desk = DepotDesk(bytes(TICKET_SECRET_BYTES), "127.0.0.1:0", lambda: authorities[0].server)
    more |= {"depot": depot_desk} if "depot" in beside else {}
    more |= {"console": console} if console is not None else {}
    async with working_parts(directory, bundles=bundles, pace=pace or Pace(), logins=logins, **more) as parts:
        now, secret = wall_time(), new_api_token()
        admin = Account(name=ADMIN, kind=AccountKind.USER, created_at=now, grants={EVERYWHERE: Access.ADMIN})
        token = IssuedToken(id=secret.id, account=ADMIN, note="", created_at=now)
        made = AuditEntry(at=now, who="", what="first start", target=ADMIN, origin="", result="ok")
        await parts.registry.add_first_admin(admin, secret, token, made)
        trust = directory / "trust"
        authority = FleetAuthority(load_or_make(trust, now), ["127.0.0.1"], now, RotationFile(trust))
        authorities.append(authority)
        async with (
            serving(parts, Doors(clients=clients, agents="127.0.0.1:0"), authority) as doors,
            _watched(Rotations(authority, parts.registry.joined, parts.engine)),
            AsyncExitStack() as stack,
        ):
            if "relay" in beside:
                await stack.enter_async_context(serving_companion(desk, RELAY_DESK_TALK, directory))
                await stack.enter_async_context(relay(directory))
                await until(lambda: desk.address is not None)
            if "depot" in beside:
                await stack.enter_async_context(serving_companion(depot_desk, DEPOT_DESK_TALK, directory))
                await stack.enter_async_context(depot(directory))
                await until(lambda: depot_desk.address is not None)
            yield Secured(
                directory=directory,
                doors=doors,
                authority=authority,
                registry=parts.registry,
                audit=parts.audit,
                admin_token=str(secret),
                secrets=[str(secret), secret.secret],
            )


@asynccontextmanager
async def _watched(rotations: Rotations) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(rotations.watch())
        yield
        watching.cancel()


@asynccontextmanager
async def joining(fleet: Secured, name: str, token: str, *options: str) -> AsyncIterator["subprocess.Popen[bytes]"]:
    """The program of an agent that joins with a token; its log is `NAME.log`."""
    state, log = fleet.directory / name, fleet.directory / f"{name}.log"
    first = 31_000 + 20 * len(list(fleet.directory.glob("*.log")))
    command = [
        *(sys.executable, "-m", "agent", "--coordinator", fleet.doors.clients, "--name", name),
        *("--state", str(state), "--gpu-provider", "fake:1xT4", "--stop-on-exit"),
        *(() if "--docker-socket" in options else ("--no-docker",)),
        *("--processes", "--job-user", "none"),  # no other user gets to the directories of tests
        *("--address", "127.0.0.1", "--ports", f"{first}-{first + 19}", *options),
    ]
    env = {**os.environ, "MUSTER_JOIN_TOKEN": token, "PYTHONPATH": str(ROOT)}
    with log.open("ab") as output:
        agent = subprocess.Popen(  # noqa: ASYNC220 - what only takes a moment
            command, cwd=ROOT, env=env, stderr=output, stdout=output
        )
    try:
        yield agent
    finally:
        if agent.poll() is None:
            agent.send_signal(signal.SIGTERM)
        await asyncio.to_thread(agent.wait, READY_WITHIN)


async def joined(fleet: Secured, node: str, **wish: object) -> Credentials:
    """What a node shows that has joined, without an agent."""
    key = new_key()
    membership = await join(fleet.doors.clients, parse_join_token(await fleet.join_token(**wish)), NodeId(node), key)
    return Credentials(authority=membership.authority, certificate=membership.certificate, key=key)


async def connect(address: str, shown: Credentials, node: str) -> tuple[grpc.StatusCode, str]:
    """How the stream of an agent ends; OK as soon as it is welcome."""
    async with open_channel(address, shown) as channel:
        stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
        call = stub.Connect(metadata=shown.metadata)
        try:
            await call.write(hello(node))
            answer = await call.read()
        except grpc.aio.AioRpcError as error:
            if reason_lost(error):
                return await connect(address, shown, node)
            return error.code(), error.details() or ""
        except asyncio.InvalidStateError:
            answer = grpc.aio.EOF
        if answer is not grpc.aio.EOF:
            call.cancel()
            return grpc.StatusCode.OK, ""
        return await call.code(), await call.details() or ""


async def until_ready(client: Client, *names: str) -> None:
    """Wait until these nodes are ready."""
    async with asyncio.timeout(READY_WITHIN):
        while {  # noqa: ASYNC110 - nobody tells when
            node.name for node in await client.nodes.list() if node.state.value == "ready"
        } != set(names):
            await asyncio.sleep(0.05)
