"""The synchronous form of `muster.client.services.data`, made from it by `make sync`; change that one."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.data import CheckpointsClient, DataClient, OutputsClient
from muster.domain.data.checkpoint import CheckpointView, FetchedCheckpoint, JobCheckpoints
from muster.domain.data.depot_use import DepotUse
from muster.domain.data.outputs import FetchedOutputs, JobOutputs, OutputFile, OutputsRetry
from muster.domain.data.upload import UploadedFolder
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.view import JobView

if TYPE_CHECKING:
    from muster.jobfile.presets.job_document import JobDocument


class SyncDataClient:
    """Data of jobs, reached as `client.data`."""

    def __init__(self, own: DataClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def upload(
        self, folder: Path | str, *, project: str = "", told: Callable[[int, int], None] | None = None
    ) -> UploadedFolder:
        """Send a folder to the fleet's depot, without what its ignore rules leave out; only what is new there is sent.

        `told` hears how many bytes of how many have been sent.

        >>> print((client.data.upload("trainer")).tree)
        """
        return self._loop.run(self._own.upload(folder, project=project, told=told))

    def storage(self) -> DepotUse:
        """What the fleet's depot held when it was looked through last, of the projects that one may look at.

        >>> bytes_of = {name: held.bytes for name, held in (client.data.storage()).projects.items()}
        """
        return self._loop.run(self._own.storage())

    def with_code(self, spec: JobSpec, *, send: bool = True, told: Callable[[int, int], None] | None = None) -> JobSpec:
        """The job with the folders of its roles sent to the depot, as it can be submitted; harmless when repeated.

        `send`: False only finds out what their trees are. `told` is as for `upload`.

        >>> job = client.jobs.submit(client.data.with_code(spec))
        """
        return self._loop.run(self._own.with_code(spec, send=send, told=told))

    def with_folders(self, document: "JobDocument", *, send: bool = True) -> "JobDocument":
        """The document of a job that names presets, with its folders sent to the depot; harmless when repeated.

        `send` is as for `with_code`.

        >>> job = client.jobs.submit(client.data.with_folders(document))
        """
        return self._loop.run(self._own.with_folders(document, send=send))


class SyncOutputsClient:
    """What jobs have left, reached as `client.outputs`."""

    def __init__(self, own: OutputsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def of(self, job: JobView | str, *, attempt: int = 0, ranks: Collection[int] = ()) -> JobOutputs:
        """How much each rank has left, and what has become of it; of the newest attempt unless one is named.

        >>> stages = [each.outputs.stage for each in (client.outputs.of("train")).ranks]
        """
        return self._loop.run(self._own.of(job, attempt=attempt, ranks=ranks))

    def list(
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

        >>> paths = [file.path for file in client.outputs.list("train", only=["**/*.pt"])]
        """
        return self._loop.run(self._own.list(job, only=only, attempt=attempt, ranks=ranks, metadata=metadata))

    def get(
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

        >>> print((client.outputs.get("train", "results")).files)
        """
        return self._loop.run(self._own.get(job, into, only=only, attempt=attempt, ranks=ranks, told=told))

    def retry(self, job: JobView | str, *, attempt: int = 0, ranks: Collection[int] = ()) -> OutputsRetry:
        """Have outputs stored again that lie on their nodes alone; of the newest attempt unless one is named.

        `of` tells what becomes of that. Nodes that are away do it once they are back. Raises ConflictError where there
        are no outputs that can be stored again.

        >>> print((client.outputs.retry("train")).ranks)
        """
        return self._loop.run(self._own.retry(job, attempt=attempt, ranks=ranks))


class SyncCheckpointsClient:
    """What jobs have saved, reached as `client.checkpoints`."""

    def __init__(self, own: CheckpointsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def of(self, job: JobView | str) -> JobCheckpoints:
        """What a job has saved, whole or not, the newest first.

        >>> whole = [each.name for each in (client.checkpoints.of("train")).checkpoints if each.whole]
        """
        return self._loop.run(self._own.of(job))

    def get(
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

        >>> print((client.checkpoints.get("train", "saved")).checkpoint.name)
        """
        return self._loop.run(self._own.get(job, into, name=name, attempt=attempt, ranks=ranks, told=told))

    def pin(self, job: JobView | str, name: str, *, attempt: int = 0) -> CheckpointView:
        """Keep a checkpoint until it is unpinned or its job is deleted; `attempt` is as for `get`.

        >>> client.checkpoints.pin("train", "epoch-3")
        """
        return self._loop.run(self._own.pin(job, name, attempt=attempt))

    def unpin(self, job: JobView | str, name: str, *, attempt: int = 0) -> CheckpointView:
        """Keep a checkpoint no longer than others: it goes at once if there are enough newer ones.

        >>> client.checkpoints.unpin("train", "epoch-3")
        """
        return self._loop.run(self._own.unpin(job, name, attempt=attempt))

    def remove(self, job: JobView | str, name: str, *, attempt: int = 0) -> CheckpointView:
        """Remove a checkpoint, pinned or not; the one with which the present attempt began stays.

        >>> client.checkpoints.remove("train", "epoch-2", attempt=1)
        """
        return self._loop.run(self._own.remove(job, name, attempt=attempt))
