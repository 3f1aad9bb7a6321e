"""Work in a container whose image has one static program: no shell, no tar, no Python, no library."""

import asyncio
import shutil
from urllib.request import urlopen

import pytest

from tests.e2e import images
from tests.e2e.deployment import Deployment

PORT = 8000


@pytest.fixture
def job(muster: Deployment) -> str:
    """A job of one container that serves all of its files."""
    try:
        muster.fleet.load(images.bare())
    except images.ImageUnavailableError as error:
        pytest.skip(str(error))
    muster.start_relay()
    muster.start_agents(muster.fleet.nodes[0])
    job = muster.submit(
        {
            "name": "bare",
            "image": "muster/bare:latest",
            "pull": "never",
            "network": "bridge",
            "command": ["/httpd", "-f", "-p", str(PORT), "-h", "/"],
        }
    )
    muster.await_states(job, ["running"])
    return job


@pytest.mark.fleet
def test_files_go_there_and_back_and_what_was_brought_runs(muster: Deployment, job: str) -> None:
    shutil.copy(images.static_busybox(), muster.directory / "echo")
    (muster.directory / "tree" / "a b").mkdir(parents=True)
    (muster.directory / "tree" / "a b" / "line\nbreak").write_text("small")

    there = muster.run("cp", str(muster.directory / "echo"), str(muster.directory / "tree"), f"{job}:/data/brought/")
    said = muster.run("exec", job, "--", "/data/brought/echo", "it", "works")
    back = muster.run("cp", f"{job}:/data/brought/tree", str(muster.directory / "back"))

    assert (there.code, back.code) == (0, 0), (there, back)
    assert (said.code, said.out) == (0, "it works\n")
    assert (muster.directory / "back" / "a b" / "line\nbreak").read_text() == "small"


@pytest.mark.fleet
def test_a_port_is_forwarded_and_a_shell_that_is_not_there_is_told(muster: Deployment, job: str) -> None:
    (muster.directory / "page").write_text("served")
    assert muster.run("cp", str(muster.directory / "page"), f"{job}:/data/page").code == 0

    async def fetched() -> bytes:
        async with muster.client as client, await client.attachments.forward(job, PORT) as forward:
            return await asyncio.to_thread(lambda: urlopen(f"http://{forward.address}/data/page", timeout=30).read())

    assert asyncio.run(fetched()) == b"served"
    shell = muster.run("exec", job, "--", "sh")
    assert (shell.code, shell.err) == (127, "sh: not found in the execution\n")
