"""A fleet of one node whose executions somebody attaches to: coordinator, relay and agent as programs of their own.

Each can be killed and started again at the same address, while somebody is attached.
"""

import asyncio
import hashlib
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from muster.client.attachments.attachment import Attachment
from muster.client.client import Client
from muster.domain.attachments.frame import (
    LARGEST_CHANNEL_DATA,
    AttachmentEnded,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOpened,
    AttachmentOutput,
)
from muster.domain.attachments.request import AttachmentRequest, CommandRequest, TerminalSize
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.view import JobView
from muster.rpc.channel import Credentials
from muster.trust.files import read_secret
from tests.integration.parts import place_new_database
from tests.integration.programs import PORTS, ROOT
from tests.integration.relays import RESTARTED_AT

WITHIN = 60.0
"""Seconds for anything that is waited for here, far more than any needs."""

KEPT = CommandRequest(env=("PS1=$ ",), terminal=TerminalSize(rows=24, columns=80), has_input=True, kept="work")
"""A shell with a name, at a terminal."""

SLEEPER = JobSpec(name="sleeper", roles=(Role(name="worker", count=1, command=("sleep", "1000")),))


@dataclass
class AttachingFleet:
    """What a test does with it."""

    directory: Path
    address: str
    relay_address: str
    programs: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    client: Client = field(init=False)

    async def start_coordinator(self, *options: str) -> None:
        """Have a coordinator serve."""
        place_new_database(self.state)
        words = ("coordinator", "--local", "--state", str(self.state), "--listen", self.address, *options)
        await self._start("coordinator", words, b"coordinator serves")

    async def start_relay(self) -> None:
        """Have a relay serve that the coordinator knows of, always at the same address."""
        words = ("coordinator.relay", "--state", str(self.state), "--listen-relay", self.relay_address)
        await self._start("relay", words, b"relay serves")

    async def start_agent(self, *options: str) -> None:
        """Have the node connected."""
        words = (
            *("agent", "--coordinator", self.address, "--token-file", str(self.state / "local-token")),
            *("--state", str(self.directory / "node"), "--name", "alone", "--address", "127.0.0.1"),
            *("--ports", f"{PORTS.start}-{PORTS.stop - 1}", "--gpu-provider", "fake:1xH100"),
            *("--processes", "--job-user", "none", "--no-docker", *options),
        )
        await self._start("agent", words, b"connected to the coordinator")

    async def kill(self, name: str) -> None:
        """Kill a program without a chance to say anything."""
        program = self.programs.pop(name)
        program.kill()
        await program.wait()

    async def running(self, spec: JobSpec = SLEEPER) -> JobView:
        """A job, once all of it runs."""
        job = await self.client.jobs.submit(spec)
        async with asyncio.timeout(WITHIN):
            async for view in self.client.jobs.watch(job):
                members = view.attempts[-1].executions if view.attempts else ()
                if members and all(each.state is State.RUNNING for each in members):
                    return view
        raise AssertionError(f"{spec.name} does not run")

    async def stop_jobs(self) -> None:
        """Stop what runs: executions outlive their agent."""
        if {"coordinator", "agent"} <= self.programs.keys():
            async with asyncio.timeout(WITHIN):
                async for job in self.client.jobs.list():
                    if not job.phase.ended:
                        await self.client.jobs.stop(job.id)
                        await self.client.jobs.wait(job.id)

    @property
    def state(self) -> Path:
        """The state directory of the coordinator."""
        return self.directory / "coordinator"

    async def _start(self, name: str, words: Sequence[str], ready: bytes) -> None:
        log = self.directory / f"{name}.log"
        with log.open("ab") as output:
            begin = output.tell()
            program = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *words, cwd=ROOT, stderr=asyncio.subprocess.PIPE
            )
        self.programs[name] = program
        assert program.stderr is not None
        async with asyncio.timeout(WITHIN):
            while ready not in (line := await program.stderr.readline()):
                assert line, f"the {name} has ended: {log.read_bytes()[begin:].decode()}"
        self._draining(name, program)

    def _draining(self, name: str, program: asyncio.subprocess.Process) -> None:
        """Have what it goes on to log read, so that it never waits for that."""

        async def drain() -> None:
            assert program.stderr is not None
            while line := await program.stderr.readline():
                self.logged.setdefault(name, []).append(line.decode())

        task = asyncio.get_running_loop().create_task(drain(), name=f"log of the {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    logged: dict[str, list[str]] = field(default_factory=dict)
    """Lines that each program has logged since it was ready."""
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    async def close(self) -> None:
        """End all programs in order, the agent first."""
        for name in ("agent", "relay", "coordinator"):
            program = self.programs.pop(name, None)
            if program is not None:
                with suppress(ProcessLookupError):
                    program.terminate()
                await program.wait()
        await asyncio.gather(*self._tasks)


@asynccontextmanager
async def attaching_fleet(directory: Path, *, coordinator: Sequence[str] = ()) -> AsyncIterator[AttachingFleet]:
    """All of it, with the node connected."""
    fleet = AttachingFleet(directory, f"{RESTARTED_AT}:{free_port()}", f"{RESTARTED_AT}:{free_port()}")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(fleet.close)
        await fleet.start_coordinator(*coordinator)
        shown = Credentials(token=read_secret(fleet.state / "local-token"))
        await fleet.start_relay()
        await fleet.start_agent()
        fleet.client = await stack.enter_async_context(Client(fleet.address, shown))
        try:
            yield fleet
        finally:
            await fleet.stop_jobs()


def free_port() -> int:
    """A port that nobody listens at there, as far as can be known."""
    with socket.create_server((RESTARTED_AT, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def digest(data: bytes) -> str:
    """What tells whether all bytes came, in order."""
    return hashlib.sha256(data).hexdigest()


@dataclass
class Echo:
    """`cat` in an execution, fed as fast as it reads, with all that it gives back."""

    attachment: Attachment
    sent: int
    received: "asyncio.Task[tuple[bytes, AttachmentEnded]]"
    feeding: "asyncio.Task[None]"

    async def ended(self) -> tuple[bytes, AttachmentEnded]:
        """All that came back, and how it ended."""
        async with asyncio.timeout(WITHIN):
            await self.feeding
            return await self.received


@asynccontextmanager
async def echo(client: Client, job: str, given: bytes, halfway: asyncio.Event) -> AsyncIterator[Echo]:
    """Attach `cat`, and feed it; `halfway` is set once half of it came back."""
    request = CommandRequest(words=("cat",), has_input=True)
    async with await client.attachments.open(job, request) as attachment:
        loop = asyncio.get_running_loop()
        received = loop.create_task(_received(attachment, len(given) // 2, halfway), name="output of cat")
        feeding = loop.create_task(_fed(attachment, given), name="input of cat")
        try:
            yield Echo(attachment, len(given), received, feeding)
        finally:
            for each in (received, feeding):
                each.cancel()
            await asyncio.gather(received, feeding, return_exceptions=True)


async def ended(attachment: Attachment) -> tuple[bytes, AttachmentEnded]:
    """What a command printed, and how it ended."""
    return await _received(attachment, -1, asyncio.Event())


async def typed(attachment: Attachment, line: bytes, shown: bytes) -> bytes:
    """Type a line; all that is shown then, up to and with these words."""
    seen = b""
    await attachment.send(AttachmentInput(data=line))
    async with asyncio.timeout(WITHIN):
        while shown not in seen:
            frame = await attachment.receive()
            assert isinstance(frame, AttachmentOpened | AttachmentOutput), frame
            seen += frame.data if isinstance(frame, AttachmentOutput) else b""
    return seen


async def told(opening: Awaitable[Attachment]) -> tuple[bytes, AttachmentEnded]:
    """The same of an attachment that is opened for that."""
    async with await opening as attachment:
        return await ended(attachment)


def command(*words: str, has_input: bool = False) -> AttachmentRequest:
    """A command without a terminal."""
    return CommandRequest(words=words, has_input=has_input)


async def _received(attachment: Attachment, half: int, halfway: asyncio.Event) -> tuple[bytes, AttachmentEnded]:
    output = bytearray()
    while True:
        match await attachment.receive():
            case AttachmentOutput(data=data):
                output += data
                if 0 <= half <= len(output):
                    halfway.set()
            case AttachmentEnded() as end:
                return bytes(output), end


async def _fed(attachment: Attachment, given: bytes) -> None:
    for at in range(0, len(given), LARGEST_CHANNEL_DATA):
        await attachment.send(AttachmentInput(data=given[at : at + LARGEST_CHANNEL_DATA]))
    await attachment.send(AttachmentInputEnd())
