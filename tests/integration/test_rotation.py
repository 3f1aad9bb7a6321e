"""A new authority for the whole fleet: nodes move with new keys, jobs do not notice, and nobody lacks advice."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from typer.testing import CliRunner, Result

from agent.identity.enrolment import join
from muster.cli.program import program
from muster.client.client import Client
from muster.client.endpoint import Login, keep_login, login_of
from muster.domain.errors import ConflictError, UnavailableError
from muster.domain.fleet.access import AuthorityStatus
from muster.domain.fleet.node import NodeState
from muster.domain.ids import NodeId
from muster.domain.jobs.lifecycle import JobPhase
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import agents_pb2, agents_pb2_grpc
from muster.trust.certificates import fingerprint, fingerprints, matches_key, new_key, request_certificate
from muster.trust.tokens import parse_join_token
from tests.integration.jobs import shell
from tests.integration.secured import Secured, joined, joining, secured, until_ready
from tests.integration.strangers import hello

WITHIN = 60.0


async def until(answer: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN):
        while not await answer():  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(0.1)


async def moved(admin: Client, stage: str) -> AuthorityStatus:
    """How far the change is once this stage is reached and no node that is there has still to move."""

    async def has() -> bool:
        status = await admin.authority.show()
        return status.stage == stage and not (status.waiting or status.away)

    await until(has)
    return await admin.authority.show()


async def command(home: Path, *words: str) -> Result:
    """The command line of a user who keeps logins in that directory."""
    env = {"MUSTER_HOME": str(home), "COLUMNS": "250"}
    return await asyncio.to_thread(CliRunner().invoke, program(words), words, env=env)


def authority_of(home: Path, address: str) -> bytes:
    """The authorities that the login of that user trusts."""
    kept = login_of({"MUSTER_HOME": str(home)}, address).authority
    assert kept is not None
    return kept.encode()


def admin_of(fleet: Secured, authority: bytes) -> Client:
    return Client(fleet.doors.clients, Credentials(authority=authority, token=fleet.admin_token))


async def test_the_authority_and_all_keys_change_while_a_gang_runs(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token, old, go = await fleet.join_token(uses=2), fleet.authority.certificate, tmp_path / "go"
        async with joining(fleet, "a", token), joining(fleet, "b", token):
            await until_ready(admin, "a", "b")
            job = await admin.jobs.submit(shell(f"until [ -e {go} ]; do sleep 0.1; done", 2, max_per_node=1))
            await until(lambda: _is(admin, job.id, JobPhase.RUNNING))
            first = {node.name: node.key for node in await admin.nodes.enrolled()}

            assert (await admin.authority.rotate()).stage == "introducing"
            with pytest.raises(ConflictError, match="being changed already"):
                await admin.authority.rotate()
            status = await moved(admin, "issuing")
            assert [each.signs for each in status.authorities] == ["the coordinator", "nodes"]
            assert (await admin.authority.finish()).stage == "steady"
            assert fingerprint(fleet.authority.certificate) == status.authorities[1].fingerprint

            async with admin_of(fleet, fleet.authority.certificate) as again:
                status = await moved(again, "steady")
                assert (len(status.authorities), status.moved) == (1, 2)
                await until_ready(again, "a", "b")
                last = {node.name: node.key for node in await again.nodes.enrolled()}
                assert all(first[name] != last[name] for name in first)
                go.touch()
                assert (await again.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED
                assert len((await again.jobs.get(job.id)).attempts) == 1
                done = [entry.what for entry in await again.audit.list(limit=10_000)]
                assert {"authority.rotate", "authority.finish"} <= set(done)
                told = [(event.kind, event.by) async for event in again.fleet.events()]
                assert told[-2:] == [("authority_rotating", "admin"), ("authority_rotated", "admin")]
        async with (
            admin_of(fleet, fleet.authority.certificate) as again,
            joining(fleet, "a", token),  # which is of the former authority, and used up
        ):
            await until(lambda: _is_ready(again, "a"))
        kept = json.loads((tmp_path / "a" / "trust" / "node.json").read_text())
        assert kept["authority"].encode() == fleet.authority.certificate
        assert kept["former"]
        assert matches_key(kept["certificate"].encode(), (tmp_path / "a" / "trust" / "key.pem").read_bytes())
        async with admin_of(fleet, old) as unbelieving:
            with pytest.raises(UnavailableError, match=r"`muster login .*` learns the new one"):
                await unbelieving.nodes.list()


async def _is_ready(client: Client, node: str) -> bool:
    return (await client.nodes.get(node)).state is NodeState.READY


async def _is(client: Client, job: str, phase: JobPhase) -> bool:
    return (await client.jobs.get(job)).phase is phase


async def test_a_node_that_has_not_moved_holds_the_end_up_unless_it_is_forced(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        async with joining(fleet, "a", await fleet.join_token()):
            await until_ready(admin, "a")
        await admin.authority.rotate()
        status = await admin.authority.show()
        assert (status.stage, status.waiting, status.moved) == ("introducing", ("a",), 0)
        with pytest.raises(ConflictError, match="1 nodes that are there have not moved yet: a"):
            await admin.authority.finish()
        assert (await admin.authority.finish(force=True)).stage == "steady"

        async with admin_of(fleet, fleet.authority.certificate) as again:
            async with joining(fleet, "a", ""):
                await until(lambda: _says(tmp_path / "a.log", "have it join again"))
            token, _ = await again.join_tokens.create()
            async with joining(fleet, "a", token):
                await until_ready(again, "a")


async def test_a_node_that_is_forced_out_loses_its_open_stream_at_once(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        shown = await joined(fleet, "a")
        async with open_channel(fleet.doors.agents, shown) as channel:
            stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
            call = stub.Connect()
            await call.write(hello("a"))
            assert (await call.read()).HasField("welcome")
            await admin.authority.rotate()
            await admin.authority.finish(force=True)
            async with asyncio.timeout(WITHIN):
                with suppress(grpc.aio.AioRpcError):
                    while await call.read() is not grpc.aio.EOF:
                        pass
                ended = (await call.code(), await call.details())
            assert ended == (grpc.StatusCode.UNAUTHENTICATED, "what you have shown counts no more")
            # Nothing else is to be had on the connection that is still open.
            again = stub.Renew(agents_pb2.RenewRequest(request=request_certificate(new_key(), NodeId("a"))))
            assert await again.code() is grpc.StatusCode.UNAUTHENTICATED
            assert "of an authority that counts no more" in await again.details()
        async with admin_of(fleet, fleet.authority.certificate) as later:
            said = {entry.result for entry in await later.audit.list()}
            assert {"stream ended: revoked, changed or expired", "former authority node/a"} <= said


async def _says(journal: Path, words: str) -> bool:
    return words in await asyncio.to_thread(journal.read_text)


async def test_a_node_joins_while_the_authority_changes_and_later_with_a_token_of_before(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = parse_join_token(await fleet.join_token(uses=3))
        await admin.authority.rotate()
        during = await join(fleet.doors.clients, token, NodeId("a"), new_key())
        assert len(fingerprints(during.authority)) == 2
        await admin.authority.finish(force=True)
        after = await join(fleet.doors.clients, token, NodeId("b"), new_key())
        assert after.authority == fleet.authority.certificate


async def test_clients_learn_while_it_changes_and_others_log_in_once_more(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        address, old = fleet.doors.clients, fleet.authority.certificate.decode()
        homes = {name: tmp_path / name for name in ("here", "away")}
        for home in homes.values():
            keep_login(home, Login(address=address, authority=old, token=fleet.admin_token))
        await admin.authority.rotate()
        assert (await command(homes["here"], "nodes")).exit_code == 0
        assert len(fingerprints(authority_of(homes["here"], address))) == 2
        await moved(admin, "issuing")
        await admin.authority.finish()

        assert (await command(homes["here"], "nodes")).exit_code == 0
        assert authority_of(homes["here"], address) == fleet.authority.certificate
        failed = await command(homes["away"], "nodes")
        assert (failed.exit_code != 0, f"`muster login {address}` learns the new one" in failed.stderr) == (True, True)
        token = tmp_path / "token"
        token.write_text(fleet.admin_token)
        assert (await command(homes["away"], "login", address, "--token-file", str(token))).exit_code == 0
        assert authority_of(homes["away"], address) == fleet.authority.certificate
        assert (await command(homes["away"], "nodes")).exit_code == 0
        shown = await command(homes["away"], "authority", "show")
        assert f"sha256:{fleet.authority.fingerprint}" in shown.stdout
