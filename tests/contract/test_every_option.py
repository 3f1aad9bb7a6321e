"""Every option of every command is used once against a real coordinator, and does what it says or says why not."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from typer.main import get_command
from typer.testing import CliRunner

from muster.cli.exit_codes import ExitCode
from muster.cli.program import program
from tests.contract.command_lines import AGAINST_A_FLEET, Line, documented, used
from tests.integration.programs import ROOT
from tests.integration.secured import Secured, joining, secured, until_ready
from tests.small_bundles import make_bundle

JOB = "name: filed\ncommand: [sh, -c, 'true']\n"
QUOTAS = "projects:\n  vision: {department: research, limit: {gpus: 4}}\n"
PRESET = "image: registry.local/pt:2.9\nenv: {MODE: fast}\n"
POLICY = "rules:\n  workers: {max: 16}\n"
MACHINES = "nodes:\n  - host: 127.0.0.1:1\n"
BY_PROGRAMS = (
    Line(
        "up --nodes 1 --listen 0 --console --dir {dir}/up --gpu-provider fake:1xH100 "
        "--cpus 1 --memory 1Gi --whole-machine --no-docker"
    ),
    Line("jobs --watch"),
    Line("down --dir {dir}/up"),
    Line("demo {dir}/job.yaml --nodes 1"),
    Line("init --state {dir}/init --listen 127.0.0.1:0 --name muster.example.org"),
)
LIMIT = 60.0


def test_no_option_is_left_out() -> None:
    tree = get_command(program())
    tried = {each for line in (*AGAINST_A_FLEET, *BY_PROGRAMS) for each in used(line.words, tree)}

    assert set(documented(tree)) - tried == set()


def test_every_option_is_understood_by_a_coordinator(tmp_path: Path) -> None:
    prepare(tmp_path)
    with beside(tmp_path) as (known, env):
        wrong = list(tried(known, env))

    assert not wrong, "\n".join(wrong)


def tried(known: dict[str, str], env: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with each line that did not end as it should."""
    for line in AGAINST_A_FLEET:
        words = shlex.split(line.words.format(**known))
        done = CliRunner().invoke(program(words), words, env=env)
        if line.keeps:
            known[line.keeps] = done.stdout.split()[0]
        if done.exit_code != line.code or "Usage:" in done.stderr or not isinstance(done.exception, SystemExit | None):
            yield f"{line.words}: {done.exit_code} {done.exception!r}\n{done.output[-2000:]}"


@contextmanager
def beside(directory: Path) -> Iterator[tuple[dict[str, str], Mapping[str, str]]]:
    """A fleet with one node in a thread of its own: the command line wants the main one for its signals."""
    ready, done, found = Event(), Event(), []

    async def serve() -> None:
        async with secured(directory / "fleet") as fleet:
            known = {
                "dir": str(directory),
                "address": fleet.doors.clients,
                "authority": fleet.authority.fingerprint,
                "node": "worker",
            }
            (directory / "token").write_text(fleet.admin_token)
            async with joining(fleet, "worker", await fleet.join_token()), fleet.client() as client:
                await until_ready(client, "worker")
                known["join_token"] = (await client.join_tokens.create())[1].id
                known["token"] = (await client.tokens.create("admin"))[1].id
                found.append((known, environment(fleet)))
                ready.set()
                await asyncio.to_thread(done.wait)

    with ThreadPoolExecutor(1) as threads:
        serving = threads.submit(asyncio.run, serve())
        serving.add_done_callback(lambda _: ready.set())
        try:
            assert ready.wait(LIMIT)
            yield found[0]
        finally:
            done.set()
            serving.result(LIMIT)


def environment(fleet: Secured) -> Mapping[str, str]:
    return {
        "MUSTER_COORDINATOR": fleet.doors.clients,
        "MUSTER_TLS_CA": str(fleet.directory / "trust" / "authority.pem"),
        "MUSTER_TOKEN": fleet.admin_token,
        "MUSTER_HOME": str(fleet.directory / "home"),
        "HOME": str(fleet.directory),
        "COLUMNS": "120",
    }


def prepare(directory: Path) -> None:
    (directory / "fleet").mkdir()
    (directory / "code").mkdir()
    (directory / "job.yaml").write_text(JOB)
    (directory / "machines.yaml").write_text(MACHINES)
    (directory / "quotas.yaml").write_text(QUOTAS)
    (directory / "policy.yaml").write_text(POLICY)
    (directory / "preset.yaml").write_text(PRESET)
    (directory / "vars.env").write_text("B=2\n")
    (directory / "secret").write_text("swordfish")
    (directory / "key.txt").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    (directory / "chat.txt").write_text("https://hooks.example.com/hush")
    make_bundle(directory).rename(directory / "small.tar")


def test_a_fleet_on_this_machine_takes_all_its_options_too(tmp_path: Path) -> None:
    prepare(tmp_path)
    lines = {line.words.split()[0]: shlex.split(line.words.format(dir=tmp_path)) for line in BY_PROGRAMS}
    up = started(tmp_path, lines["up"])
    with up:
        assert up.stdout is not None
        assert any("Ctrl-C stops all of it" in each for each in iter(up.stdout.readline, "")), up.stderr
        watching = started(tmp_path, lines["jobs"])
        with watching:
            assert watching.stdout is not None
            assert watching.stdout.readline().split()[:2] == ["ID", "NAME"]
            watching.send_signal(signal.SIGINT)
            assert watching.wait(LIMIT) == ExitCode.INTERRUPTED
        with started(tmp_path, lines["down"]) as down:
            assert down.wait(LIMIT) == 0
        assert up.wait(LIMIT) == 0
    for name in ("demo", "init"):
        with started(tmp_path, lines[name]) as each:
            out, err = each.communicate(timeout=LIMIT)
            assert each.returncode == 0, (out, err)


def started(directory: Path, words: list[str]) -> "subprocess.Popen[str]":
    own = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    return subprocess.Popen(
        [sys.executable, "-m", "muster", *words],
        cwd=ROOT,
        env={**own, "MUSTER_HOME": str(directory / "home")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
