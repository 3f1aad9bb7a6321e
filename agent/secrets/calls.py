"""Asks the coordinator for secrets, and the way to code, over the agent's connection, as long as it takes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

import grpc
import grpc.aio

from muster import wire
from muster.domain.data.checkpoint import CheckpointPass
from muster.domain.data.code import JobCode
from muster.domain.data.job_input import FoundInput
from muster.domain.data.outputs import OutputsPass
from muster.domain.data.sharing.swarm_pass import SwarmPass
from muster.domain.data.upload import CodePass, DepotPass
from muster.domain.fleet.secret import DeliveredSecret
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import FoundImage, ImagePass
from muster.rpc.channel import Credentials
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.wire.data.checkpoints import checkpoint_pass_from_wire
from muster.wire.data.code import code_pass_from_wire, code_to_wire
from muster.wire.data.images import found_image_to_wire, image_pass_from_wire
from muster.wire.data.inputs import found_input_from_wire, found_input_to_wire
from muster.wire.data.outputs import outputs_pass_from_wire
from muster.wire.data.swarms import swarm_pass_from_wire

log = logging.getLogger(__name__)

SECRETS_LIMIT = 10.0
"""Seconds for one answer."""
CODE_LIMIT_OF_CALL = 30.0
"""Seconds for one answer about code, for which the coordinator may have to ask the depot."""
IMAGE_LIMIT = 20.0
"""Seconds for one answer about an image, for which the coordinator waits for another node."""
PAUSE = 0.5
"""Seconds until a coordinator that had no answer is asked again."""

_Code = grpc.StatusCode
_LATER = frozenset(
    {_Code.UNAVAILABLE, _Code.DEADLINE_EXCEEDED, _Code.CANCELLED, _Code.RESOURCE_EXHAUSTED, _Code.ABORTED}
)
"""Nobody has decided anything: ask again."""
_JOB = frozenset({_Code.NOT_FOUND, _Code.FAILED_PRECONDITION, _Code.INVALID_ARGUMENT})
"""What the job asks for is not there."""


_Secrets = tuple[DeliveredSecret, ...]
_Answer = TypeVar("_Answer")
_Asked: TypeAlias = Callable[["agents_pb2_grpc.AgentServiceAsyncStub", Credentials], Awaitable[_Answer]]


class SecretCalls:
    """Waits for a connection wherever there is none; whoever asks gives up by cancelling."""

    def __init__(self) -> None:
        self._line: tuple[agents_pb2_grpc.AgentServiceAsyncStub, Credentials] | None = None
        self._connected = asyncio.Event()

    @contextmanager
    def connected(self, stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> Iterator[None]:
        """There is a connection for as long as this lasts."""
        self._line = stub, shown
        self._connected.set()
        try:
            yield
        finally:
            self._line = None
            self._connected.clear()

    async def ask(self, execution: ExecutionId) -> tuple[DeliveredSecret, ...]:
        """The secrets of an execution; raises ExecutionError with the coordinator's words where it refuses."""
        return await self._secrets(pb.SecretsRequest(execution=execution))

    async def ask_for_keys(self, execution: ExecutionId) -> tuple[DeliveredSecret, ...]:
        """What opens the stores of an execution's data; raises ExecutionError as above."""
        return await self._secrets(pb.SecretsRequest(execution=execution, for_data=True))

    async def _secrets(self, request: pb.SecretsRequest) -> tuple[DeliveredSecret, ...]:
        async def secrets(stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> _Secrets:
            answer = await stub.Secrets(request, timeout=SECRETS_LIMIT, metadata=shown.metadata)
            return tuple(map(wire.delivered_from_wire, answer.secrets))

        return await self._answer("secrets", ExecutionId(request.execution), secrets)

    async def ask_for_code(self, execution: ExecutionId) -> CodePass:
        """The code of an execution, and what opens the depot for it; raises ExecutionError as above."""
        return await self._code(pb.DataRequest(execution=execution))

    async def tell_code(self, execution: ExecutionId, found: JobCode) -> CodePass:
        """The same once the coordinator has noted what was fetched from a repository; raises ExecutionError."""
        return await self._code(pb.DataRequest(execution=execution, fetched=code_to_wire(found)))

    async def _code(self, request: pb.DataRequest) -> CodePass:
        async def code(stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> CodePass:
            return code_pass_from_wire(await stub.Data(request, timeout=CODE_LIMIT_OF_CALL, metadata=shown.metadata))

        return await self._answer("code", ExecutionId(request.execution), code)

    async def ask_for_tree(self, execution: ExecutionId, tree: str) -> DepotPass:
        """What opens the depot for a tree of an execution's inputs; raises ExecutionError as above."""
        return await self._pass("inputs", pb.DataRequest(execution=execution, tree=tree))

    async def ask_for_checkpoint(self, execution: ExecutionId, tree: str) -> CheckpointPass:
        """What opens the place of a tree of the checkpoint that an execution restores; raises ExecutionError."""
        return await self._checkpoint("checkpoint", pb.DataRequest(execution=execution, checkpoint=tree))

    async def ask_to_save(self, execution: ExecutionId) -> CheckpointPass:
        """What opens the place of a checkpoint of an execution; raises ExecutionError as above."""
        return await self._checkpoint("place for checkpoints", pb.DataRequest(execution=execution, saves=True))

    async def _checkpoint(self, what: str, request: pb.DataRequest) -> CheckpointPass:
        async def data(stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> CheckpointPass:
            return checkpoint_pass_from_wire(await stub.Data(request, timeout=SECRETS_LIMIT, metadata=shown.metadata))

        return await self._answer(what, ExecutionId(request.execution), data)

    async def ask_to_store(self, execution: ExecutionId) -> OutputsPass:
        """What opens the depot to those outputs of an execution that are wanted; raises ExecutionError as above."""

        async def data(stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> OutputsPass:
            request = pb.DataRequest(execution=execution, outputs=True)
            answer = await stub.Data(request, timeout=SECRETS_LIMIT, metadata=shown.metadata)
            return outputs_pass_from_wire(answer)

        return await self._answer("place for outputs", execution, data)

    async def tell_inputs(
        self, execution: ExecutionId, found: Sequence[FoundInput], asked: Sequence[str]
    ) -> Sequence[FoundInput]:
        """What counts for some inputs of an execution, after what was found here; raises ExecutionError as above."""

        async def inputs(stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> Sequence[FoundInput]:
            request = pb.InputsRequest(execution=execution, found=map(found_input_to_wire, found), asked=asked)
            answer = await stub.Inputs(request, timeout=SECRETS_LIMIT, metadata=shown.metadata)
            return tuple(map(found_input_from_wire, answer.found))

        return await self._answer("inputs", execution, inputs)

    async def agree_on_image(self, execution: ExecutionId, found: FoundImage | None) -> ImagePass:
        """Which image counts for an execution, after what was found here; raises ExecutionError as above."""

        async def image(stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> ImagePass:
            request = pb.ImageRequest(execution=execution, found=None if found is None else found_image_to_wire(found))
            return image_pass_from_wire(await stub.Image(request, timeout=IMAGE_LIMIT, metadata=shown.metadata))

        return await self._answer("images", execution, image)

    async def ask_for_swarm(self, execution: ExecutionId, wanted: str) -> SwarmPass:
        """The nodes that fetch the same for the attempt of an execution; raises ExecutionError as above."""

        async def swarm(stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> SwarmPass:
            request = pb.SwarmRequest(execution=execution, wanted=wanted)
            return swarm_pass_from_wire(await stub.Swarm(request, timeout=SECRETS_LIMIT, metadata=shown.metadata))

        return await self._answer("swarm", execution, swarm)

    async def _pass(self, what: str, request: pb.DataRequest) -> DepotPass:
        async def data(stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> DepotPass:
            answer = await stub.Data(request, timeout=SECRETS_LIMIT, metadata=shown.metadata)
            return DepotPass(depot=answer.depot, ticket=answer.ticket, allowed=answer.allowed)

        return await self._answer(what, ExecutionId(request.execution), data)

    async def _answer(self, what: str, execution: ExecutionId, ask: "_Asked[_Answer]") -> _Answer:
        while True:
            await self._connected.wait()
            if self._line is not None:  # it may be gone again by now
                found = await self._try(self._line, what, execution, ask)
                if found is not None:
                    return found
            await asyncio.sleep(PAUSE)

    async def _try(
        self,
        line: "tuple[agents_pb2_grpc.AgentServiceAsyncStub, Credentials]",
        what: str,
        execution: ExecutionId,
        ask: "_Asked[_Answer]",
    ) -> _Answer | None:
        """None: there was no answer."""
        try:
            return await ask(*line)
        except grpc.aio.AioRpcError as error:
            if error.code() not in _LATER:
                raise _refusal(error, what) from None
            log.warning("no %s yet", what, extra={"execution": execution, "cause": error.details()})
        except wire.WireError as error:
            raise ExecutionError(FailureKind.RUNTIME, f"{what}: the coordinator's answer is none: {error}") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # gRPC tells so, too, that its channel was closed for another one.
        return None


def _refusal(error: grpc.aio.AioRpcError, what: str) -> ExecutionError:
    kind = FailureKind.INVALID_OPTION if error.code() in _JOB else FailureKind.RUNTIME
    if error.code() is _Code.UNIMPLEMENTED:
        return ExecutionError(kind, f"the coordinator is older than its agents and knows no {what}; upgrade it")
    return ExecutionError(kind, error.details() or f"the coordinator gives no {what} ({error.code().name})")
