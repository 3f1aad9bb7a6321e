"""The synchronous form of `muster.client.services.telemetry`, made from it by `make sync`; change that one."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from muster.client.blocking.loop_thread import LoopThread
from muster.client.blocking.stream import SyncStream
from muster.client.services.telemetry import TelemetryClient
from muster.domain.telemetry.sample import NodeSample

if TYPE_CHECKING:
    from muster.domain.jobs.view import JobView


class SyncTelemetryClient:
    """Use of GPUs, CPUs, memory, disks and networks, reached as `client.telemetry`."""

    def __init__(self, own: TelemetryClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def of_job(self, job: "str | JobView") -> tuple[NodeSample, ...]:
        """The newest samples of a job's nodes, with those GPUs and executions alone that are the job's.

        Nodes tell every ten seconds; one that has not told for a minute is left out.

        >>> for node, sample in client.telemetry.of_job("train"):
        ...     print(node, [use.busy for _, use in sample.gpus])
        """
        return self._loop.run(self._own.of_job(job))

    def follow_job(self, job: "str | JobView") -> "SyncStream[tuple[NodeSample, ...]]":
        """The newest samples of a job's nodes, then those that come, until it has ended.

        The first batch may be empty. A broken connection is taken up again.

        >>> for batch in client.telemetry.follow_job("train"):
        ...     print([node for node, _ in batch])
        """
        return self._loop.stream(self._own.follow_job(job))

    def of_nodes(self, nodes: Collection[str] = ()) -> tuple[NodeSample, ...]:
        """The newest samples of these nodes, or of all; of executions those alone whose projects you may look at.

        >>> for node, sample in client.telemetry.of_nodes():
        ...     print(node, sample.host.cpus)
        """
        return self._loop.run(self._own.of_nodes(nodes))

    def follow_nodes(self, nodes: Collection[str] = ()) -> "SyncStream[tuple[NodeSample, ...]]":
        """The newest samples of these nodes, or of all, then those that come, without an end.

        >>> for batch in client.telemetry.follow_nodes(["gpu-a"]):
        ...     print([sample.host.memory for _, sample in batch])
        """
        return self._loop.stream(self._own.follow_nodes(nodes))
