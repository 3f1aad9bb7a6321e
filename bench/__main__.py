"""Measures Muster beside Slurm, Ray, torchrun and Docker, on this machine, in one run: see docs/performance.md.

Peers are installed into a scratch directory where they are missing. The exit status is 0 when everything was measured,
whether or not the bars were met, and 130 after Ctrl-C; nothing that was started is left running.
"""

import argparse
import asyncio
import os
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import (
    actors,
    admission,
    attaching,
    containers,
    core,
    gang_commands,
    gangs,
    pages,
    profile,
    recovery,
    rendezvous,
    resident,
    rest,
    scale,
    telemetry,
    throughput,
    transitions,
)
from bench.data import section as data
from bench.disk import file_system
from bench.figures import Findings, Part
from bench.programs import ProgramError, run
from bench.quiet import machine
from bench.reaper import keep
from bench.report import write_docs
from bench.scratch import Scratch
from bench.setting import Setting
from muster.domain.errors import MusterError

SECTIONS: Mapping[str, Callable[[Setting], Awaitable[None]]] = {
    "gangs": gangs.measure,
    "throughput": throughput.measure,
    "recovery": recovery.measure,
    "resident": resident.measure,
    "profile": profile.measure,
    "core": core.measure,
    "transitions": transitions.measure,
    "pages": pages.measure,
    "containers": containers.measure,
    "admission": admission.measure,
    "scale": scale.measure,
    "queue": scale.measure_queue,
    "ray": actors.measure,
    "gloo": rendezvous.measure,
    "commands": gang_commands.measure,
    "attaching": attaching.measure,
    "telemetry": telemetry.measure,
    "rest": rest.measure,
    "data": data.measure,
}
PEERS = ("slurm", "ray", "torch", "docker", "mpi", "sshd", "rsync", "curl")
WITHIN = 90.0
"""Minutes for all of it, where nothing else is said: nothing may hang for ever."""
KEPT = "MUSTER_BENCH_KEPT"
"""Set in the environment of the program that measures; its parent ends what it leaves behind."""
RESULTS = "results.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is measured, of what, until when."""

    setting: Setting
    sections: list[str]
    version: str
    deadline: float
    """The end on the monotonic clock."""

    async def measure(self) -> bool:
        """Take the sections in turn; one that fails is reported and the others go on. True: none failed."""
        findings, well = self.setting.findings, True
        for name in self.sections:
            findings.section, began = name, time.monotonic()
            at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
            try:
                async with asyncio.timeout(self.deadline - began):
                    await SECTIONS[name](self.setting)
            except* (MusterError, ProgramError, TimeoutError, OSError) as errors:
                traceback.print_exception(errors)
                late = time.monotonic() >= self.deadline
                findings.remark(f"not all of {name} was measured: {'no time was left' if late else _said(errors)}")
                well = False
            findings.done(
                Part(
                    at=at,
                    took=time.monotonic() - began,
                    version=self.version,
                    quick=self.setting.quick,
                    files=file_system(self.setting.scratch.path),
                    pace=tuple(findings.pace),
                    remarks=tuple(findings.remarks),
                )
            )
            findings.write(self.setting.scratch.path / RESULTS)
        return well


def _said(error: BaseException) -> str:
    """The first line of the first error; all of it is on stderr."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def main() -> None:
    """Measure what is asked for and say how it compares."""
    options = parse()
    if KEPT not in os.environ:
        sys.exit(keep([sys.executable, "-m", "bench", *sys.argv[1:]], **{KEPT: "1"}))
    _measure_what_is_installed()
    scratch = Scratch(options.scratch)
    findings = Findings(machine=machine())
    setting = Setting(
        scratch=scratch,
        findings=findings,
        peers=frozenset(options.peers.split(",")),
        quick=options.quick,
        patience=options.patience if options.patience is not None else (10 if options.quick else 30),
        largest=options.largest,
        fleets=tuple(map(int, (options.fleets or ("1000" if options.quick else "1000,5000")).split(","))),
    )
    it = Run(
        setting=setting,
        sections=options.only.split(",") if options.only else list(SECTIONS),
        version=_version(),
        deadline=time.monotonic() + options.within * 60,
    )
    try:
        well = asyncio.run(it.measure())
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"\n{findings.table()}\nall of it: {scratch.path / RESULTS}")
    if options.write_docs:
        write_docs(scratch, scratch.path / RESULTS)
    sys.exit(not well)


def _measure_what_is_installed() -> None:
    """A shell may keep Python from writing bytecode, say; an installed Muster has it, and it is half of a start."""
    for name in [name for name in os.environ if name.startswith("PYTHON") and name != "PYTHONPATH"]:
        del os.environ[name]


def _version() -> str:
    """What git calls this tree."""
    try:
        root = Path(__file__).parent.parent
        return run(["git", "-C", root, "describe", "--always", "--dirty", "--exclude=*"], 30).strip()
    except ProgramError:
        return "unknown"


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="fewer repeats, a few minutes in all")
    add("--only", metavar="A,B", help=f"only these sections: {', '.join(SECTIONS)}")
    add("--peers", default=",".join(PEERS), help="which peers to measure beside (%(default)s)")
    add("--write-docs", action="store_true", help="write docs/performance.md and its charts from all that was found")
    add("--within", metavar="MINUTES", type=float, default=WITHIN, help="give up what is left then (%(default)g)")
    add("--largest", type=int, default=64, help="executions of the largest gang (%(default)s)")
    add("--fleets", metavar="N,N", help="numbers of simulated nodes (1000,5000; quick: 1000)")
    add("--patience", type=float, help="seconds to wait for a quiet machine before each measurement (30; quick: 10)")
    add("--scratch", type=Path, default=Path("~/.cache/muster-bench").expanduser(), help="(%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
