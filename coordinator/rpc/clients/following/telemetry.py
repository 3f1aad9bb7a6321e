"""The clients' calls about samples, as gRPC has them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.clients.jobs import READER_PATIENCE
from coordinator.rpc.streams import offer, streaming
from coordinator.service.following.samples import SampleOperations, SeenSample
from muster import wire
from muster.domain.ids import NodeId
from muster.domain.telemetry.sample import UnreadSample
from muster.rpc.v1 import telemetry_pb2 as pb
from muster.rpc.v1 import telemetry_pb2_grpc
from muster.wire import checks
from muster.wire.telemetry.samples import unread_sample_to_wire

SAMPLES_PER_MESSAGE = 32
"""So few that a message stays below 4 MiB, whatever is used."""


class TelemetryService(telemetry_pb2_grpc.TelemetryServiceServicer):
    """Translates calls about samples."""

    def __init__(self, samples: SampleOperations, patience: float = READER_PATIENCE) -> None:
        self._samples = samples
        self._patience = patience
        self.closing = asyncio.Event()

    @streaming
    async def OfJob(self, request: pb.JobSamplesRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """The samples of a job's nodes; with `follow` until it has ended."""
        await self._offer(self._samples.of_job(caller(), request.job, follow=request.follow), context)

    @streaming
    async def OfNodes(self, request: pb.NodeSamplesRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """The samples of nodes; with `follow` until the caller leaves."""
        checks.few(request.nodes, "NodeSamplesRequest.nodes")
        nodes = tuple(map(NodeId, request.nodes))
        await self._offer(self._samples.of_nodes(caller(), nodes, follow=request.follow), context)

    async def _offer(self, batches: AsyncGenerator[Sequence[SeenSample], None], context: Context) -> None:
        async with aclosing(batches) as told:
            async for batch in told:
                for start in range(0, max(1, len(batch)), SAMPLES_PER_MESSAGE):
                    piece = map(_to_wire, batch[start : start + SAMPLES_PER_MESSAGE])
                    await offer(context, pb.TelemetryBatch(nodes=piece), self._patience)


def _to_wire(found: SeenSample) -> pb.NodeTelemetry:
    return unread_sample_to_wire(found) if isinstance(found, UnreadSample) else wire.node_sample_to_wire(found)
