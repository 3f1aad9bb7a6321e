"""The SDK for data of jobs: folders that go along, and what jobs have left and saved."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.client.calls import Calls
from muster.domain.data.checkpoint import CheckpointParts, CheckpointView, FetchedCheckpoint, JobCheckpoints
from muster.domain.data.code import JobCode
from muster.domain.data.depot_use import DepotUse
from muster.domain.data.output_metadata import OutputMetadata, metadata_files, read_metadata
from muster.domain.data.outputs import FetchedOutputs, JobOutputs, OutputFile, OutputsRetry, RankOutputs
from muster.domain.data.pattern import name_pattern
from muster.domain.data.tree import ContentEntry, ContentTree
from muster.domain.data.upload import UploadedFolder
from muster.domain.errors import ConflictError, UnavailableError, UnknownNameError
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.view import JobView
from muster.rpc.v1 import data_pb2 as pb
from muster.rpc.v1.data_pb2_grpc import DataServiceStub
from muster.transfer.depot_client import DepotClient, reaching_depot
from muster.transfer.downloads import fetch_files, read_contents
from muster.transfer.folder import Folder, read_folder
from muster.transfer.progress import adding_up
from muster.transfer.remembered import load_remembered, remembered_file, save_remembered
from muster.wire.data.outputs import job_outputs_from_wire, outputs_retry_from_wire
from muster.wire.data.saved import checkpoint_parts_from_wire, checkpoint_view_from_wire, job_checkpoints_from_wire
from muster.wire.sharing.storage import depot_use_from_wire

if TYPE_CHECKING:
    from muster.jobfile.presets.job_document import JobDocument

_NO_DEPOT = "no depot is connected to the coordinator, which has"


class DataClient:
    """Data of jobs, reached as `client.data`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of DataService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(DataServiceStub)

    async def upload(
        self, folder: Path | str, *, project: str = "", told: Callable[[int, int], None] | None = None
    ) -> UploadedFolder:
        """Send a folder to the fleet's depot, without what its ignore rules leave out; only what is new there is sent.

        `told` hears how many bytes of how many have been sent.

        >>> print((await client.data.upload("trainer")).tree)
        """
        read = await asyncio.to_thread(_read, Path(folder))
        shown = await self._calls.ask(self._stub.Upload, pb.UploadRequest(project=project))
        connection = self._calls.connection
        authority = connection.credentials.authority
        async with reaching_depot(shown.depot, shown.ticket, connection.address, authority) as depot:
            sent = await depot.send(read, told)
        return UploadedFolder(
            tree=sent.tree,
            size=sent.size,
            files=read.summary.files,
            bytes=read.summary.bytes,
            new=sent.new,
            sent=sent.sent,
        )

    async def storage(self) -> DepotUse:
        """What the fleet's depot held when it was looked through last, of the projects that one may look at.

        >>> bytes_of = {name: held.bytes for name, held in (await client.data.storage()).projects.items()}
        """
        return depot_use_from_wire(await self._calls.ask(self._stub.Storage, pb.StorageRequest()))

    async def with_code(
        self, spec: JobSpec, *, send: bool = True, told: Callable[[int, int], None] | None = None
    ) -> JobSpec:
        """The job with the folders of its roles sent to the depot, as it can be submitted; harmless when repeated.

        `send`: False only finds out what their trees are. `told` is as for `upload`.

        >>> job = await client.jobs.submit(await client.data.with_code(spec))
        """
        sent: dict[str, JobCode] = {}
        for code in (role.code for role in spec.roles):
            if code is None or code.tree or not code.folder or code.folder in sent:
                continue
            tree, size = await self._tree(code.folder, spec.project, send=send, told=told)
            sent[code.folder] = JobCode(tree=tree, size=size)
        if not sent:
            return spec
        roles = (
            role
            if role.code is None
            else replace(role, code=replace(sent.get(role.code.folder, role.code), writable=role.code.writable))
            for role in spec.roles
        )
        return replace(spec, roles=tuple(roles))

    async def with_folders(self, document: "JobDocument", *, send: bool = True) -> "JobDocument":
        """The document of a job that names presets, with its folders sent to the depot; harmless when repeated.

        `send` is as for `with_code`.

        >>> job = await client.jobs.submit(await client.data.with_folders(document))
        """
        trees = {each: await self._tree(each, document.project, send=send) for each in document.folders}
        return document.with_trees(trees)

    async def _tree(
        self, folder: str, project: str, *, send: bool, told: Callable[[int, int], None] | None = None
    ) -> tuple[str, int]:
        """The tree of a folder, and the size of its form."""
        if send:
            done = await self.upload(folder, project=project, told=told)
            return done.tree, done.size
        found = (await asyncio.to_thread(_read, Path(folder))).summary
        return found.digest, found.size


class OutputsClient:
    """What jobs have left, reached as `client.outputs`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of DataService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(DataServiceStub)

    async def of(self, job: JobView | str, *, attempt: int = 0, ranks: Collection[int] = ()) -> JobOutputs:
        """How much each rank has left, and what has become of it; of the newest attempt unless one is named.

        >>> stages = [each.outputs.stage for each in (await client.outputs.of("train")).ranks]
        """
        name, first, found = _job_name(job), 0, None
        while True:
            request = pb.OutputsRequest(job=name, attempt=attempt, ranks=sorted(ranks), first=first)
            answer = await self._calls.ask(self._stub.Outputs, request)
            page = job_outputs_from_wire(answer)
            found = page if found is None else replace(found, ranks=(*found.ranks, *page.ranks))
            name, attempt, first = found.job, found.attempt, answer.following
            if not first:
                return found

    async def list(
        self,
        job: JobView | JobOutputs | str,
        *,
        only: Sequence[str] = (),
        attempt: int = 0,
        ranks: Collection[int] = (),
        metadata: bool = False,
    ) -> Sequence[OutputFile]:
        """The files that are stored of an attempt, of some ranks or all; `only`: names, which may have wildcards.

        With what `of` has told nobody is asked again, and the attempt and ranks are those that it tells of. `metadata`:
        files that tell of others are read, and what they say stands at these instead.

        >>> paths = [file.path for file in await client.outputs.list("train", only=["**/*.pt"])]
        """
        found = job if isinstance(job, JobOutputs) else await self.of(job, attempt=attempt, ranks=ranks)
        files: list[OutputFile] = []
        async with aclosing(self._trees(found)) as trees:
            async for rank, depot, tree in trees:
                told = metadata_files(tree.entries) if metadata and not rank.store else ()
                said = await _said(depot, tree, told)
                files += (
                    OutputFile(
                        rank=rank.rank,
                        path=each.path,
                        size=each.size,
                        sha256=each.content,
                        stored_at=rank.outputs.at,
                        place=_place(found, rank, each.path),
                        uri=f"{rank.store}/{each.path}" if rank.store else "",
                        metadata=said.of_files.get(each.path, {}),
                        fault=said.faults.get(each.path, ""),
                    )
                    for each in _matching(tree, only)
                    if each.path not in said.read
                )
        return files

    async def get(
        self,
        job: JobView | JobOutputs | str,
        into: Path | str,
        *,
        only: Sequence[str] = (),
        attempt: int = 0,
        ranks: Collection[int] = (),
        told: Callable[[int, int], None] | None = None,
    ) -> FetchedOutputs:
        """Fetch files that are stored of an attempt, each compared with its SHA-256; all else is as for `list`.

        They lie in a directory for each rank; those of a job of one execution lie in `into` itself. After a break the
        same call goes on where it was. `told` hears how many bytes of how many are there.

        >>> print((await client.outputs.get("train", "results")).files)
        """
        found = job if isinstance(job, JobOutputs) else await self.of(job, attempt=attempt, ranks=ranks)
        if elsewhere := [each for each in found.ranks if each.store]:
            raise ConflictError(
                f"what rank {elsewhere[0].rank} of job {found.job} has left lies in {elsewhere[0].store}; copy it from "
                "there with a program for that store"
            )
        files = size = fetched = 0
        arrived = adding_up(sum(each.outputs.bytes for each in found.ranks), told)
        async with aclosing(self._trees(found)) as trees:
            async for rank, depot, tree in trees:
                entries = _matching(tree, only)
                came = await fetch_files(depot, entries, Path(into) / _place(found, rank, ""), arrived)
                files, size, fetched = files + came.files, size + came.bytes, fetched + came.fetched
        if only and not files:
            raise UnknownNameError(f"job {found.job} has stored no file like {', '.join(only)}")
        return FetchedOutputs(files=files, bytes=size, fetched=fetched)

    async def retry(self, job: JobView | str, *, attempt: int = 0, ranks: Collection[int] = ()) -> OutputsRetry:
        """Have outputs stored again that lie on their nodes alone; of the newest attempt unless one is named.

        `of` tells what becomes of that. Nodes that are away do it once they are back. Raises ConflictError where there
        are no outputs that can be stored again.

        >>> print((await client.outputs.retry("train")).ranks)
        """
        request = pb.RetryOutputsRequest(job=_job_name(job), attempt=attempt, ranks=sorted(ranks))
        return outputs_retry_from_wire(await self._calls.ask(self._stub.RetryOutputs, request))

    async def _trees(self, found: JobOutputs) -> AsyncGenerator[tuple[RankOutputs, DepotClient, ContentTree], None]:
        """What each rank has stored, and the depot that has it."""
        stored = [each for each in found.ranks if each.outputs.tree]
        if stored and not found.depot:
            raise UnavailableError(f"{_NO_DEPOT} the outputs (docs/depot.md)")
        connection = self._calls.connection
        for rank in stored:
            async with reaching_depot(
                found.depot, rank.ticket, connection.address, connection.credentials.authority
            ) as depot:
                yield rank, depot, await depot.tree(rank.outputs.tree, rank.outputs.size)


def _matching(tree: ContentTree, only: Sequence[str]) -> Sequence[ContentEntry]:
    """The files with one of these names; without names all."""
    patterns = [name_pattern(each) for each in only]
    return [each for each in tree.entries if not patterns or any(pattern.matches(each.path) for pattern in patterns)]


async def _said(depot: DepotClient, tree: ContentTree, told: Sequence[ContentEntry]) -> OutputMetadata:
    """What these files of a tree say of its other files."""
    contents = await read_contents(depot, told)
    paths = frozenset(each.path for each in tree.entries)
    return read_metadata(zip((each.path for each in told), contents, strict=True), paths)


class CheckpointsClient:
    """What jobs have saved, reached as `client.checkpoints`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of DataService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(DataServiceStub)

    async def of(self, job: JobView | str) -> JobCheckpoints:
        """What a job has saved, whole or not, the newest first.

        >>> whole = [each.name for each in (await client.checkpoints.of("train")).checkpoints if each.whole]
        """
        request = pb.CheckpointsRequest(job=_job_name(job))
        return job_checkpoints_from_wire(await self._calls.ask(self._stub.Checkpoints, request))

    async def get(
        self,
        job: JobView | str,
        into: Path | str,
        *,
        name: str = "",
        attempt: int = 0,
        ranks: Collection[int] = (),
        told: Callable[[int, int], None] | None = None,
    ) -> FetchedCheckpoint:
        """Fetch a checkpoint, each file compared with its SHA-256: the newest whole one unless one is named.

        `attempt` 0: the newest that has one of this name. Parts lie in a directory for each rank; where one rank alone
        has a part, it lies in `into` itself. After a break the same call goes on where it was. `told` hears how many
        bytes of how many are there.

        >>> print((await client.checkpoints.get("train", "saved")).checkpoint.name)
        """
        found = await self._parts(_job_name(job), name, attempt, ranks)
        stored = [each for each in found.parts if each.tree]
        if stored and not found.depot:
            raise UnavailableError(f"{_NO_DEPOT} the checkpoint (docs/depot.md)")
        if elsewhere := [each for each in stored if each.store]:
            raise ConflictError(
                f"the part of rank {elsewhere[0].rank} of checkpoint {found.checkpoint.id} lies in "
                f"{elsewhere[0].store}; copy it from there with a program for that store"
            )
        connection, files, fetched = self._calls.connection, 0, 0
        total = sum(each.bytes for each in stored)
        arrived = adding_up(total, told)
        for part in stored:
            place = Path(into) if found.checkpoint.needed == 1 else Path(into, str(part.rank))
            async with reaching_depot(
                found.depot, part.ticket, connection.address, connection.credentials.authority
            ) as depot:
                tree = await depot.tree(part.tree, part.size)
                came = await fetch_files(depot, tree.entries, place, arrived)
            files, fetched = files + came.files, fetched + came.fetched
        return FetchedCheckpoint(checkpoint=found.checkpoint, files=files, bytes=total, fetched=fetched)

    async def pin(self, job: JobView | str, name: str, *, attempt: int = 0) -> CheckpointView:
        """Keep a checkpoint until it is unpinned or its job is deleted; `attempt` is as for `get`.

        >>> await client.checkpoints.pin("train", "epoch-3")
        """
        return await self._ordered(self._stub.PinCheckpoint, job, name, attempt)

    async def unpin(self, job: JobView | str, name: str, *, attempt: int = 0) -> CheckpointView:
        """Keep a checkpoint no longer than others: it goes at once if there are enough newer ones.

        >>> await client.checkpoints.unpin("train", "epoch-3")
        """
        return await self._ordered(self._stub.UnpinCheckpoint, job, name, attempt)

    async def remove(self, job: JobView | str, name: str, *, attempt: int = 0) -> CheckpointView:
        """Remove a checkpoint, pinned or not; the one with which the present attempt began stays.

        >>> await client.checkpoints.remove("train", "epoch-2", attempt=1)
        """
        return await self._ordered(self._stub.RemoveCheckpoint, job, name, attempt)

    async def _ordered(self, call: Any, job: JobView | str, name: str, attempt: int) -> CheckpointView:  # noqa: ANN401 - as `_stub`
        request = pb.NamedCheckpoint(job=_job_name(job), attempt=attempt, name=name)
        return checkpoint_view_from_wire(await self._calls.ask(call, request))

    async def _parts(self, job: str, name: str, attempt: int, ranks: Collection[int]) -> CheckpointParts:
        """All parts of one checkpoint, page by page."""
        first, found = 0, None
        while True:
            request = pb.CheckpointPartsRequest(job=job, attempt=attempt, name=name, ranks=sorted(ranks), first=first)
            answer = await self._calls.ask(self._stub.CheckpointParts, request)
            page = checkpoint_parts_from_wire(answer)
            found = page if found is None else replace(page, parts=(*found.parts, *page.parts))
            (attempt, name), job, first = found.checkpoint.id, found.job, answer.following
            if not first:
                return found


def _job_name(job: JobView | str) -> str:
    return job.id if isinstance(job, JobView) else job


def _read(folder: Path) -> Folder:
    """What is in a folder; files that have not changed since the last time are not read again."""
    file = remembered_file(os.environ, folder)
    read = read_folder(folder, now_ns=time.time_ns(), remembered=load_remembered(file))
    if not read.unchanged:
        save_remembered(file, read.remembered)
    return read


def _place(found: JobOutputs, rank: RankOutputs, path: str) -> str:
    """Where a file lies below the directory into which outputs are fetched."""
    return path if found.size == 1 else f"{rank.rank}/{path}"
