"""The SDK: ask a coordinator about jobs and nodes.

    async with muster.Client() as client:
        job = await client.submit(spec)
        ended = await client.wait(job.id)

Wherever a method takes `job`, it is an id, the unique beginning of an id, or a name (the newest job of that name);
where one stays with a job, what was told of it will do too.
What goes wrong is raised as an error of `muster.domain.errors`.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import grpc
import grpc.aio

from muster import wire
from muster.client.connection import Connection
from muster.domain.errors import UnavailableError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_rules import refuse_faults
from muster.domain.jobs.lifecycle import JobPhase
from muster.rpc.channel import Credentials
from muster.rpc.status import error_from
from muster.rpc.v1 import jobs_pb2
from muster.rpc.v1.jobs_pb2_grpc import JobServiceStub

if TYPE_CHECKING:
    from muster.client.bundles import BundleClient
    from muster.client.login import LoginClient
    from muster.client.nodes import NodesClient
    from muster.client.secrets import SecretsClient
    from muster.client.trust import TrustClient
    from muster.domain.fleet.node import NodeView
    from muster.domain.jobs.explanation import Explanation
    from muster.domain.jobs.view import JobView, LogLine

_MOST_AT_ONCE = 100
"""Questions of one client that are under way; more wait here, as a coordinator takes only so many of one connection."""
_RETRY_PAUSES = (0.1, 0.4)
"""Seconds between the tries of one question while nobody answers; short, because a person waits."""

_RESUBSCRIBE_PAUSES = (0.2, 0.5, 1.0, 2.0, *(3.0,) * 40)
"""Seconds between the tries to take up a broken stream again: two minutes, enough to restart a coordinator."""

_PAGE = 500

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class Client:
    """A connection to a coordinator; use it with `async with`.

    `address` is `host:port`; None finds it as the command line does (docs/cli.md), and so do `credentials`. `timeout`
    is how long one question may take, in seconds; streams have no limit. Questions and streams survive a restart of the
    coordinator. `connection` goes before `address` and `credentials`.
    """

    def __init__(
        self,
        address: str | None = None,
        credentials: Credentials | None = None,
        *,
        timeout: float = 10.0,
        connection: Connection | None = None,
    ) -> None:
        self._connection = connection or Connection(address, credentials)
        self.address = self._connection.address
        self._credentials = self._connection.credentials
        self._timeout = timeout
        self._turn = asyncio.Semaphore(_MOST_AT_ONCE)

    async def __aenter__(self) -> Self:
        self._channel = self._connection.open()
        self._jobs = JobServiceStub(self._channel)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._connection.close(self._channel)

    # What few need is loaded when it is asked for, as the command line is started anew for every question.

    @property
    def trust(self) -> "TrustClient":
        """For those who let others in: accounts, tokens, projects, nodes that have joined, the audit log."""
        from muster.client.trust import TrustClient  # noqa: PLC0415
        from muster.rpc.v1.trust_pb2_grpc import TrustServiceStub  # noqa: PLC0415

        return TrustClient(self._ask, TrustServiceStub(self._channel))

    @property
    def secrets(self) -> "SecretsClient":
        """The secrets of projects."""
        from muster.client.secrets import SecretsClient  # noqa: PLC0415
        from muster.rpc.v1.trust_pb2_grpc import SecretServiceStub  # noqa: PLC0415

        return SecretsClient(self._ask, SecretServiceStub(self._channel))

    @property
    def bundles(self) -> "BundleClient":
        """What machines are installed from."""
        from muster.client.bundles import BundleClient  # noqa: PLC0415
        from muster.rpc.v1.bundles_pb2_grpc import BundleServiceStub  # noqa: PLC0415

        return BundleClient(self._ask, BundleServiceStub(self._channel), self._credentials, self.address)

    @property
    def logins(self) -> "LoginClient":
        """For people who log in through the organisation's identity provider."""
        from muster.client.login import LoginClient  # noqa: PLC0415
        from muster.rpc.v1.trust_pb2_grpc import LoginServiceStub  # noqa: PLC0415

        return LoginClient(self._ask, LoginServiceStub(self._channel))

    @property
    def _nodes(self) -> "NodesClient":
        from muster.client.nodes import NodesClient  # noqa: PLC0415
        from muster.rpc.v1.nodes_pb2_grpc import NodeServiceStub  # noqa: PLC0415

        return NodesClient(self._ask, NodeServiceStub(self._channel))

    async def submit(self, spec: JobSpec, *, queue_anyway: bool = False, dry_run: bool = False) -> "JobView":
        """The job, accepted and stored durably; with `dry_run` only checked, and its id is empty.

        Raises InvalidJobError for a malformed job and ConflictError when no present node could ever run it, unless
        `queue_anyway`. An answer that got lost never leads to a second job.
        """
        request = _submission(refuse_faults(spec), queue_anyway=queue_anyway, dry_run=dry_run)
        # Looking up what reads the answer loads it, and takes as long as the coordinator does: the question goes first.
        answer = await self._ask(self._jobs.Submit, request)
        return wire.job_from_wire(answer.job)

    async def submit_many(
        self, specs: Sequence[JobSpec], *, queue_anyway: bool = False, dry_run: bool = False
    ) -> tuple[JobId, ...]:
        """The ids of many jobs, accepted and stored durably, several times as fast as one by one.

        Up to 1,000 are accepted all together or not at all, longer lists in parts, one after the other. Raises
        JobsRefusedError, which says of each refused job why, and what was accepted before. With `dry_run` all are only
        checked, and the ids are empty. An answer that got lost never leads to a second job.
        """
        from muster.client.job_batches import submit_in_batches  # noqa: PLC0415

        def call(batch: jobs_pb2.SubmitManyRequest) -> Awaitable[jobs_pb2.SubmitManyResponse]:
            return self._ask(self._jobs.SubmitMany, batch)

        requests = (_submission(spec, queue_anyway=queue_anyway, dry_run=dry_run) for spec in specs)
        return await submit_in_batches(call, specs, requests, self.address)

    async def job(self, job: str, *, attempt: int | None = None) -> "JobView":
        """One job with its attempts, and executions of the first and newest ones or only those of one `attempt`."""
        request = jobs_pb2.GetJobRequest(job=job, attempt=attempt or 0)
        return wire.job_from_wire(await self._ask(self._jobs.Get, request))

    def jobs(  # noqa: PLR0913 - one for each condition
        self,
        *,
        phases: Collection[JobPhase] = (),
        name_contains: str = "",
        projects: Collection[str] = (),
        owners: Collection[str] = (),
        mine: bool = False,
        labels: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> "AsyncGenerator[JobView, None]":
        """Jobs, newest first, without their executions; all of them, or those that every argument allows.

        A job has one of the `phases`, `projects` and `owners`; `mine` adds the caller to the owners. It carries all
        `labels`.
        """
        from muster.client.job_batches import listed  # noqa: PLC0415

        conditions = {"name_contains": name_contains, "projects": projects, "owners": owners, "labels": labels}
        wanted = jobs_pb2.ListJobsRequest(phases=list(phases), mine=mine, **conditions)  # type: ignore[arg-type]
        return listed(lambda page: self._ask(self._jobs.List, page), wanted, limit)

    async def stop(self, job: str) -> "JobView":
        """The job after the order to stop was stored; an ended job stays as it is."""
        return wire.job_from_wire((await self._ask(self._jobs.Stop, jobs_pb2.StopRequest(job=job))).job)

    async def delete(self, job: str, *, force: bool = False) -> JobId:
        """The id of the job that is forgotten now; `force` stops it first if need be."""
        request = jobs_pb2.DeleteRequest(job=job, force=force)
        # Never repeated: what was deleted by a request whose answer got lost would not be found by the next one.
        return JobId((await self._ask(self._jobs.Delete, request, pauses=())).job)

    async def why(self, job: str) -> "Explanation":
        """Why a job is where it is."""
        return wire.explanation_from_wire(await self._ask(self._jobs.Why, jobs_pb2.WhyRequest(job=job)))

    def watch(self, job: "str | JobView") -> "AsyncGenerator[JobView, None]":
        """The job now, then at each change, until it has ended; a slow reader misses states in between, never the last.

        Goes on after a broken connection; raises UnavailableError when nobody answers for two minutes.
        """
        return self._views(job)

    async def wait(self, job: "str | JobView") -> "JobView":
        """The job once it has ended; of what happens before, nothing is sent."""
        async for view in self._views(job, end_only=True):  # noqa: B007 - the last one is what is asked for
            pass
        return view

    async def logs(
        self,
        job: "str | JobView",
        *,
        ranks: Collection[int] = (),
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
        attempt: int | None = None,
    ) -> "AsyncGenerator[LogLine, None]":
        """What the ranks of a job printed, merged in the order of time as far as known.

        `tail` means the last so many lines of each rank; `follow` goes on until all logs are complete, and takes a
        broken connection up again without losing or repeating a line.
        """
        request = jobs_pb2.LogsRequest(
            job=(await self.job(job)).id if isinstance(job, str) else job.id,
            ranks=sorted(ranks),
            tail=tail,
            follow=follow,
            attempt=attempt or 0,
        )
        if since is not None:
            request.since.FromDatetime(since)
        delivered, patience = _Delivered(), _Patience()
        while True:
            try:
                async with aclosing(self._stream(self._jobs.Logs, request)) as batches:
                    async for batch in batches:
                        patience.renew()
                        for line in filter(delivered.is_new, map(wire.log_line_from_wire, batch.lines)):
                            yield line
            except UnavailableError as error:
                await patience.pause_or_raise(error)
                delivered.start_again()
                # From where the first subscription began there may be other last lines now.
                request.ClearField("tail")
            else:
                return

    async def nodes(self) -> "tuple[NodeView, ...]":
        """All nodes by name."""
        return await self._nodes.all(_PAGE)

    async def node(self, name: str) -> "NodeView":
        """One node."""
        return await self._nodes.one(name)

    async def remove_node(self, name: str) -> "NodeView":
        """Give up a node that will not come back, and on which nothing runs any more; the node as it was.

        Raises ConflictError while its agent is connected.
        """
        return await self._nodes.remove(name)

    async def cordon_node(self, name: str, *, reason: str = "", restart_jobs: bool = False) -> "NodeView":
        """Have nothing new placed on a node; with `restart_jobs` what runs there begins anew elsewhere, at once."""
        return await self._nodes.cordon(name, reason=reason, restart_jobs=restart_jobs)

    async def uncordon_node(self, name: str) -> "NodeView":
        """Have jobs placed on a node again."""
        return await self._nodes.uncordon(name)

    async def label_node(
        self, name: str, labels: Mapping[str, str], removed: Collection[str] = ()
    ) -> "tuple[Mapping[str, str], bool]":
        """Labels that tokens and operators have given a node, after a change of some; and whether they have changed."""
        return await self._nodes.label(name, labels, removed)

    async def agents_port(self) -> int:
        """The port of the coordinator's host at which it serves agents; 0 where it serves none beside clients."""
        from muster.client.nodes import agents_port  # noqa: PLC0415

        return await agents_port(self._ask, self._channel)

    async def _views(self, job: "str | JobView", *, end_only: bool = False) -> "AsyncGenerator[JobView, None]":
        seen = None if isinstance(job, str) else job
        request = jobs_pb2.WatchRequest(job=job if isinstance(job, str) else job.id, end_only=end_only)
        patience = _Patience(_RETRY_PAUSES if seen is None else _RESUBSCRIBE_PAUSES)
        if seen is not None:
            yield seen
        while seen is None or not seen.phase.ended:
            try:
                async with aclosing(self._stream(self._jobs.Watch, request)) as messages:
                    async for message in messages:
                        patience.renew()
                        before, seen = seen, wire.job_from_wire(message)
                        request.job = seen.id  # of a name there may be a newer one when it is asked again
                        if seen != before:
                            yield seen
            except UnavailableError as error:
                await patience.pause_or_raise(error)

    async def _ask(
        self,
        call: "grpc.aio.UnaryUnaryMultiCallable[_Request, _Answer]",
        request: _Request,
        *,
        pauses: tuple[float, ...] = _RETRY_PAUSES,
    ) -> _Answer:
        for pause in (*pauses, None):
            try:
                async with self._turn:
                    asked = call(request, timeout=self._timeout, metadata=self._credentials.metadata)
                    answer = await asked
                    self._connection.hear(await asked.trailing_metadata())
                    return answer
            except grpc.aio.AioRpcError as error:
                if pause is None or error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise error_from(error.code(), error.details() or "", address=self.address) from error
                await asyncio.sleep(pause)
        raise AssertionError("the last try answers or raises")

    async def _stream(
        self,
        call: "grpc.aio.UnaryStreamMultiCallable[_Request, _Answer]",
        request: _Request,
    ) -> AsyncGenerator[_Answer, None]:
        stream = call(request, metadata=self._credentials.metadata)
        try:
            async for message in stream:
                yield message
        except grpc.aio.AioRpcError as error:
            raise error_from(error.code(), error.details() or "", address=self.address) from error
        finally:
            stream.cancel()


class _Delivered:
    """What of each rank was handed out, so that a stream that begins anew goes on where the last one broke.

    The position of a rank is the time of its last line and how many of its lines carry that very time, for each of its
    streams: a line of one may come after newer lines of the other.
    """

    def __init__(self) -> None:
        self._positions: dict[tuple[int, str], tuple[datetime, int]] = {}
        self._repeated: dict[tuple[int, str], int] = {}

    def start_again(self) -> None:
        """The stream begins anew: lines up to the positions will come once more."""
        self._repeated = dict.fromkeys(self._positions, 0)

    def is_new(self, line: "LogLine") -> bool:
        """Whether the line was not handed out before; it is now."""
        source = (line.rank, line.stream)
        time, count = self._positions.get(source, (line.time, 0))
        if source in self._repeated:
            if line.time < time:
                return False
            if line.time == time and self._repeated[source] < count:
                self._repeated[source] += 1
                return False
            del self._repeated[source]
        self._positions[source] = (line.time, count + 1 if line.time == time else 1)
        return True


class _Patience:
    """How long a broken stream is taken up again; every message renews it."""

    def __init__(self, pauses: tuple[float, ...] = _RESUBSCRIBE_PAUSES) -> None:
        self._pauses = iter(pauses)

    def renew(self) -> None:
        """Somebody answers."""
        self._pauses = iter(_RESUBSCRIBE_PAUSES)

    async def pause_or_raise(self, error: UnavailableError) -> None:
        """Wait before the next try; raise `error` when there were enough."""
        pause = next(self._pauses, None)
        if pause is None:
            raise error
        await asyncio.sleep(pause)


def _submission(spec: JobSpec, *, queue_anyway: bool, dry_run: bool) -> jobs_pb2.SubmitRequest:
    """Asks for a job, with a key of its own: sent again, it asks for the same one."""
    wanted, key = wire.job_spec_to_wire(spec), os.urandom(16).hex()
    return jobs_pb2.SubmitRequest(spec=wanted, queue_anyway=queue_anyway, dry_run=dry_run, idempotency_key=key)
