"""The SDK for what nodes and executions use at the moment."""

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from muster import wire
from muster.client.calls import Calls
from muster.client.streams.resumed import resumed
from muster.domain.telemetry.sample import NodeSample
from muster.rpc.v1 import telemetry_pb2 as pb
from muster.rpc.v1.telemetry_pb2_grpc import TelemetryServiceStub

if TYPE_CHECKING:
    from muster.domain.jobs.view import JobView


class TelemetryClient:
    """Use of GPUs, CPUs, memory, disks and networks, reached as `client.telemetry`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of TelemetryService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(TelemetryServiceStub)

    async def of_job(self, job: "str | JobView") -> tuple[NodeSample, ...]:
        """The newest samples of a job's nodes, with those GPUs and executions alone that are the job's.

        Nodes tell every ten seconds; one that has not told for a minute is left out.

        >>> for node, sample in await client.telemetry.of_job("train"):
        ...     print(node, [use.busy for _, use in sample.gpus])
        """
        return await self._newest(self._stub.OfJob, pb.JobSamplesRequest(job=_id(job)))

    async def follow_job(self, job: "str | JobView") -> AsyncGenerator[tuple[NodeSample, ...], None]:
        """The newest samples of a job's nodes, then those that come, until it has ended.

        The first batch may be empty. A broken connection is taken up again.

        >>> async for batch in client.telemetry.follow_job("train"):
        ...     print([node for node, _ in batch])
        """
        request = pb.JobSamplesRequest(job=_id(job), follow=True)
        async with aclosing(self._follow(self._stub.OfJob, request)) as batches:
            async for batch in batches:
                yield batch

    async def of_nodes(self, nodes: Collection[str] = ()) -> tuple[NodeSample, ...]:
        """The newest samples of these nodes, or of all; of executions those alone whose projects you may look at.

        >>> for node, sample in await client.telemetry.of_nodes():
        ...     print(node, sample.host.cpus)
        """
        return await self._newest(self._stub.OfNodes, pb.NodeSamplesRequest(nodes=nodes))

    async def follow_nodes(self, nodes: Collection[str] = ()) -> AsyncGenerator[tuple[NodeSample, ...], None]:
        """The newest samples of these nodes, or of all, then those that come, without an end.

        >>> async for batch in client.telemetry.follow_nodes(["gpu-a"]):
        ...     print([sample.host.memory for _, sample in batch])
        """
        request = pb.NodeSamplesRequest(nodes=nodes, follow=True)
        async with aclosing(self._follow(self._stub.OfNodes, request)) as batches:
            async for batch in batches:
                yield batch

    async def _newest(self, call: Any, request: Any) -> tuple[NodeSample, ...]:  # noqa: ANN401 - a call of the stub and its request
        found: list[NodeSample] = []
        async with aclosing(self._calls.stream(call, request)) as messages:
            async for message in messages:
                found += map(wire.node_sample_from_wire, message.nodes)
        return tuple(found)

    async def _follow(self, call: Any, request: Any) -> AsyncGenerator[tuple[NodeSample, ...], None]:  # noqa: ANN401 - the same
        async with aclosing(resumed(self._calls, call, request)) as messages:
            async for message in messages:
                yield tuple(map(wire.node_sample_from_wire, message.nodes))


def _id(job: "str | JobView") -> str:
    return job if isinstance(job, str) else job.id
