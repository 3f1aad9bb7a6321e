"""What people may do and see: tokens, projects, access, the audit log, and what is left of secrets."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from agent.identity.enrolment import join
from muster.client.client import Client
from muster.domain.errors import ConflictError, PermissionDeniedError, UnavailableError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.ids import NodeId
from muster.domain.jobs.lifecycle import JobPhase
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import jobs_pb2, jobs_pb2_grpc, nodes_pb2, nodes_pb2_grpc
from muster.trust.certificates import new_key
from muster.trust.tokens import new_api_token, new_join_token
from muster.wire import job_spec_to_wire
from tests.integration.jobs import shell
from tests.integration.secured import joining, secured, until_ready

Code = grpc.StatusCode


async def test_who_shows_no_token_or_a_wrong_one_is_refused(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        short = await fleet.user("short", {EVERYWHERE: Access.VIEWER}, timedelta(milliseconds=1))
        gone = await fleet.user("gone", {EVERYWHERE: Access.VIEWER})
        await admin.accounts.remove("gone", (await admin.accounts.list())[1].kind)
        revoked = await fleet.user("revoked", {EVERYWHERE: Access.VIEWER})
        (token,) = [token for token in await admin.tokens.list() if token.account == "revoked"]
        await admin.tokens.revoke(token.id)
        for bad in (str(new_api_token()), "rubbish", short, gone, revoked):
            async with fleet.client(bad) as client:
                with pytest.raises(PermissionDeniedError, match="not known, has expired or was revoked"):
                    await client.nodes.list()
        async with Client(fleet.doors.clients, Credentials(authority=fleet.authority.certificate)) as client:
            with pytest.raises(PermissionDeniedError, match="log in with `muster login`"):
                await client.nodes.list()
        assert {"no token", "wrong token", "malformed token"} <= {entry.result for entry in await admin.audit.list()}


async def test_plain_text_gets_no_answer(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, Client(fleet.doors.clients, Credentials(token=fleet.admin_token)) as client:
        with pytest.raises(UnavailableError):
            await client.nodes.list()


async def test_projects_do_not_learn_of_each_other(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        red, blue = [await fleet.user(name, {name: Access.MEMBER}) for name in ("red", "blue")]
        async with fleet.client(red) as a, fleet.client(blue) as b:
            job = await b.jobs.submit(shell("true", project="blue"), queue_anyway=True)
            own = await a.jobs.submit(shell("true", project="red"), queue_anyway=True)
            nobodys = "nosuchjob"
            for name in (job.id, job.id[:5], job.spec.name if job.spec.name != own.spec.name else job.id):
                for ask in (a.jobs.get, a.jobs.stop, a.jobs.delete, a.jobs.why, a.jobs.wait):
                    with pytest.raises(UnknownNameError) as unseen:
                        await ask(name)
                    with pytest.raises(UnknownNameError) as unknown:
                        await ask(nobodys)
                    assert str(unseen.value).replace(name, nobodys) == str(unknown.value)
                with pytest.raises(UnknownNameError):
                    await anext(a.jobs.logs(name))
            assert [each.id async for each in a.jobs.list()] == [own.id]
            assert (await a.jobs.get(own.spec.name)).id == own.id
            assert {each.id async for each in admin.jobs.list()} == {own.id, job.id}
            with pytest.raises(UnknownNameError, match="there is no project 'blue'"):
                await a.jobs.submit(shell("true", project="blue"), queue_anyway=True)
            assert (await b.jobs.stop(job.id)).phase is JobPhase.STOPPED
            refused = [entry for entry in await admin.audit.list(who="red") if entry.target == job.id]
            assert {entry.what for entry in refused} >= {"jobs.get", "jobs.stop", "jobs.delete"}


async def test_raw_calls_to_logs_and_watch_of_another_project_find_nothing(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        job = await admin.jobs.submit(shell("true"), queue_anyway=True)
        shown = Credentials(authority=fleet.authority.certificate, token=await fleet.user("r", {"red": Access.ADMIN}))
        async with open_channel(fleet.doors.clients, shown) as channel:
            stub: Any = jobs_pb2_grpc.JobServiceStub(channel)
            for call in (
                stub.Logs(jobs_pb2.LogsRequest(job=job.id), metadata=shown.metadata),
                stub.Watch(jobs_pb2.WatchRequest(job=job.id), metadata=shown.metadata),
            ):
                assert await call.code() is Code.NOT_FOUND


@pytest.mark.parametrize("token", ["-1", "x", "9" * 19, "9" * 5000])
async def test_pages_and_times_that_no_machine_can_count_are_refused(tmp_path: Path, token: str) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        job = await admin.jobs.submit(shell("true"), queue_anyway=True)
        shown = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
        async with open_channel(fleet.doors.clients, shown) as channel:
            jobs: Any = jobs_pb2_grpc.JobServiceStub(channel)
            nodes: Any = nodes_pb2_grpc.NodeServiceStub(channel)
            since = Timestamp(seconds=2**62)
            for call in (
                jobs.List(jobs_pb2.ListJobsRequest(page_token=token), metadata=shown.metadata),
                nodes.List(nodes_pb2.ListNodesRequest(page_token=token), metadata=shown.metadata),
                jobs.Logs(jobs_pb2.LogsRequest(job=job.id, since=since), metadata=shown.metadata),
            ):
                assert await call.code() is Code.INVALID_ARGUMENT


async def test_who_waits_behind_a_job_of_another_project_does_not_learn_which(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        red, blue = [await fleet.user(name, {name: Access.MEMBER}) for name in ("red", "blue")]
        async with fleet.client(red) as a, fleet.client(blue) as b:
            first = await b.jobs.submit(shell("true", name="blues-own", project="blue"), queue_anyway=True)
            second = await a.jobs.submit(shell("true", project="red"), queue_anyway=True)
            assert (await admin.jobs.why(second.id)).summary.endswith(f"the next one is blues-own ({first.id})")
            assert (await a.jobs.why(second.id)).summary.endswith("the next one is a job of another project")


async def test_a_key_of_somebody_else_answers_with_none_of_his_jobs(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        red, blue = [await fleet.user(name, {name: Access.MEMBER}) for name in ("red", "blue")]
        answers = []
        for token, project in ((red, "red"), (blue, "blue"), (red, "red")):
            shown = Credentials(authority=fleet.authority.certificate, token=token)
            request = jobs_pb2.SubmitRequest(
                spec=job_spec_to_wire(shell("true", project=project)), queue_anyway=True, idempotency_key="k"
            )
            async with open_channel(fleet.doors.clients, shown) as channel:
                submit = jobs_pb2_grpc.JobServiceStub(channel).Submit
                answers.append((await submit(request, metadata=shown.metadata)).job)
        assert [job.spec.project for job in answers] == ["red", "blue", "red"]
        assert answers[0].id == answers[2].id != answers[1].id


async def test_everybody_may_what_his_access_says_and_no_more(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        job = await admin.jobs.submit(shell("true"), queue_anyway=True)
        tokens = {access: await fleet.user(f"u-{access}", {EVERYWHERE: access}) for access in Access}

        async def may(access: Access, ask: str) -> bool:
            asks: dict[str, Any] = {
                "look": lambda client: client.jobs.get(job.id),
                "submit": lambda client: client.jobs.submit(shell("true"), queue_anyway=True, dry_run=True),
                "let in": lambda client: client.join_tokens.create(),
                "rule": lambda client: client.accounts.list(),
            }
            async with fleet.client(tokens[access]) as client:
                try:
                    await asks[ask](client)
                except PermissionDeniedError:
                    return False
            return True

        allowed = {
            access: [ask for ask in ("look", "submit", "let in", "rule") if await may(access, ask)] for access in Access
        }
        assert allowed == {
            Access.VIEWER: ["look"],
            Access.MEMBER: ["look", "submit"],
            Access.OPERATOR: ["look", "submit", "let in"],
            Access.ADMIN: ["look", "submit", "let in", "rule"],
        }


async def test_a_follower_whose_access_is_taken_away_is_told_so_at_once(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.user("red", {"red": Access.MEMBER})
        async with fleet.client(token) as client:
            job = await client.jobs.submit(shell("true", project="red"), queue_anyway=True)
            watch = client.jobs.watch(job.id)
            await anext(watch)
            waiting = asyncio.ensure_future(anext(watch))
            await asyncio.sleep(0.2)
            await admin.accounts.grant("red", "red", None)
            async with asyncio.timeout(10):
                with pytest.raises(PermissionDeniedError, match="counts no more"):
                    await waiting


async def test_nobody_makes_himself_or_others_more_than_he_is(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.user("red", {"red": Access.ADMIN}, timedelta(hours=1))
        async with fleet.client(token) as client:
            with pytest.raises(PermissionDeniedError):
                await client.tokens.create("admin")
            with pytest.raises(PermissionDeniedError):
                await client.accounts.grant("red", EVERYWHERE, Access.ADMIN)
            _, own = await client.tokens.create(note="mine")
            assert own.expires_at is not None
            assert {each.account for each in await client.tokens.list()} == {"red"}
            (theirs,) = [each for each in await admin.tokens.list() if each.account == "admin"]
            with pytest.raises(PermissionDeniedError):
                await client.tokens.revoke(theirs.id)
        with pytest.raises(ConflictError, match="leave nobody who may do everything"):
            await admin.accounts.grant("admin", EVERYWHERE, None)


async def test_the_audit_log_says_who_did_what_from_where(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        red = await fleet.user("red", {"red": Access.VIEWER, "default": Access.MEMBER})
        async with fleet.client(red) as client:
            job = await client.jobs.submit(shell("true"), queue_anyway=True)
            with pytest.raises(PermissionDeniedError):
                await client.jobs.submit(shell("true", project="red"), queue_anyway=True)
        entries = await admin.audit.list(who="red")
        assert [(e.what, e.target, e.result) for e in entries] == [
            ("jobs.submit", job.id, "ok"),
            ("jobs.submit", "run", "needs member (project)"),
        ] or entries[1].result == "needs member (project)"
        assert all(entry.origin.startswith("ipv4:127.0.0.1:") for entry in entries)


async def test_no_secret_is_left_in_the_database_or_a_log(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        token = await fleet.join_token()
        await fleet.user("red", {"red": Access.MEMBER})
        wrong = new_join_token(fleet.authority.fingerprint)
        with pytest.raises(PermissionDeniedError):
            await join(fleet.doors.clients, wrong, NodeId("x"), new_key())
        async with joining(fleet, "a", token):
            await until_ready(client, "a")
            await client.jobs.wait((await client.jobs.submit(shell("env"))).id)
        await fleet.audit.flush()
    assert secrets_in(tmp_path, fleet.secrets) == []


def secrets_in(directory: Path, secrets: list[str]) -> list[tuple[str, str]]:
    """Where secrets stand, whole tokens or the secret part alone."""
    parts = [*secrets, *(secret.split("-")[3] for secret in secrets if secret.count("-") > 2), "PRIVATE KEY"]
    allowed = {"key.pem", "authority.key"}
    return [
        (path.name, secret[:20])
        for path in directory.rglob("*")
        if path.is_file() and path.name not in allowed
        for secret in parts
        if secret.encode() in path.read_bytes()
    ]
