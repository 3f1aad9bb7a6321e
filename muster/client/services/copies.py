"""Files copied between this machine and one running execution, from and to places as people write them."""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from muster.client.attachments.places import LocalPlace, Place, execution_meant, name_at_target, place_of
from muster.client.files.byte_stream import ByteStream
from muster.client.files.copying import OnTransfer, TransferResult
from muster.client.files.local_tree import LocalTree
from muster.client.files.remote_tree import RemoteTree
from muster.client.files.sftp import SftpClient, sftp_over
from muster.client.files.transfers import CopySource, copy_all
from muster.domain.errors import InvalidJobError

WrittenPlace = str | os.PathLike[str]
"""`JOB:[RANK:]PATH`, or a path of this machine; what is no text is a path whatever is in it."""


async def copied(
    sources: WrittenPlace | Sequence[WrittenPlace],
    target: WrittenPlace,
    open_files: Callable[[str, int | None], Awaitable[ByteStream]],
    *,
    times: bool,
    on_progress: OnTransfer,
) -> TransferResult:
    """Copy, over what `open_files` opens for a job and a rank; as `AttachmentsClient.copy`."""
    written = [sources] if isinstance(sources, str | os.PathLike) else sources
    found, there = [_place(each) for each in written], _place(target)
    if not found:
        raise InvalidJobError("no source is named; say what is to be copied")
    async with sftp_over(await open_files(*execution_meant(found, there))) as sftp:
        given = [CopySource(tree=tree_of(each, sftp), name=name_at_target(each)) for each in found]
        into = there.path.endswith("/")
        return await copy_all(given, tree_of(there, sftp), into=into, times=times, on_progress=on_progress)


def tree_of(place: Place, client: SftpClient) -> LocalTree | RemoteTree:
    """The files at a place."""
    if isinstance(place, LocalPlace):
        return LocalTree(Path(place.path))
    return RemoteTree(client, place.path, place.text)


def _place(written: WrittenPlace) -> Place:
    return place_of(written) if isinstance(written, str) else LocalPlace(path=os.fspath(written))
