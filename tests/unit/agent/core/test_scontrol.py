"""`scontrol show hostnames` spells out short lists as Slurm does, in every shell that an image may have as /bin/sh."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings

from agent.core.launching.dialects.node_list import compressed, expanded
from agent.core.launching.dialects.scontrol import SCONTROL
from tests.unit.agent.core.node_names import lists

SHELLS = [
    ["sh"],
    *([shell, *words] for shell, *words in (["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell)),
]


def scontrol(*words: str, shell: tuple[str, ...] = ("sh",), **env: str) -> "subprocess.CompletedProcess[str]":
    command = (*shell, "-c", SCONTROL, "scontrol", *words)
    return subprocess.run(command, env={"PATH": os.defpath, **env}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(
    "text", ["gpu-[0-2,5]", "n[008-010]", "login", "10.0.0.[9-11]", "r[1-2]n[08-09],login,x7", "n[1,01]", "n[0-0]"]
)
def test_every_name_of_a_list_is_on_a_line_of_its_own(shell: list[str], text: str) -> None:
    assert scontrol("show", "hostnames", text, shell=tuple(shell)).stdout.splitlines() == expanded(text)


@settings(max_examples=25)
@given(lists.filter(bool))
def test_what_the_dialect_writes_short_comes_back_as_it_was(written: list[str]) -> None:
    assert scontrol("show", "hostnames", compressed(written)).stdout.splitlines() == written


@pytest.mark.parametrize("word", ["hostname", "hostnames"])
def test_without_a_list_it_is_that_of_the_job(word: str) -> None:
    assert scontrol("show", word, SLURM_JOB_NODELIST="gpu-[1-2]").stdout == "gpu-1\ngpu-2\n"


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("text", ["n[1-2", "n1]", "n[[1]]", "n[a-b]", "n[]", "n[1-]", "a,n[0x1]"])
def test_what_is_no_list_is_refused(shell: list[str], text: str) -> None:
    told = scontrol("show", "hostnames", text, shell=tuple(shell))
    assert told.returncode == 1
    assert told.stderr.startswith("scontrol: cannot read the list of nodes: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "hostnames"), "no list of nodes: neither as an argument nor in SLURM_JOB_NODELIST"),
        (("show", "job", "7"), "only 'scontrol show hostnames [LIST]' is here, not: show job 7"),
        (("requeue", "7"), "only 'scontrol show hostnames [LIST]' is here, not: requeue 7"),
        ((), "only 'scontrol show hostnames [LIST]' is here, not: "),
    ],
)
def test_what_is_not_there_is_said(words: tuple[str, ...], said: str) -> None:
    told = scontrol(*words)
    assert (told.returncode, told.stderr) == (1, f"scontrol: {said}\n")


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing() -> None:
    said = subprocess.run(
        ["shellcheck", "--shell=sh", "-"], input=SCONTROL, capture_output=True, text=True, check=False
    )
    assert said.stdout == ""
