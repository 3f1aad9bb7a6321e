"""The SDK for data of jobs: folders that go along."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.client.calls import Calls
from muster.domain.data.code import JobCode
from muster.domain.data.depot_use import DepotUse
from muster.domain.data.upload import UploadedFolder
from muster.domain.jobs.job import JobSpec
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import data_pb2 as pb
from muster.rpc.v1.data_pb2_grpc import DataServiceStub
from muster.transfer.depot_client import DEPOT_CHANNEL_OPTIONS, DepotClient
from muster.transfer.folder import Folder, read_folder
from muster.transfer.remembered import load_remembered, remembered_file, save_remembered
from muster.wire.sharing.storage import depot_use_from_wire


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
        host, _, port = shown.depot.rpartition(":")
        connection = self._calls.connection
        address = f"{host or connection.address.rpartition(':')[0]}:{port}"
        believed = Credentials(authority=connection.credentials.authority)
        async with open_channel(address, believed, DEPOT_CHANNEL_OPTIONS) as channel:
            sent = await DepotClient(channel, shown.ticket, address).send(read, told)
        return UploadedFolder(
            tree=sent.tree,
            size=len(read.tree.form),
            files=len(read.tree.entries),
            bytes=read.tree.size,
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
            if code is None or code.tree or code.folder in sent:
                continue
            if send:
                done = await self.upload(code.folder, project=spec.project, told=told)
                sent[code.folder] = JobCode(tree=done.tree, size=done.size)
            else:
                tree = (await asyncio.to_thread(_read, Path(code.folder))).tree
                sent[code.folder] = JobCode(tree=tree.digest, size=len(tree.form))
        if not sent:
            return spec
        roles = (
            role if role.code is None else replace(role, code=sent.get(role.code.folder, role.code))
            for role in spec.roles
        )
        return replace(spec, roles=tuple(roles))


def _read(folder: Path) -> Folder:
    """What is in a folder; files that have not changed since the last time are not read again."""
    file = remembered_file(os.environ, folder)
    read = read_folder(folder, now_ns=time.time_ns(), remembered=load_remembered(file))
    if read.hashed:
        save_remembered(file, read.remembered)
    return read
