"""Strangers at a port of a fleet with something else than what belongs there: nothing opens, and nobody notices."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from agent.identity.enrolment import join
from coordinator.clock import wall_time
from coordinator.rpc.limits import CLIENT_HANDSHAKE
from muster.domain.ids import NodeId
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.trust.certificates import new_key, request_certificate
from muster.trust.tokens import parse_join_token
from tests.integration.programs import ROOT
from tests.integration.secured import Secured, connect, joined, joining, secured, until_ready

A = NodeId("a")
Code = grpc.StatusCode
NOISE = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "HTTP/2 in plain text": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "SSH": b"SSH-2.0-OpenSSH_9.2p1\r\n",
    "half a TLS greeting": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "a TLS greeting of a wrong length": b"\x16\x03\x01\xff\xff\x01\xff\xff\xff" + bytes(70_000),
    "zeros": bytes(100_000),
    "much": bytes(range(256)) * 4_000,
}
UP_TO = 5.0
"""Seconds in which whoever answers noise at all has done so."""


async def answered(address: str, noise: bytes) -> bytes:
    """The answer to noise until the other side hangs up, or has had its time."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    said = b""
    try:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(UP_TO):
                writer.write(noise)
                while piece := await reader.read(4096):
                    said += piece
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    return said


async def test_noise_at_any_port_is_answered_with_nothing_and_harms_nobody(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client, joining(fleet, "a", await fleet.join_token()):
        await until_ready(client, "a")
        peers = f"127.0.0.1:{int((tmp_path / 'a' / 'peer_port').read_text())}"
        ports = (fleet.doors.clients, fleet.doors.agents, peers)
        said = await asyncio.gather(*(answered(port, noise) for port in ports for noise in NOISE.values()))
        # A TLS alert may come, which says that this was no TLS; nothing else.
        assert {each[:1] for each in said} <= {b"", b"\x15"}
        assert max(map(len, said)) < 10
        assert [(node.name, node.state.value) for node in await client.nodes.list()] == [("a", "ready")]
    log = (tmp_path / "a.log").read_text()
    assert "Traceback" not in log
    assert log.count("connected to the coordinator") == 1


KNOCKING = """
import coordinator.main
import socket, grpc
from concurrent.futures import ThreadPoolExecutor
from coordinator.clock import wall_time
from muster.rpc.channel import served_credentials
from muster.trust.certificates import issue_server, make_authority

shown = issue_server(make_authority(wall_time()), [], wall_time())
server = grpc.server(ThreadPoolExecutor())
port = server.add_secure_port("127.0.0.1:0", served_credentials(lambda: shown, None))
server.start()
for _ in range(3):
    with socket.create_connection(("127.0.0.1", port)) as knocking:
        knocking.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
        while knocking.recv(100):
            pass
server.stop(None).wait()
"""


def test_a_stranger_who_knocks_writes_nothing_into_the_coordinators_log() -> None:
    environ = {key: value for key, value in os.environ.items() if key != "GRPC_VERBOSITY"}
    program = [sys.executable, "-c", KNOCKING]
    done = subprocess.run(program, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("", "")


async def test_who_says_nothing_is_shown_the_door(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        host, _, port = fleet.doors.clients.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        async with asyncio.timeout(CLIENT_HANDSHAKE * 3):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()


async def test_a_certificate_whose_time_is_over_opens_no_door(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        key, token = new_key(), parse_join_token(await fleet.join_token())
        await join(fleet.doors.clients, token, A, key)
        request = request_certificate(key, A)
        for life, status in ((timedelta(seconds=-1), Code.UNAVAILABLE), (timedelta(hours=1), Code.OK)):
            certificate = fleet.authority.certify(request, A, wall_time(), life)
            shown = Credentials(authority=fleet.authority.certificate, certificate=certificate, key=key)
            assert (await connect(fleet.doors.agents, shown, "a"))[0] is status


async def test_the_coordinators_own_certificate_is_no_nodes(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        server = fleet.authority.server
        shown = Credentials(authority=fleet.authority.certificate, certificate=server.certificate, key=server.key)
        assert (await connect(fleet.doors.agents, shown, "a"))[0] in {Code.UNAVAILABLE, Code.UNAUTHENTICATED}


@pytest.mark.parametrize("call", ["Connect", "PushLogs", "Renew", "Secrets"])
async def test_a_node_that_was_sent_away_may_nothing_any_more(tmp_path: Path, call: str) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        shown = await joined(fleet, "a")
        await admin.nodes.revoke("a")
        assert await _refused(fleet, shown, call) == (
            Code.UNAUTHENTICATED,
            "node a was sent away; it may join again with a new token",
        )


@pytest.mark.parametrize("call", ["Connect", "PushLogs", "Renew", "Secrets"])
async def test_a_person_is_no_node(tmp_path: Path, call: str) -> None:
    """Not even the admin, at either door."""
    async with secured(tmp_path) as fleet:
        token = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
        assert (await _refused(fleet, token, call))[0] is Code.UNAVAILABLE
        async with open_channel(fleet.doors.clients, token) as channel:
            assert (await _status(_made(channel, call, token)))[0] is Code.UNIMPLEMENTED


async def _refused(fleet: Secured, shown: Credentials, call: str) -> tuple[Code, str | None]:
    async with open_channel(fleet.doors.agents, shown) as channel:
        return await _status(_made(channel, call, shown))


def _made(channel: grpc.aio.Channel, call: str, shown: Credentials) -> Any:
    stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
    messages = {
        "Connect": (),
        "PushLogs": (),
        "Renew": (pb.RenewRequest(request=request_certificate(new_key(), A)),),
        "Secrets": (pb.SecretsRequest(execution="j-1-0"),),
    }
    return getattr(stub, call)(*messages[call], metadata=shown.metadata)


async def _status(call: Any) -> tuple[Code, str | None]:
    return await call.code(), await call.details()
