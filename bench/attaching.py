"""Attachments: commands, terminals and ports of running executions, through a relay, with TLS between all of them.

Everything of it shares the CPUs of one machine: client, relay, agent, and what runs in the execution. Beside
`muster exec` stands `ssh` to an sshd here, which starts no Python.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.containers import IMAGE, connected, dockerd
from bench.figures import Bar
from bench.fleet import READY_WITHIN, Fleet, fleet, gang
from bench.programs import ProgramError, ended_at_exit, finished, resident, serving, start
from bench.setting import Setting, Turns
from muster.client.attachments.attachment import Attachment
from muster.domain.attachments.frame import AttachmentInput, AttachmentOpened, AttachmentOutput
from muster.domain.attachments.request import CommandRequest, TerminalSize
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import State

NODES, LAUNCHED = 8, 32
KEYS = 300
FORWARDED = 300 * 2**20
"""Bytes that a forward carries in one turn."""
SLEEPERS = 20
"""Attachments whose reader sleeps."""
FILLED_WITHIN = 3.0
"""Seconds in which what lies between a program that prints and a reader that sleeps is full."""
CALL_WITHIN = 60.0

BYTE, WHOLE, SSH = "first byte of a command in an execution", "muster exec JOB -- true", "ssh to an sshd here: true"
KEY, CONNECTION, SPEED = "echo of a key at a terminal", "first byte of a forwarded connection", "forward"
ALONE, BESIDE = "gang of 32 started", "gang of 32 started while a forward runs at full speed"
FIRST, BARE = "first command in a container", "docker exec in a container"
FIRST_BAR = Bar(figure="first command in a container / docker exec", limit=1.2)
AGAIN = "next command in that container"
BYTE_BAR = Bar(figure=BYTE, limit=50, unit="ms")
WHOLE_BAR = Bar(figure=f"{WHOLE}, whole process", limit=0.6, unit="s")
KEY_BAR = Bar(figure=KEY, limit=3, unit="ms")
LATE_KEY_BAR = Bar(figure=f"{KEY}, 99th percentile", limit=15, unit="ms")
CONNECTION_BAR = Bar(figure=CONNECTION, limit=30, unit="ms")
SPEED_BAR = Bar(figure="forward, one connection, TLS", limit=100, unit="MB/s", at_least=True)
REST_BAR = Bar(figure="relay, memory at rest", limit=50, unit="MB")
SLEEPER_BAR = Bar(figure="relay, memory for each attachment whose reader sleeps", limit=2.5, unit="MiB")
LAUNCH_BAR = Bar(figure="gang of 32 started: while a forward runs at full speed / without", limit=1.2)

SERVES = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
piece = bytes(1 << 20)
while True:
    connection, _ = server.accept()
    with connection:
        wanted = int(connection.recv(16) or 0)
        try:
            for _ in range(wanted >> 20):
                connection.sendall(piece)
            connection.sendall(b"!")
        except OSError:
            pass
"""
"""Sends as many MiB as it is asked for, and then a byte."""


async def measure(setting: Setting) -> None:
    """All of it, on one fleet."""
    async with fleet(setting.scratch, NODES) as muster, relay(muster) as pid:
        await setting.quiet("commands, terminals and ports of a running execution")
        setting.findings.take("relay at rest", [resident(pid) * 2**20 / 1e6], "MB")
        setting.findings.absolute(REST_BAR, "relay at rest")
        job = await running(muster, gang(1, "sleep", "1000", spread=False))
        await _commands(setting, muster, job)
        await _keys(setting, muster, job)
        await _forwards(setting, muster, job)
        await _sleepers(setting, muster, job, pid)
        await muster.client.jobs.stop(job)
        await muster.settled(job)
    if setting.has("docker"):
        await _containers(setting)


@asynccontextmanager
async def relay(muster: Fleet) -> AsyncIterator[int]:
    """The relay of a fleet, once it serves; its process id."""
    ready, log = muster.state.parent / "relay-address", muster.state.parent / "relay.log"
    places = ["--state", muster.state, "--listen-relay", "127.0.0.1:0", "--ready-file", ready]
    async with ended_at_exit() as programs:
        command = [sys.executable, "-m", "coordinator.relay", *places, "--log-level", "warning"]
        programs.append(start(command, log))
        await serving(programs[0], ready, log, READY_WITHIN)
        yield programs[0].pid


async def running(muster: Fleet, spec: JobSpec) -> str:
    """The id of a job, once all of it runs."""
    job = await muster.client.jobs.submit(spec)
    async with asyncio.timeout(READY_WITHIN):
        async for view in muster.client.jobs.watch(job):
            members = view.attempts[-1].executions if view.attempts else ()
            if members and all(each.state is State.RUNNING for each in members):
                return job.id
    raise ProgramError("a job that was to wait has ended")


async def first_byte(attachment: Attachment) -> bytes:
    """The first output of a command."""
    while not isinstance(frame := await attachment.receive(), AttachmentOutput):
        if not isinstance(frame, AttachmentOpened):
            raise ProgramError(f"a command has ended: {frame}")
    return frame.data


async def _commands(setting: Setting, muster: Fleet, job: str) -> None:
    turns, (muster_program, known) = Turns(setting.repeats(40, 10)), muster.command_line()
    whole = [*muster_program, "exec", job, "--", "true"]
    async with _sshd(setting) as ssh:
        for _ in turns:
            began = time.perf_counter()
            async with await muster.client.attachments.open(job, CommandRequest(words=("echo", "x"))) as attachment:
                await first_byte(attachment)
                turns.keep({BYTE: 1000 * (time.perf_counter() - began)})
            began = time.perf_counter()
            await finished(whole, CALL_WITHIN, **known)
            turns.keep({WHOLE: time.perf_counter() - began})
            if ssh:
                began = time.perf_counter()
                await finished(ssh, CALL_WITHIN)
                turns.keep({SSH: time.perf_counter() - began})
    for name, values in turns.found.items():
        setting.findings.take(name, values, "ms" if name == BYTE else "s")
    setting.findings.absolute(BYTE_BAR, BYTE)
    setting.findings.absolute(WHOLE_BAR, WHOLE)


async def _containers(setting: Setting) -> None:
    """The first byte of a command in a container that nobody has entered before, and of the next one."""
    job = JobSpec(name="bench", roles=(Role(count=1, image=IMAGE, command=("sh", "-c", "sleep 1000")),))
    turns, echo = Turns(setting.repeats(15, 4)), ("sh", "-c", "echo x")
    async with dockerd(setting.scratch) as socket, connected(socket) as docker:
        options = ("--docker-socket", socket, "--mount-root", setting.scratch.path)
        async with fleet(setting.scratch, 1, *options) as muster, relay(muster):
            await setting.quiet("commands in containers: docker exec, Muster")
            for _ in turns:
                entered = await running(muster, job)
                (container,) = await docker.containers.list()
                bare = ["docker", "-H", f"unix://{socket}", "exec", container.id, *echo]
                began = time.perf_counter()
                await finished(bare, CALL_WITHIN)
                turns.keep({BARE: 1000 * (time.perf_counter() - began)})
                for name in (FIRST, AGAIN):
                    began = time.perf_counter()
                    async with await muster.client.attachments.open(entered, CommandRequest(words=echo)) as attachment:
                        await first_byte(attachment)
                        turns.keep({name: 1000 * (time.perf_counter() - began)})
                await muster.client.jobs.stop(entered)
                await muster.settled(entered)
    for name, values in turns.found.items():
        setting.findings.take(name, values, "ms")
    setting.findings.ratio(FIRST_BAR, FIRST, BARE)


async def _keys(setting: Setting, muster: Fleet, job: str) -> None:
    request = CommandRequest(
        words=("sh", "-c", "stty raw -echo; echo x; exec cat"),
        terminal=TerminalSize(rows=24, columns=80),
        has_input=True,
    )
    found: list[float] = []
    async with await muster.client.attachments.open(job, request) as attachment:
        await first_byte(attachment)
        for _ in range(KEYS):
            began = time.perf_counter()
            await attachment.send(AttachmentInput(data=b"k"))
            await attachment.receive()
            found.append(1000 * (time.perf_counter() - began))
    setting.findings.take(KEY, found, "ms")
    setting.findings.absolute(KEY_BAR, KEY)
    late = statistics.quantiles(found, n=100)[98]
    setting.findings.judge(LATE_KEY_BAR, late, KEY)


async def _forwards(setting: Setting, muster: Fleet, job: str) -> None:
    request = CommandRequest(words=("/usr/bin/python3", "-c", SERVES))
    async with await muster.client.attachments.open(job, request) as server:
        port = int(await first_byte(server))
        async with await muster.client.attachments.forward(job, port) as forward:
            turns = Turns(setting.repeats(8, 3))
            for _ in turns:
                began = time.perf_counter()
                await _asked(forward.port, 0)
                turns.keep({CONNECTION: 1000 * (time.perf_counter() - began)})
                began = time.perf_counter()
                await _asked(forward.port, FORWARDED)
                turns.keep({SPEED: FORWARDED / 1e6 / (time.perf_counter() - began)})
            setting.findings.take(CONNECTION, turns.found[CONNECTION], "ms")
            setting.findings.take(SPEED, turns.found[SPEED], "MB/s")
            await _launches(setting, muster, forward.port)
    setting.findings.absolute(CONNECTION_BAR, CONNECTION)
    setting.findings.absolute(SPEED_BAR, SPEED)
    setting.findings.ratio(LAUNCH_BAR, BESIDE, ALONE)


async def _launches(setting: Setting, muster: Fleet, port: int) -> None:
    """Start gangs in turn without and beside a forward that never rests."""
    turns = Turns(setting.repeats(12, 4))
    for _ in turns:
        turns.keep({ALONE: await _started(muster, await _launched(muster))})
        busy = asyncio.get_running_loop().create_task(_asked(port, 1 << 50), name="a forward at full speed")
        try:
            launched = await _launched(muster)
        finally:
            busy.cancel()
            await asyncio.gather(busy, return_exceptions=True)
        turns.keep({BESIDE: await _started(muster, launched)})
    for name, values in turns.found.items():
        setting.findings.take(name, values, "ms")


async def _launched(muster: Fleet) -> str:
    """The id of a gang that has started and ended."""
    job = await muster.client.jobs.submit(gang(LAUNCHED, "true", spread=False))
    await muster.ended(job.id)
    return job.id


async def _started(muster: Fleet, job: str) -> float:
    """Milliseconds from the submit of a gang until all of it was started, by the coordinator's clock.

    Waits until the fleet rests, which it does not beside a forward.
    """
    view = await muster.settled(job)
    started = view.attempts[-1].started_at
    assert started is not None, "it has succeeded"
    return 1000 * (started - view.submitted_at).total_seconds()


async def _asked(port: int, size: int) -> None:
    """Connect, and read so many bytes, in whole MiB, and one more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"%d" % size)
        last = b""
        while data := await reader.read(1 << 20):
            last = data
        if not last.endswith(b"!"):
            raise ProgramError("a forwarded connection broke")
    finally:
        writer.close()


async def _sleepers(setting: Setting, muster: Fleet, job: str, pid: int) -> None:
    before = resident(pid)
    async with AsyncExitStack() as opened:
        for _ in range(SLEEPERS):
            await opened.enter_async_context(await muster.client.attachments.open(job, CommandRequest(words=("yes",))))
        await asyncio.sleep(FILLED_WITHIN)
        each = max(0.0, resident(pid) - before) / SLEEPERS
    setting.findings.take("relay, for each sleeping reader", [each], "MiB")
    setting.findings.judge(SLEEPER_BAR, each, "relay, for each sleeping reader")


@asynccontextmanager
async def _sshd(setting: Setting) -> AsyncIterator[list[str]]:
    """Words of `ssh` that run `true` through an sshd here; none where there is no sshd."""
    if not setting.has("sshd"):
        yield []
        return
    directory, port = setting.scratch.fresh("sshd"), 22_022
    for key in ("host", "user"):
        await finished(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / key], CALL_WITHIN)
    config = _sshd_config(directory, port)
    options = {"IdentityFile": directory / "user", "StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null"}
    async with ended_at_exit() as programs:
        programs.append(start(["/usr/sbin/sshd", "-D", "-e", "-f", config], directory / "log"))
        await _listens(port)
        shown = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        yield ["ssh", "-q", "-F", "none", *shown, "-p", str(port), "127.0.0.1", "true"]


def _sshd_config(directory: Path, port: int) -> Path:
    Path("/run/sshd").mkdir(exist_ok=True)
    lines = {"Port": port, "ListenAddress": "127.0.0.1", "HostKey": directory / "host", "UsePAM": "no"}
    lines |= {"AuthorizedKeysFile": directory / "user.pub", "StrictModes": "no", "PidFile": directory / "pid"}
    config = directory / "config"
    config.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    return config


async def _listens(port: int) -> None:
    async with asyncio.timeout(READY_WITHIN):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return
