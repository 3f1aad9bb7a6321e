"""The page on backups, followed to the letter while a fleet works, with real programs, TLS and certificates."""

import asyncio
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.client.client import Client
from muster.domain.jobs.lifecycle import JobPhase
from muster.rpc.channel import Credentials
from muster.trust.files import read_secret
from tests.integration.jobs import shell
from tests.integration.programs import ROOT
from tests.integration.secured import until_ready

PAGE = ROOT / "docs" / "backup.md"
BLOCKS = [
    [line.removeprefix("$ ") for line in block.splitlines()]
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
]
LINES = 400
SCRIPT = f"""
seq 1 {LINES}
while [ ! -e "$GO" ]; do sleep 0.05; done
seq {LINES + 1} {2 * LINES}
"""
LIMIT = 60.0


class CoordinatorMachine:
    """The commands of the page's reader: `systemctl` for one unit, and programs as the coordinator's user."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "state"
        self.backups = directory / "backup"
        self.backups.mkdir()
        (self.backups / "passphrase").write_text("a long sentence that nobody else knows\n")
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.clients, self.agents = (f"127.0.0.1:{each.getsockname()[1]}" for each in (one, other))
        self._program: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ("--state", self.state, "--listen", self.clients, "--listen-agents", self.agents)
        command = [sys.executable, "-m", "coordinator", *map(str, words)]
        self._program = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
        assert self._program.stderr is not None
        said = b""
        while b"coordinator serves" not in said:
            line = self._program.stderr.readline()
            assert line, said.decode()
            said += line

    def stop(self) -> None:
        if self._program is not None:
            self._program.terminate()
            self._program.communicate(timeout=LIMIT)
            self._program = None

    def follow(self, line: str) -> str:
        """Do what a line of the page says; what it prints."""
        match shlex.split(line):
            case ["sudo", "systemctl", "stop", "muster-coordinator"]:
                self.stop()
            case ["sudo", "systemctl", "start", "muster-coordinator"]:
                self.start()
            case ["sudo", "-u", "muster", "muster-coordinator", *words]:
                words = [word.replace("/backup/", f"{self.backups}/") for word in words]
                command = [sys.executable, "-m", "coordinator", *words]
                env = {**os.environ, "MUSTER_STATE": str(self.state)}
                done = subprocess.run(
                    command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LIMIT, check=False
                )
                assert done.returncode == 0, done.stderr
                return done.stdout
            case _:
                raise AssertionError(f"the page has a line that this test does not know: {line}")
        return ""

    def client(self) -> Client:
        authority = (self.state / "trust" / "authority.pem").read_bytes()
        return Client(self.clients, Credentials(authority=authority, token=read_secret(self.state / "admin-token")))


@contextmanager
def node(machine: CoordinatorMachine, directory: Path, name: str, first: int, token: str) -> Iterator[None]:
    """An agent that joins, and what it runs."""
    words = (
        "--coordinator",
        machine.clients,
        "--name",
        name,
        "--state",
        str(directory / name),
        "--address",
        "127.0.0.1",
    )
    options = ("--processes", "--job-user", "none", "--no-docker", "--gpu-provider", "fake:1xT4", "--stop-on-exit")
    command = [sys.executable, "-m", "agent", *words, *options, "--ports", f"{first}-{first + 19}"]
    env = {**os.environ, "MUSTER_JOIN_TOKEN": token}
    with (directory / f"{name}.log").open("wb") as log:
        agent = subprocess.Popen(command, cwd=ROOT, env=env, stderr=log, stdout=log)
    try:
        yield
    finally:
        agent.terminate()
        agent.wait(LIMIT)


async def test_a_fleet_that_works_is_backed_up_and_restored_elsewhere(tmp_path: Path) -> None:
    """The restore goes into another directory, as on another machine that has taken the name of the first one."""
    machine, go = CoordinatorMachine(tmp_path), tmp_path / "go"
    take, look, put_back = BLOCKS
    machine.start()
    try:
        async with machine.client() as client:
            token, _ = await client.join_tokens.create(uses=2)
            with node(machine, tmp_path, "one", 31_600, token), node(machine, tmp_path, "two", 31_620, token):
                await until_ready(client, "one", "two")
                job = await client.jobs.submit(shell(SCRIPT, 2, env={"GO": str(go)}, max_per_node=1), queue_anyway=True)
                printed = 0
                async for line in client.jobs.logs(job.id, follow=True):
                    printed += line.text == b"%d" % LINES
                    if printed == 2:
                        break
                for line in (*take, *look):
                    said = await asyncio.to_thread(machine.follow, line)
                newer = await client.jobs.submit(shell("sleep 1000"), queue_anyway=True)

                machine.state = tmp_path / "elsewhere"
                for line in put_back:
                    said += await asyncio.to_thread(machine.follow, line)
                assert "1 jobs that had not ended, 2 nodes" in said
                assert newer.id not in {each.id async for each in client.jobs.list()}

                go.touch()
                ended = await client.jobs.wait(job.id)
                logs = [(each.rank, int(each.text)) async for each in client.jobs.logs(job.id, follow=True)]
    finally:
        machine.stop()
    assert ended.phase is JobPhase.SUCCEEDED
    assert len(ended.attempts) == 1
    for rank in (0, 1):
        assert [number for of, number in logs if of == rank] == list(range(1, 2 * LINES + 1))
