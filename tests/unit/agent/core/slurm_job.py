"""Rank 0 of a job with Slurm's dialect, as its scripts see it; the other nodes are only names."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from agent.core.launching.dialects.batch import PARENT_OF_COMMAND, SCANCEL
from agent.core.launching.dialects.sbcast import SBCAST
from agent.core.launching.dialects.scontrol import SCONTROL
from agent.core.launching.dialects.squeue import SQUEUE
from agent.core.launching.dialects.srun import SRUN

SHELLS = [
    ["sh"],
    *([shell, *words] for shell, *words in (["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell)),
]
MUSTER_EXEC = """
# Runs a command as nodes of these ranks do; of a step, the first that fails ends the others.
import os, signal, subprocess, sys
words = sys.argv[1:]
step = words[0] == "--step"
if step:
    ranks, words = words[2].split(","), words[3:]
elif words[0] == "--all":
    ranks, words = "012", words[1:]
else:
    ranks, words = words[:1], ["sh", "-c", *words[1:]] if len(words) == 2 else words[1:]
given = sys.stdin.buffer.read() if len(ranks) > 1 and not step else None
codes, running = [], {}
for rank in ranks:
    env = {**os.environ, "SLURMD_NODENAME": f"n{rank}", "MUSTER_RANK": rank, "MUSTER_EXECUTION_ID": f"j-1-{rank}"}
    source = subprocess.PIPE if given is not None else None if rank == ranks[0] else subprocess.DEVNULL
    command = subprocess.Popen(words, env=env, stdin=source, start_new_session=True)
    if given is not None:
        command.stdin.write(given)
        command.stdin.close()
    running[command.pid] = command
while running:
    pid, status = os.wait()
    del running[pid]
    code = os.waitstatus_to_exitcode(status)
    codes.append(code if code >= 0 else 128 - code)
    if step and codes[-1]:
        for command in running:
            os.killpg(command, signal.SIGTERM)
sys.exit(next(filter(None, codes), 0) if step else max(codes))
"""
PROGRAM = Path(str(files("agent.runtimes"))) / "inside_program" / f"muster-inside-{platform.machine()}"
LIMIT = 60.0


class SlurmJob:
    """Rank 0 of a job with three nodes, under one of the shells."""

    def __init__(self, directory: Path, shell: Sequence[str], per_node: str) -> None:
        self._shell = tuple(shell)
        self._programs = directory / "bin"
        self._programs.mkdir()
        self.directory = directory
        for name, text in (
            ("batch", self._under(PARENT_OF_COMMAND)),
            ("sbcast", self._under(SBCAST)),
            ("scancel", self._under(SCANCEL)),
            ("scontrol", SCONTROL),
            ("squeue", self._under(SQUEUE)),
            ("srun", self._under(SRUN)),
            ("muster-exec", f"#!{sys.executable} -IS{MUSTER_EXEC}"),
        ):
            (self._programs / name).write_text(text)
            (self._programs / name).chmod(0o755)
        shutil.copy(PROGRAM, self._programs / "muster-inside")
        self.work.mkdir()
        self.stands_in = self.work
        self.env: Mapping[str, str] = {
            "PATH": f"{self._programs}:{os.defpath}",
            "MUSTER_CONFIG_DIR": str(directory),
            "MUSTER_DOOR": "there",
            "MUSTER_EXECUTION_ID": "j-1-0",
            "MUSTER_OWN_VARIABLES": "MUSTER_RANK,MUSTER_CONFIG_DIR",
            "MUSTER_RANK": "0",
            "SLURM_CPUS_ON_NODE": "4",
            "SLURM_JOB_ID": "17",
            "SLURM_JOB_NAME": "train",
            "SLURM_JOB_NODELIST": "n[0-2]",
            "SLURM_JOB_NUM_NODES": "3",
            "SLURM_JOB_PARTITION": "vision",
            "SLURM_TASKS_PER_NODE": per_node,
            "SLURM_SUBMIT_DIR": str(self.work),
            "TMPDIR": str(directory),
        }

    @property
    def work(self) -> Path:
        """The working directory, which all nodes share."""
        return self.directory / "work"

    def run(self, program: str, *words: str, stdin: str = "", **env: str) -> "subprocess.CompletedProcess[str]":
        """How one of the programs ended, and what it printed."""
        return subprocess.run(
            (str(self._programs / program), *words),
            env={**self.env, **env},
            cwd=self.stands_in,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            timeout=LIMIT,
        )

    def lines(self, *words: str, **env: str) -> list[str]:
        """The lines of all tasks of a step, sorted."""
        done = self.run("srun", *words, **env)
        assert (done.returncode, done.stderr) == (0, "")
        return sorted(done.stdout.splitlines())

    def _under(self, script: str) -> str:
        path = shutil.which(self._shell[0])
        return script.replace("#!/bin/sh", " ".join((f"#!{path}", *self._shell[1:])), 1)
