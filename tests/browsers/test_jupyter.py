"""Jupyter Lab of an interactive job, in a real browser, over `muster forward`."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from muster.domain.jobs.job import JobSpec
from muster.jobfile import load_jobs
from tests.browsers.notebooks import notebook, page_program
from tests.frameworks.environments import interpreter
from tests.integration.attaching import attaching_fleet
from tests.integration.forwards import forwarding
from tests.integration.programs import ROOT

EXAMPLE = ROOT / "examples" / "jupyter" / "processes.yaml"


def example(directory: Path) -> JobSpec:
    """The job of the example, with Jupyter Lab in its path and a home of its own."""
    [(_, spec)] = load_jobs(EXAMPLE.read_text(), EXAMPLE.name)
    env = {"PATH": f"{interpreter('jupyter').parent}:{os.defpath}", "HOME": str(directory)}
    return replace(spec, roles=tuple(replace(role, env={**role.env, **env}) for role in spec.roles))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A cell that runs for as long as a test wants."""

    code: str
    begun: asyncio.Event
    """Set once the cell runs."""
    go: asyncio.Event
    """Lets the cell end, which prints `after` then."""


@asynccontextmanager
async def held() -> AsyncIterator[Hold]:
    """Code that the kernel runs until it is let go."""
    begun, go = asyncio.Event(), asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.set()
        await go.wait()
        writer.write(b"after")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        where = server.sockets[0].getsockname()
        yield Hold(code=f"import socket; print(socket.create_connection({where}).recv(9).decode())", begun=begun, go=go)


@pytest.fixture
def page() -> tuple[str, ...]:
    """The words that start a page, and all that pages need; what has to be made for them comes before any limit."""
    interpreter("jupyter")
    return page_program()


async def test_a_notebook_opens_with_its_token_and_its_kernel_goes_on_while_the_relay_is_killed(
    tmp_path: Path, page: tuple[str, ...]
) -> None:
    spec = example(tmp_path)
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running(spec)
        async with forwarding(fleet, job, "0:jupyter") as forward, notebook(page) as person, held() as hold:
            assert forward.opened.startswith(f"http://{forward.address}/?token=")
            assert (await person.open(forward.opened)).endswith("JupyterLab")
            assert await person.run("x = 20; print(x + 1)") == "21"
            sockets = await person.sockets()

            async with asyncio.TaskGroup() as tasks:
                cell = tasks.create_task(person.run(f"print('before'); {hold.code}"))
                await hold.begun.wait()
                await fleet.kill("relay")
                await fleet.start_relay()
                hold.go.set()
            assert cell.result() == "before\nafter"
            assert await person.run("print(x + 22)") == "42"
            assert (sockets[-1], await person.sockets()) == (True, sockets)
