"""Secrets of projects over a real coordinator: who may put, see and use them, and which nodes are given them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from agent.identity.enrolment import join
from coordinator.clock import wall_time
from muster import wire
from muster.client.client import Client
from muster.domain.errors import (
    ConflictError,
    InvalidJobError,
    PermissionDeniedError,
    UnknownNameError,
)
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.fleet.node import Inventory, RuntimeOffer
from muster.domain.fleet.secret import DeliveredSecret, SecretKind
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.failure import Failure, FailureKind
from muster.domain.jobs.job import JobSpec, Resources, Role, RuntimeKind
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.secret_use import SecretUse
from muster.rpc import protocol
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.trust.certificates import new_key
from muster.trust.tokens import parse_join_token
from tests.integration.jobs import shell
from tests.integration.secured import Secured, secured

VALUE = b"swordfish-7f3a"
REGISTRY = {"server": b"ghcr.io", "username": b"robot", "password": VALUE}
S3 = {"access-key-id": b"AKIA0", "secret-access-key": VALUE, "endpoint": b"https://s3.example.org"}


def using(*uses: SecretUse, **keys: Any) -> JobSpec:
    """A job whose one execution gets these secrets."""
    spec = shell("true", project=keys.pop("project", "default"))
    return replace(spec, roles=tuple(replace(role, secrets=uses, **keys) for role in spec.roles))


async def delivered(fleet: Secured, shown: Credentials, execution: str) -> tuple[DeliveredSecret, ...]:
    """What a node is given for an execution."""
    async with open_channel(fleet.doors.agents, shown) as channel:
        stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
        answer = await stub.Secrets(pb.SecretsRequest(execution=execution), timeout=10)
    return tuple(map(wire.delivered_from_wire, answer.secrets))


async def refusal(fleet: Secured, shown: Credentials, execution: str) -> tuple[grpc.StatusCode, str]:
    """Why a node is given nothing."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await delivered(fleet, shown, execution)
    return refused.value.code(), refused.value.details() or ""


@dataclass
class Node:
    """A node without an agent behind it."""

    shown: Credentials
    stream: Any = None

    async def reports(self, execution: ExecutionId, stage: Stage, failure: Failure | None = None) -> None:
        report = wire.report_to_wire(Report(execution=execution, stage=stage, at=wall_time(), failure=failure))
        await self.stream.write(pb.AgentMessage(reports=pb.Reports(reports=[report])))


@asynccontextmanager
async def node(fleet: Secured, name: str) -> AsyncIterator[Node]:
    """A node that has joined and says that it can run everything."""
    key = new_key()
    membership = await join(fleet.doors.clients, parse_join_token(await fleet.join_token()), NodeId(name), key)
    shown = Credentials(authority=membership.authority, certificate=membership.certificate, key=key)
    offers = tuple(RuntimeOffer(kind=kind, version="1") for kind in RuntimeKind)
    inventory = wire.inventory_to_wire(Inventory(cpus=8, memory=1 << 30, runtimes=offers))
    said = pb.Hello(node=name, identity=name, address="127.0.0.9", inventory=inventory)
    said.protocol = protocol.PROTOCOL_VERSION
    said.features.extend(ALL_FEATURES)
    async with open_channel(fleet.doors.agents, shown) as channel:
        stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
        stream = stub.Connect(metadata=shown.metadata)
        await stream.write(pb.AgentMessage(hello=said))
        await stream.read()
        yield Node(shown, stream)
        stream.cancel()


def everything(directory: Path) -> bytes:
    """All that lies in a directory, the database's journal too."""
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


async def placed(client: Client, spec: JobSpec) -> ExecutionId:
    """The only execution of a job that was placed at once."""
    job = await client.jobs.submit(spec)
    (execution,) = (await client.jobs.get(job.id)).attempts[-1].executions
    assert execution.node is not None
    return execution.id


async def test_a_secret_is_put_listed_replaced_and_removed_but_never_read_back(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        made = await client.secrets.set("wandb", {"key": VALUE})
        assert (made.project, made.name, made.kind, made.keys) == ("default", "wandb", SecretKind.GENERIC, ("key",))
        assert made.updated_by == "admin"
        with pytest.raises(ConflictError, match="already"):
            await client.secrets.set("wandb", {"key": b"other"})
        again = await client.secrets.set("wandb", {"a": b"1", "b": b"2"}, replace=True)
        assert (again.keys, again.created_at) == (("a", "b"), made.created_at)
        assert await client.secrets.list() == (again,)
        await client.secrets.remove("wandb")
        assert await client.secrets.list() == ()
        with pytest.raises(UnknownNameError, match="has no secret 'wandb'"):
            await client.secrets.remove("wandb")


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        ("generic", {}, "has no values"),
        ("generic", {"../x": b"1"}, "a key has at most 63 letters"),
        ("generic", {"a": b""}, "has nothing as its 'a'"),
        ("generic", {"a": bytes(64 * 1024 + 1)}, "64 KiB are the most"),
        ("generic", {str(number): bytes(64 * 1024) for number in range(5)}, "256 KiB are the most"),
        ("generic", {str(number): b"1" for number in range(65)}, "at most 64 are taken"),
        ("registry", {"server": b"ghcr.io"}, "needs password and server and username"),
        ("registry", {**REGISTRY, "server": b"no server"}, "no server like ghcr.io"),
        ("registry", {**REGISTRY, "password": b"two\nlines"}, "one line of text as its 'password'"),
        ("s3", {**S3, "extra": b"1"}, "has the key 'extra'"),
        ("git", {"server": b"git.example.org", "username": b"ada"}, "or ssh-key"),
        ("gpg", {"a": b"1"}, "known are generic, registry, s3, azure, http, git"),
    ],
)
async def test_what_no_secret_can_be_is_refused_with_the_reason(
    tmp_path: Path, kind: str, values: dict[str, bytes], problem: str
) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        with pytest.raises(InvalidJobError, match=problem) as refused:
            await client.secrets.set("x", values, kind=kind)  # type: ignore[arg-type]  # also kinds that there are not
        assert "two" not in str(refused.value)
        assert await client.secrets.list() == ()


async def test_a_project_has_nothing_of_the_secrets_of_another(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        red = await fleet.user("red", {"red": Access.ADMIN})
        await fleet.user("blue", {"blue": Access.ADMIN})
        await admin.secrets.set("wandb", {"key": VALUE}, project="blue")
        async with fleet.client(red) as client:
            asks: tuple[Any, ...] = (
                lambda: client.secrets.list("blue"),
                lambda: client.secrets.set("wandb", {"key": b"x"}, project="blue", replace=True),
                lambda: client.secrets.remove("wandb", "blue"),
                lambda: client.jobs.submit(using(SecretUse(secret="wandb"), project="blue"), queue_anyway=True),
            )
            for ask in asks:
                with pytest.raises(UnknownNameError, match="there is no project 'blue'"):
                    await ask()
            with pytest.raises(InvalidJobError, match="project red has no secret 'wandb'"):
                await client.jobs.submit(using(SecretUse(secret="wandb"), project="red"), queue_anyway=True)
        assert [each.name for each in await admin.secrets.list("blue")] == ["wandb"]


async def test_members_use_secrets_and_operators_put_them(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.secrets.set("wandb", {"key": VALUE})
        member = await fleet.user("m", {"default": Access.MEMBER})
        viewer = await fleet.user("v", {"default": Access.VIEWER})
        operator = await fleet.user("o", {"default": Access.OPERATOR})
        async with fleet.client(member) as client:
            assert [each.name for each in await client.secrets.list()] == ["wandb"]
            await client.jobs.submit(using(SecretUse(secret="wandb")), queue_anyway=True)
            with pytest.raises(PermissionDeniedError, match="needs operator access"):
                await client.secrets.set("own", {"key": b"x"})
        async with fleet.client(viewer) as client:
            with pytest.raises(PermissionDeniedError, match="needs member access"):
                await client.secrets.list()
        async with fleet.client(operator) as client:
            assert (await client.secrets.set("own", {"key": b"x"})).updated_by == "o"


async def test_changes_and_refusals_are_in_the_audit_log_without_values(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        viewer = await fleet.user("v", {"default": Access.VIEWER})
        await admin.secrets.set("r", REGISTRY, kind=SecretKind.REGISTRY)
        with pytest.raises(InvalidJobError):
            await admin.secrets.set("bad", {"a b": VALUE})
        async with fleet.client(viewer) as client:
            with pytest.raises(PermissionDeniedError):
                await client.secrets.set("own", {"key": VALUE})
        await admin.secrets.remove("r")
        entries = [each for each in await admin.audit.list() if each.what.startswith("secrets.")]
        assert {(each.who, each.what, each.target, each.result) for each in entries} == {
            ("admin", "secrets.set", "default/r", "ok, registry with password, server, username"),
            ("admin", "secrets.set", "default/bad", "invalid_argument"),
            ("v", "secrets.set", "default/own", "needs operator (project)"),
            ("admin", "secrets.remove", "default/r", "ok"),
        }


async def test_a_node_is_given_what_its_execution_names_while_it_is_not_over(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client, node(fleet, "a") as a:
        await client.secrets.set("wandb", {"key": VALUE, "team": b"blue"})
        await client.secrets.set("s3", S3, kind=SecretKind.S3)
        await client.secrets.set("unused", {"key": b"never"})
        uses = (SecretUse(secret="wandb", env={"WANDB_API_KEY": "key"}), SecretUse(secret="s3"))
        execution = await placed(client, using(*uses))
        assert await delivered(fleet, a.shown, execution) == (
            DeliveredSecret(name="wandb", kind=SecretKind.GENERIC, values={"key": VALUE}),
            DeliveredSecret(name="s3", kind=SecretKind.S3, values=S3),
        )
        async with node(fleet, "b") as b:
            code, said = await refusal(fleet, b.shown, execution)
            assert (code, said) == (grpc.StatusCode.PERMISSION_DENIED, f"execution {execution} is not on node/b")
        stranger = fleet.node("c")
        assert (await refusal(fleet, stranger, execution))[0] is grpc.StatusCode.UNAUTHENTICATED
        assert (await refusal(fleet, a.shown, "nosuch-1-0"))[0] is grpc.StatusCode.NOT_FOUND
        asked = [entry for entry in await client.audit.list() if entry.what == "secrets.deliver"]
        given = (asked[0].who, asked[0].target, asked[0].result)
        assert given == ("node/a", "default/s3, wandb", f"ok, given to execution {execution}")
        assert [entry.who for entry in asked[1:2]] == ["node/b"]

        broken = Failure(kind=FailureKind.INVALID_OPTION, message="no")
        await a.reports(execution, Stage.FAILED, broken)
        job = execution.partition("-")[0]
        assert (await client.jobs.wait(job)).phase is JobPhase.FAILED
        code, said = await refusal(fleet, a.shown, execution)
        assert (code, said) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            f"execution {execution} is over (failed); it gets no secrets any more",
        )


async def test_people_cannot_ask_as_a_node(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client, node(fleet, "a"):
        await client.secrets.set("wandb", {"key": VALUE})
        execution = await placed(client, using(SecretUse(secret="wandb")))
        shown = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
        async with open_channel(fleet.doors.clients, shown) as channel:
            stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
            call = stub.Secrets(pb.SecretsRequest(execution=execution), metadata=shown.metadata)
            assert await call.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_credentials_for_the_registry_of_the_image_come_along(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client, node(fleet, "a") as a:
        for name, server in (("gh", b"ghcr.io"), ("team", b"https://ghcr.io/team"), ("hub", b"docker.io")):
            await client.secrets.set(name, {**REGISTRY, "server": server}, kind=SecretKind.REGISTRY)
        images = ("ghcr.io/team/train:1", "ghcr.io/other/train", "busybox", "quay.io/a/b")
        given = {}
        for image in images:
            role = Role(image=image, resources=Resources(cpu_millis=100))
            execution = await placed(client, replace(shell("true"), roles=(role,)))
            given[image] = [each.name for each in await delivered(fleet, a.shown, execution)]
        assert given == {images[0]: ["team", "gh"], images[1]: ["gh"], images[2]: ["hub"], images[3]: []}


async def test_a_secret_that_is_gone_or_has_changed_since_is_named(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client, node(fleet, "a") as a:
        await client.secrets.set("wandb", {"key": VALUE})
        execution = await placed(client, using(SecretUse(secret="wandb", env={"KEY": "key"})))
        await client.secrets.set("wandb", {"other": VALUE}, replace=True)
        assert "the secret 'wandb' of project default has no 'key' any more" in (
            await refusal(fleet, a.shown, execution)
        )
        await client.secrets.set("wandb", {"key": b"a\0b"}, replace=True)
        assert "KEY cannot hold" in (await refusal(fleet, a.shown, execution))[1]
        await client.secrets.remove("wandb")
        code, said = await refusal(fleet, a.shown, execution)
        assert (code, said.partition(";")[0]) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "project default has no secret 'wandb' any more",
        )


async def test_a_job_is_accepted_with_its_secrets_spelled_out_and_without_values(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        await client.secrets.set("wandb", {"key": VALUE})
        await client.secrets.set("s3", S3, kind=SecretKind.S3)
        uses = (SecretUse(secret="wandb", env={"KEY": ""}), SecretUse(secret="s3", standard_env=True))
        job = await client.jobs.submit(using(*uses), queue_anyway=True)
        assert [(use.secret, use.env, use.directory) for use in job.spec.roles[0].secrets] == [
            ("wandb", {"KEY": "key"}, None),
            (
                "s3",
                {
                    "AWS_ACCESS_KEY_ID": "access-key-id",
                    "AWS_SECRET_ACCESS_KEY": "secret-access-key",
                    "AWS_ENDPOINT_URL": "endpoint",
                },
                None,
            ),
        ]
        with pytest.raises(InvalidJobError) as refused:
            await client.jobs.submit(
                using(SecretUse(secret="wandb", env={"A": "kee"}), SecretUse(secret="nosuch")), queue_anyway=True
            )
        shows = "`muster secrets list --project default` shows those that it has"
        assert str(refused.value).splitlines() == [
            "roles[0].secrets[0].env: secret 'wandb' has the keys key, no 'kee'",
            f"roles[0].secrets[1].secret: project default has no secret 'nosuch'; {shows}",
        ]
        kept = everything(tmp_path)
    assert b"wandb" in kept
    assert VALUE not in kept + everything(tmp_path)


async def test_everywhere_means_every_project(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        operator = await fleet.user("o", {EVERYWHERE: Access.OPERATOR})
        async with fleet.client(operator) as client:
            await client.secrets.set("x", {"key": VALUE}, project="default")
            with pytest.raises(UnknownNameError, match="there is no project 'nosuch'"):
                await client.secrets.set("x", {"key": VALUE}, project="nosuch")
