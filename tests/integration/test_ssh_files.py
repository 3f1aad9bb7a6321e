"""Files of an execution by the stock scp, sftp and rsync."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.ssh_hosts import Finished, SshHost

MUCH = os.urandom(20_000_000)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A directory here with a few files."""
    mine = tmp_path / "mine"
    (mine / "deep" / "er").mkdir(parents=True)
    (mine / "model").write_bytes(MUCH)
    (mine / "deep" / "er" / "größe 1").write_text("small")
    (mine / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (mine / "deep" / "run.sh").chmod(0o755)
    return mine


def same(one: Path, other: Path) -> bool:
    return subprocess.run(("diff", "--recursive", "--no-dereference", one, other), check=False).returncode == 0


async def copied(host: SshHost, *words: str) -> None:
    done = await host.run("-q", *words, program="scp")
    assert (done.code, done.errors) == (0, "")


async def rsynced(host: SshHost, *words: str) -> Finished:
    process = await host.other("rsync", "-e", f"ssh -F {host.config}", *words)
    assert (process.code, process.errors) == (0, "")
    return process


async def test_a_file_is_copied_there_and_back(host: SshHost, mine: Path, tmp_path: Path) -> None:
    await copied(host, str(mine / "model"), f"{host.name}:theirs")
    await copied(host, f"{host.name}:theirs", str(tmp_path / "back"))
    assert (host.execution / "theirs").read_bytes() == (tmp_path / "back").read_bytes() == MUCH


async def test_a_directory_is_copied_with_all_in_it(host: SshHost, mine: Path, tmp_path: Path) -> None:
    await copied(host, "-r", "-p", str(mine), f"{host.name}:theirs")
    await copied(host, "-r", f"{host.name}:theirs", str(tmp_path / "back"))
    assert same(mine, host.execution / "theirs")
    assert same(mine, tmp_path / "back")
    assert os.access(host.execution / "theirs" / "deep" / "run.sh", os.X_OK)


async def test_what_cannot_be_copied_is_named(host: SshHost, tmp_path: Path) -> None:
    done = await host.run("-q", f"{host.name}:missing", str(tmp_path / "back"), program="scp")
    assert done.code == 1
    assert "missing: No such file or directory" in done.errors


async def test_a_batch_of_sftp_does_what_it_says(host: SshHost, mine: Path, tmp_path: Path) -> None:
    (tmp_path / "batch").write_text(
        f"mkdir models\ncd models\nput {mine / 'model'} one\nrename one two\nsymlink two newest\nchmod 600 two\n"
        f"get two {tmp_path / 'back'}\nls -l\n"
    )
    done = await host.run("-b", str(tmp_path / "batch"), host.name, program="sftp")
    assert done.code == 0
    assert (tmp_path / "back").read_bytes() == MUCH
    assert (host.execution / "models" / "newest").readlink() == Path("two")
    assert (host.execution / "models" / "two").stat().st_mode & 0o777 == 0o600


async def test_files_go_over_a_connection_that_is_shared(host: SshHost, mine: Path, tmp_path: Path) -> None:
    shared = ("-o", "ControlMaster=auto", "-o", f"ControlPath={tmp_path / 'c'}", "-o", "ControlPersist=yes")
    assert (await host.ssh("true", *shared)).code == 0
    try:
        await copied(host, *shared, "-r", str(mine), f"{host.name}:theirs")
        done = await host.run("-b", "-", *shared, host.name, program="sftp", given=b"rename theirs/model theirs/two\n")
        assert (done.code, (host.execution / "theirs" / "two").read_bytes()) == (0, MUCH)
        await copied(host, *shared, f"{host.name}:theirs/two", str(tmp_path / "back"))
        assert (tmp_path / "back").read_bytes() == MUCH
    finally:
        assert (await host.run(*shared, "-O", "exit", host.name)).code == 0


async def test_a_directory_is_kept_the_same_by_rsync(host: SshHost, mine: Path, tmp_path: Path) -> None:
    await rsynced(host, "-a", f"{mine}/", f"{host.name}:theirs/")
    assert same(mine, host.execution / "theirs")
    (mine / "model").unlink()
    (mine / "deep" / "run.sh").write_text("#!/bin/sh\ntrue\n")
    again = await rsynced(host, "-a", "--delete", "--itemize-changes", f"{mine}/", f"{host.name}:theirs/")
    assert same(mine, host.execution / "theirs")
    assert b"*deleting   model" in again.output
    await rsynced(host, "-a", f"{host.name}:theirs/", f"{tmp_path / 'back'}/")
    assert same(mine, tmp_path / "back")
