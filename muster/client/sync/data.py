"""The synchronous form of `muster.client.services.data`, made from it by `make sync`; change that one."""

from collections.abc import Callable
from pathlib import Path

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.data import DataClient
from muster.domain.data.depot_use import DepotUse
from muster.domain.data.upload import UploadedFolder
from muster.domain.jobs.job import JobSpec


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
