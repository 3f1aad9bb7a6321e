"""How an agent asks for secrets while the coordinator answers, refuses, or is away."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from agent.secrets.calls import SecretCalls
from muster import wire
from muster.domain.fleet.secret import DeliveredSecret, SecretKind
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from tests.integration.refusing_coordinator import RefusingCoordinator

EXECUTION = ExecutionId("job-1-0")
SECRET = DeliveredSecret(name="wandb", kind=SecretKind.GENERIC, values={"key": b"\0swordfish"})
SHOWN = Credentials(token="of the agent")
Answer = pb.SecretsResponse | tuple[grpc.StatusCode, str]


class Coordinator(RefusingCoordinator):
    """Gives one answer after the other."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, str]] = []

    async def Secrets(self, request: pb.SecretsRequest, context: Any) -> pb.SecretsResponse:
        shown = dict(context.invocation_metadata())
        self.asked.append((request.execution, shown["authorization"]))
        answer = self._answers.pop(0)
        if isinstance(answer, tuple):
            await context.abort(*answer)
        assert isinstance(answer, pb.SecretsResponse)
        return answer


@asynccontextmanager
async def connected(coordinator: Coordinator, calls: SecretCalls) -> AsyncIterator[None]:
    server = grpc.aio.server()
    agents_pb2_grpc.add_AgentServiceServicer_to_server(coordinator, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with open_channel(f"127.0.0.1:{port}") as channel:
            with calls.connected(agents_pb2_grpc.AgentServiceStub(channel), SHOWN):
                yield
    finally:
        await server.stop(None)


DELIVERED = pb.SecretsResponse(secrets=[wire.delivered_to_wire(SECRET)])


async def test_secrets_come_for_who_shows_the_credentials_of_the_connection() -> None:
    coordinator, calls = Coordinator([DELIVERED]), SecretCalls()
    async with connected(coordinator, calls):
        assert await calls.ask(EXECUTION) == (SECRET,)
    assert coordinator.asked == [(EXECUTION, "Bearer of the agent")]


async def test_who_asks_waits_for_a_connection() -> None:
    calls = SecretCalls()
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(calls.ask(EXECUTION), name="ask")
        await asyncio.sleep(0)
        async with connected(Coordinator([DELIVERED]), calls):
            assert await asking == (SECRET,)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
async def test_a_coordinator_that_has_no_answer_yet_is_asked_again(code: grpc.StatusCode) -> None:
    coordinator, calls = Coordinator([(code, "is busy"), DELIVERED]), SecretCalls()
    async with connected(coordinator, calls):
        assert await calls.ask(EXECUTION) == (SECRET,)
    assert len(coordinator.asked) == 2


async def test_a_connection_that_is_lost_in_the_middle_is_waited_for() -> None:
    begun = asyncio.Event()

    class Silent(Coordinator):
        async def Secrets(self, request: pb.SecretsRequest, context: Any) -> pb.SecretsResponse:  # noqa: ARG002 - a call has both
            begun.set()
            return await asyncio.Future()

    calls = SecretCalls()
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(calls.ask(EXECUTION), name="ask")
        async with connected(Silent([]), calls):
            await begun.wait()
        async with connected(Coordinator([DELIVERED]), calls):
            assert await asking == (SECRET,)


async def test_who_gives_up_asking_gives_up() -> None:
    calls = SecretCalls()
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(calls.ask(EXECUTION), name="ask")
        await asyncio.sleep(0)
        asking.cancel()
    assert asking.cancelled()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.NOT_FOUND, FailureKind.INVALID_OPTION),
        (grpc.StatusCode.FAILED_PRECONDITION, FailureKind.INVALID_OPTION),
        (grpc.StatusCode.PERMISSION_DENIED, FailureKind.RUNTIME),
    ],
)
async def test_a_refusal_is_the_failure_in_the_words_of_the_coordinator(
    code: grpc.StatusCode, kind: FailureKind
) -> None:
    calls = SecretCalls()
    async with connected(Coordinator([(code, "project red has no secret 'wandb' (any more)")]), calls):
        with pytest.raises(ExecutionError, match="project red has no secret 'wandb'") as caught:
            await calls.ask(EXECUTION)
    assert caught.value.kind is kind


async def test_an_answer_that_is_none_is_refused_without_its_values() -> None:
    secret = pb.DeliveredSecret(name="wandb", kind="generic", values={"../../etc/passwd": b"swordfish"})
    calls = SecretCalls()
    async with connected(Coordinator([pb.SecretsResponse(secrets=[secret])]), calls):
        with pytest.raises(ExecutionError, match="DeliveredSecret") as caught:
            await calls.ask(EXECUTION)
    assert "swordfish" not in str(caught.value)
