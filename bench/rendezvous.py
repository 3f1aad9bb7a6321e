"""From launch to torch's first gloo barrier: Muster beside plain processes with env:// and beside torchrun."""

import asyncio
import os
import socket
import time
from pathlib import Path

from bench.figures import Bar
from bench.fleet import Fleet, fleet, gang
from bench.programs import ProgramError, ended_at_exit, start
from bench.scratch import PROGRAMS
from bench.setting import Setting

SIZES = (2, 4)
LIMIT = 0.1
DONE_WITHIN = 120.0
WORKER = PROGRAMS / "gloo_barrier.py"
GLOO = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


async def measure(setting: Setting) -> None:
    """The three ways in turn."""
    if not setting.has("torch"):
        return
    async with fleet(setting.scratch, max(SIZES)) as muster:
        for size in SIZES:
            await setting.quiet(f"gloo barrier of {size}: plain env://, Muster, torchrun")
            found: dict[str, list[float]] = {}
            for turn in range(setting.repeats(7, 2) + 1):
                directory = setting.scratch.fresh("gloo")
                result = {
                    "plain env://": await _plain(setting, directory / "plain", size),
                    "Muster": await _muster(setting, muster, directory / "muster", size),
                    "torchrun": await _torchrun(setting, directory / "torchrun", size),
                }
                for way, value in result.items():
                    if turn:
                        found.setdefault(way, []).append(value)
            for way, values in found.items():
                setting.findings.take(f"gloo barrier {size}: {way}", values, "s")
            bar = Bar(figure=f"launch → gloo barrier, {size} ranks, over plain env://", limit=LIMIT, unit="s")
            setting.findings.excess(bar, f"gloo barrier {size}: Muster", f"gloo barrier {size}: plain env://")


async def _plain(setting: Setting, file: Path, size: int) -> float:
    port, log = str(_free_port()), file.with_suffix(".log")
    async with ended_at_exit() as programs:
        began = time.time_ns()
        for rank in range(size):
            where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": str(size)}
            programs.append(start([setting.scratch.python, WORKER, file], log, **where, **GLOO))
        return await _last(file, began, size)


async def _torchrun(setting: Setting, file: Path, size: int) -> float:
    port, log = _free_port(), file.with_suffix(".log")
    rendezvous = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=bench"]
    run = [setting.scratch.python, "-m", "torch.distributed.run", f"--nnodes={size}", "--nproc-per-node=1"]
    async with ended_at_exit() as programs:
        began = time.time_ns()
        programs.extend(start([*run, *rendezvous, WORKER, file], log, **GLOO) for _ in range(size))
        return await _last(file, began, size)


async def _muster(setting: Setting, muster: Fleet, file: Path, size: int) -> float:
    environment = {**GLOO, "PATH": os.environ["PATH"]}
    began = time.time_ns()
    job = await muster.client.submit(gang(size, setting.scratch.python, WORKER, file, env=environment))
    took = await _last(file, began, size)
    await muster.ended(job.id)
    return took


async def _last(file: Path, began: int, size: int) -> float:
    """Seconds until the last rank was through its barrier."""
    written: list[str] = []
    try:
        async with asyncio.timeout(DONE_WITHIN):
            while len(written) < size:
                await asyncio.sleep(0.05)
                written = await asyncio.to_thread(_lines, file)
    except TimeoutError:
        raise ProgramError(f"{len(written)} of {size} ranks were through the barrier; see {file}.log") from None
    return (max(map(int, written)) - began) / 1e9


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
