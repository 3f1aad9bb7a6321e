"""The cost of asking over HTTP instead of gRPC: one job, a list of a hundred, a submit, and the console's memory.

A coordinator with TLS and a console beside it, as programs. One caller asks both in turns, over open connections.
"""

import asyncio
import http.client
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from bench.figures import Bar
from bench.fleet import AUTHORITY, READY_WITHIN, Fleet, coordinator, gang
from bench.programs import ProgramError, ended_at_exit, resident, serving, start
from bench.setting import Setting
from muster.domain.fleet.access import EVERYWHERE, Access, AccountKind
from muster.trust.files import read_secret, write_private

EXECUTIONS = 8
JOBS = 200
LISTED = 100

GET_BAR = Bar(figure=f"a job of {EXECUTIONS} over HTTP, more than over gRPC", limit=5, unit="ms")
LIST_BAR = Bar(figure=f"a list of {LISTED} jobs over HTTP, more than over gRPC", limit=10, unit="ms")
SUBMIT_BAR = Bar(figure="a submit over HTTP, more than over gRPC", limit=8, unit="ms")
MEMORY_BAR = Bar(figure="a console after these questions, resident memory", limit=120, unit="MB")


async def measure(setting: Setting) -> None:
    """Each question in turns, over gRPC and over HTTP."""
    await setting.quiet("rest: one caller asks over gRPC and over HTTP in turns")
    repeats = setting.repeats(60, 20)
    async with (
        coordinator(setting.scratch.fresh("rest")) as it,
        console(it, setting.scratch.fresh("console")) as served,
    ):
        url, pid = served
        job = ""
        spec = replace(gang(EXECUTIONS, "true"), hold=True)
        for _ in range(JOBS):
            job = (await it.client.jobs.submit(spec, queue_anyway=True)).id
        asked = Http(url, read_secret(it.state / "admin-token"))
        document = json.dumps({"name": "bench", "workers": EXECUTIONS, "command": ["true"], "hold": True}).encode()
        questions: Mapping[Bar, tuple[Callable[[], Awaitable[object]], Callable[[], object]]] = {
            GET_BAR: (lambda: it.client.jobs.get(job), lambda: asked.get(f"/v1/jobs/{job}")),
            LIST_BAR: (lambda: it.client.jobs.page(size=LISTED), lambda: asked.get(f"/v1/jobs?page_size={LISTED}")),
            SUBMIT_BAR: (
                lambda: it.client.jobs.submit(spec, queue_anyway=True),
                lambda: asked.post("/v1/jobs?queue_anyway=true", document),
            ),
        }
        for bar, (over_grpc, over_http) in questions.items():
            grpc_times, http_times = list[float](), list[float]()
            for _ in range(repeats):
                began = time.perf_counter()
                await over_grpc()
                grpc_times.append((time.perf_counter() - began) * 1000)
                began = time.perf_counter()
                await asyncio.to_thread(over_http)
                http_times.append((time.perf_counter() - began) * 1000)
            name = bar.figure.partition(" over HTTP")[0]
            ours = setting.findings.take(f"{name}, HTTP", http_times, "ms")
            theirs = setting.findings.take(f"{name}, gRPC", grpc_times, "ms")
            setting.findings.judge(bar, ours.median - theirs.median, f"{name}, HTTP")
        setting.findings.take(MEMORY_BAR.figure, [resident(pid)], "MB")
        setting.findings.absolute(MEMORY_BAR, MEMORY_BAR.figure)


class Http:
    """One connection to the console. Blocks."""

    def __init__(self, url: str, token: str) -> None:
        where = urlsplit(url)
        assert where.hostname is not None
        self._connection = http.client.HTTPConnection(where.hostname, where.port, timeout=READY_WITHIN)
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> bytes:
        """What is answered; ProgramError for what goes wrong."""
        return self._ask("GET", path, None, self._headers)

    def post(self, path: str, body: bytes) -> bytes:
        """The same for a body of JSON."""
        return self._ask("POST", path, body, {**self._headers, "Content-Type": "application/json"})

    def _ask(self, verb: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        self._connection.request(verb, path, body, dict(headers))
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise ProgramError(f"{verb} {path}: {answer.status}: {said[:500].decode(errors='replace')}")
        return said


@asynccontextmanager
async def console(it: Fleet, directory: Path) -> AsyncIterator[tuple[str, int]]:
    """A console before this coordinator: its URL and process id."""
    ready, own, log = directory / "url", directory / "token", directory / "console.log"
    await it.client.accounts.add("console", AccountKind.SERVICE, {EVERYWHERE: Access.VIEWER})
    write_private(own, (await it.client.tokens.create("console"))[0].encode())
    places = ["--coordinator", it.address, "--authority", it.state / AUTHORITY, "--listen", "127.0.0.1:0"]
    command = [
        sys.executable,
        "-m",
        "console",
        *places,
        "--token-file",
        own,
        "--ready-file",
        ready,
        "--log-level",
        "warning",
    ]
    async with ended_at_exit() as programs:
        programs.append(start(command, log))
        yield await serving(programs[0], ready, log, READY_WITHIN), programs[0].pid
