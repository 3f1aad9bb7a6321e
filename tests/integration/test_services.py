"""What a coordinator offers beside its own services, and how it and its agents end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from coordinator.engine.engine import Engine
from coordinator.rpc.server import serving_locally
from coordinator.rpc.services import Parts
from coordinator.service.known_projects import KnownProjects
from coordinator.store.logs.logs import LogStore
from coordinator.store.records.memory import MemoryStore
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.policies import Policies
from coordinator.trust.presets import Presets
from coordinator.trust.registry import Registry
from coordinator.trust.secrets.secrets import Secrets
from coordinator.trust.subscriptions import Subscriptions
from muster.client.client import Client
from muster.domain.errors import MusterError, PermissionDeniedError, UnavailableError
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell

OURS = [
    f"muster.rpc.v1.{name}"
    for name in (
        "AgentService",
        "AttachmentService",
        "BundleService",
        "DataService",
        "EventService",
        "FeedService",
        "FleetService",
        "ImageService",
        "JobService",
        "LoginService",
        "NodeService",
        "NotificationService",
        "PoolService",
        "PresetService",
        "ProjectService",
        "SecretService",
        "TelemetryService",
        "TrustService",
        "WindowService",
    )
]


@pytest.mark.parametrize("service", ["", *OURS])
async def test_every_service_is_healthy(tmp_path: Path, service: str) -> None:
    async with running_fleet(tmp_path) as fleet, grpc.aio.insecure_channel(fleet.address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_reflection_lists_the_services(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, grpc.aio.insecure_channel(fleet.address) as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        call = stub.ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        answer = await call.read()
        await call.done_writing()
        names = [service.name for service in answer.list_services_response.service]
        assert names == sorted([*OURS, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"])


async def test_who_watches_and_follows_goes_on_after_an_orderly_restart(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("echo something; exec sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(fleet.client.jobs.wait(job.id))
            following = tasks.create_task(fleet.output(job.id, follow=True))
            await fleet.printed(job.id, 1)
            await fleet.stop_coordinator()
            await fleet.start_coordinator()
            await fleet.connected("a", 2)
            await fleet.client.jobs.stop(job.id)
            assert (await waiting).phase is JobPhase.STOPPED
            assert [line.text for line in await following] == [b"something"]


async def test_everything_may_end_in_the_middle_of_its_work(tmp_path: Path) -> None:
    """The fleet itself looks for tasks and errors that are left."""
    async with running_fleet(tmp_path, "a", "b") as fleet:
        jobs = [
            await fleet.client.jobs.submit(shell("yes $(printf %01000d 0) | head -n 2000; sleep 60", 2))
            for _ in range(5)
        ]
        await fleet.printed(jobs[0].id, 1)
        await fleet.client.jobs.delete(jobs[1].id, force=True)
        await fleet.client.jobs.stop(jobs[2].id)


async def test_a_client_of_a_coordinator_that_is_not_there_is_told_so() -> None:
    async with Client("127.0.0.1:1") as client:
        with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1"):
            await client.nodes.list()


@asynccontextmanager
async def parts(directory: Path) -> AsyncIterator[Parts]:
    """What an engine without a disk serves."""
    trust = SqlTrust.open(directory / "trust.db")
    logs, store = LogStore(directory), MemoryStore()
    engine = Engine(store, print)
    registry = Registry(trust, KnownProjects(engine))
    try:
        secrets = Secrets.open(trust, directory / "secrets.key", registry.projects)
        yield Parts(
            engine=engine,
            store=store,
            logs=logs,
            registry=registry,
            audit=AuditLog(registry),
            secrets=secrets,
            subscriptions=Subscriptions(trust, secrets, registry.projects),
            policies=Policies(trust, registry.projects),
            presets=Presets(trust, registry.projects),
        )
    finally:
        logs.close()
        trust.close()


async def test_a_port_that_is_taken_is_refused_with_a_reason(tmp_path: Path) -> None:
    async with parts(tmp_path) as given, serving_locally(given, "127.0.0.1:0", SECRET) as address:
        with pytest.raises(MusterError, match=f"cannot listen on {address}: is something else listening there"):
            async with serving_locally(given, address, SECRET):
                pass


async def test_plain_text_beyond_this_machine_is_refused(tmp_path: Path) -> None:
    async with parts(tmp_path) as given:
        with pytest.raises(PermissionDeniedError, match=r"will not speak unencrypted on 0\.0\.0\.0:0"):
            async with serving_locally(given, "0.0.0.0:0", SECRET):
                pass
