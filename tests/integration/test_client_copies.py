"""`client.attachments.copy`: files go to a running execution and come back, from Python."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from muster import Credentials, SyncClient
from muster.client.files.copying import TransferProgress, TransferResult
from muster.client.files.plan import NotCopied
from muster.client.files.transfer_error import FileTransferError
from muster.client.files.transfers import ClashError
from muster.domain.errors import ConflictError, InvalidJobError, UnknownNameError
from muster.domain.jobs.job import Resources, Role
from muster.trust.files import read_secret
from tests.integration.attaching import SLEEPER, attaching_fleet

MEBIBYTE = 1024 * 1024
PAIR = replace(
    SLEEPER,
    name="pair",
    roles=(Role(name="worker", count=2, command=("sleep", "1000"), resources=Resources(cpu_millis=10)),),
)


async def test_a_directory_goes_to_one_rank_and_comes_back_with_its_progress(tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    (here / "one").write_bytes(os.urandom(MEBIBYTE))
    (here / "sub" / "two").write_text("2")
    told: list[TransferProgress] = []
    async with attaching_fleet(tmp_path) as fleet:
        await fleet.running(PAIR)
        copy = fleet.client.attachments.copy

        sent = await copy(here, "pair:1:there", on_progress=told.append)
        back = await copy(["pair:1:there/one", "pair:1:there/sub"], f"{tmp_path}/back/")
        seen = [(await fleet.client.attachments.run("pair", ["ls"], rank=rank)).output for rank in (0, 1)]

    whole = MEBIBYTE + 1
    assert (sent, back) == (
        TransferResult(files=2, size=whole, directories=2),
        TransferResult(files=2, size=whole, directories=1),
    )
    assert told[-1] == TransferProgress(files=2, all_files=2, size=whole, all_size=whole)
    assert (tmp_path / "back" / "one").read_bytes() == (here / "one").read_bytes()
    assert (tmp_path / "back" / "sub" / "two").read_text() == "2"
    assert seen == [b"", b"there\n"]


async def test_the_synchronous_client_copies_alike(tmp_path: Path) -> None:
    file = tmp_path / "a:b"
    file.write_text("colon")
    async with attaching_fleet(tmp_path) as fleet:
        await fleet.running()
        shown = Credentials(token=read_secret(fleet.state / "local-token"))

        def both_ways() -> tuple[TransferResult, TransferResult]:
            with SyncClient(fleet.address, shown) as client:
                sent = client.attachments.copy(file, "sleeper:it")
                return sent, client.attachments.copy("sleeper:it", tmp_path / "back")

        results = await asyncio.to_thread(both_ways)

    assert results == (TransferResult(files=1, size=5), TransferResult(files=1, size=5))
    assert (tmp_path / "back").read_text() == "colon"


async def test_what_cannot_be_copied_is_said_and_hinders_nothing_else(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "good").write_text("good")
    (here / "out").symlink_to("/etc/passwd")
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        copy = fleet.client.attachments.copy

        done = await copy(here, "sleeper:there")
        assert (done.files, done.failed) == (1, ())
        assert [each.path for each in done.left_out] == [str(here / "out")]
        assert all(isinstance(each, NotCopied) and each.why for each in done.left_out)

        with pytest.raises(FileTransferError, match="sleeper:nosuch: there is no such file or directory"):
            await copy("sleeper:nosuch", tmp_path)
        with pytest.raises(ClashError):
            await copy(here, "sleeper:there/good")
        with pytest.raises(UnknownNameError, match="nosuch"):
            await copy("nosuch:file", tmp_path)
        with pytest.raises(InvalidJobError, match="both sides are on this machine"):
            await copy(here, tmp_path)
        with pytest.raises(InvalidJobError, match="no source is named"):
            await copy([], "sleeper:")
        with pytest.raises(InvalidJobError, match="several executions"):
            await copy(["sleeper:0:a", "sleeper:1:b"], tmp_path)
        await fleet.client.jobs.stop(job.id)
        await fleet.client.jobs.wait(job.id)
        with pytest.raises(ConflictError, match=r"ended .* ago with exit code 143"):
            await copy(here / "good", "sleeper:")
