"""A coordinator with simulated nodes that is disturbed in every way known, while an admin goes on with daily work."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet import AUTHORITY, Fleet, agent_program, coordinator, credentials, gang
from bench.programs import ended_at_exit, resident, start
from bench.scale import crowd
from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.domain.fleet.access import EVERYWHERE, Access, AccountKind
from muster.domain.jobs.job import JobSpec, Packing
from tests.soak.bars import Call, Sample, Seen
from tests.soak.noise import KINDS, WATCHED

NODES = 200
ANSWERED_WITHIN = 10.0
"""Seconds after which a call of the admin counts as lost."""
SAMPLE_EACH = 1.0
LOOK_EACH, LAUNCH_EACH, REVOKE_EACH = 0.5, 5.0, 10.0
FLOOD = "while :; do seq 1 300; sleep 0.5; done"
"""Some hundred lines a second; in an hour some hundred megabytes of logs."""
FLOODED = "flood"
"""The label of the one node whose agent is real."""
FIRST = 1
PROCESSES = ("--no-docker", "--processes", "--job-user", "none")


@dataclass(slots=True)
class _Diary:
    """What is seen as it happens."""

    calls: list[Call] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    async def call(self, what: str, act: Awaitable[object]) -> bool:
        """Make a call, and note how long it took; whether it was answered."""
        began, lost = time.perf_counter(), ""
        try:
            async with asyncio.timeout(ANSWERED_WITHIN):
                await act
        except (MusterError, TimeoutError) as error:
            lost = f"{type(error).__name__}: {error}"[:300]
        self.calls.append(Call(what=what, seconds=time.perf_counter() - began, lost=lost))
        return not lost


async def soak(directory: Path, seconds: float, nodes: int = NODES) -> Seen:
    """Disturb a coordinator for so long; everything that was started has ended when this is over."""
    diary = _Diary()
    async with coordinator(directory, log_level="info") as fleet, crowd(directory, fleet, nodes) as agents:
        await agents.order("connect")
        async with ended_at_exit() as programs:
            programs.append(agent_program(fleet, directory, FIRST, PROCESSES))
            await fleet.nodes_ready(nodes + 1)
            await _jobs(fleet)
            programs.extend(await _noises(fleet, directory, seconds))
            async with Client(fleet.address, credentials(fleet.state), timeout=ANSWERED_WITHIN) as admin:
                ended = await _watched(fleet, directory, diary, admin, programs, seconds)
        state = await agents.order("state")
    return Seen(
        seconds=seconds,
        calls=diary.calls,
        samples=diary.samples,
        nodes=nodes,
        connected=int(state["connected"]),
        ended=ended,
    )


async def _jobs(fleet: Fleet) -> None:
    """A job that is watched, and one that never stops to print."""
    await fleet.client.nodes.label(f"node{FIRST}", {FLOODED: "yes"})
    watched = gang(1, "train")
    await fleet.client.jobs.submit(_named(watched, WATCHED), queue_anyway=True)
    flood = gang(1, "nice", "-n", "19", "sh", "-c", FLOOD)
    await fleet.client.jobs.submit(_named(flood, FLOODED, {FLOODED: "yes"}), queue_anyway=True)


def _named(spec: JobSpec, name: str, labels: dict[str, str] | None = None) -> JobSpec:
    return JobSpec(name=name, roles=spec.roles, packing=Packing.SPREAD, node_labels=labels or {})


async def _noises(fleet: Fleet, directory: Path, seconds: float) -> "list[subprocess.Popen[bytes]]":
    """The programs that disturb, each known as somebody who may no more than it needs."""
    admin = fleet.client
    tokens = {}
    for name, access in (("watching", Access.VIEWER), ("large-jobs", Access.MEMBER)):
        await admin.accounts.add(name, AccountKind.SERVICE, {EVERYWHERE: access})
        tokens[name], _ = await admin.tokens.create(name)
    authority = str(fleet.state / AUTHORITY)
    return [
        start(
            [sys.executable, "-m", "tests.soak.noise", kind, fleet.address, seconds],
            directory / f"{kind}.log",
            MUSTER_TLS_CA=authority,
            MUSTER_TOKEN=tokens.get(kind, ""),
        )
        for kind in KINDS
    ]


async def _watched(
    fleet: Fleet,
    directory: Path,
    diary: _Diary,
    admin: Client,
    programs: "list[subprocess.Popen[bytes]]",
    seconds: float,
) -> str:
    """The time of the soak; how a program ended that should not have."""
    began = time.monotonic()
    ended = ""
    async with _working(diary, admin):
        while (at := time.monotonic() - began) < seconds and not ended:
            if (log := _coordinator_ended(fleet)) or (log := _ended(programs, seconds - at)):
                ended = log
                break
            diary.samples.append(
                Sample(at=at, resident=resident(fleet.coordinator), journal=_journal(directory).stat().st_size)
            )
            await asyncio.sleep(SAMPLE_EACH)
    return ended


@asynccontextmanager
async def _working(diary: _Diary, admin: Client) -> AsyncIterator[None]:
    """The admin at work while the block lasts."""
    work: tuple[tuple[float, Callable[[_Diary, Client], Awaitable[None]]], ...] = (
        (LOOK_EACH, _look),
        (LAUNCH_EACH, _launch),
        (REVOKE_EACH, _revoke),
    )
    tasks = [asyncio.create_task(_again(each, act, diary, admin), name=act.__name__) for each, act in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _again(each: float, act: Callable[[_Diary, Client], Awaitable[None]], diary: _Diary, admin: Client) -> None:
    while True:
        await act(diary, admin)
        await asyncio.sleep(each)


async def _look(diary: _Diary, admin: Client) -> None:
    await diary.call("Get", admin.jobs.get(WATCHED))
    await diary.call("List", _first_page(admin))


async def _first_page(admin: Client) -> None:
    async for _ in admin.jobs.list(limit=20):
        pass


async def _launch(diary: _Diary, admin: Client) -> None:
    accepted: list[str] = []

    async def submit() -> None:
        accepted.append((await admin.jobs.submit(_named(gang(2, "train"), "daily"))).id)

    if await diary.call("Submit", submit()):
        await diary.call("Stop", admin.jobs.stop(accepted[0]))
        await diary.call("Delete", admin.jobs.delete(accepted[0], force=True))


async def _revoke(diary: _Diary, admin: Client) -> None:
    made: list[str] = []

    async def create() -> None:
        made.append((await admin.tokens.create(note="of the soak"))[1].id)

    if await diary.call("CreateToken", create()):
        await diary.call("RevokeToken", admin.tokens.revoke(made[0]))


def _journal(directory: Path) -> Path:
    return directory / "coordinator.log"


def _coordinator_ended(fleet: Fleet) -> str:
    with suppress(OSError):
        os.kill(fleet.coordinator, 0)
        state = Path(f"/proc/{fleet.coordinator}/stat").read_text().rpartition(")")[2].split()[0]
        return "the coordinator ended" if state == "Z" else ""
    return "the coordinator ended"


def _ended(programs: "list[subprocess.Popen[bytes]]", left: float) -> str:
    """A program that ended much before its time, or badly."""
    for each in programs:
        code = each.poll()
        if code is not None and (code or left > 5 * SAMPLE_EACH):
            return f"{' '.join(map(str, each.args[2:4]))} ended with {code}"  # type: ignore[index]  # it was started with a list
    return ""
