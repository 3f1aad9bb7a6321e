"""The program in front of user code in a container, as it stands in the distribution."""

import os
import platform
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from agent.core.containers.first import NO_NOTE, noted_exit_code

SOURCES = Path(__file__).parents[2] / "agent/runtimes/docker/first_program"
PROGRAM = SOURCES / f"first-{platform.machine()}"
LIMIT = 30
"""Seconds for any of these programs."""


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "exit"
    path.write_bytes(NO_NOTE)
    return path


def behind(note: Path, *words: str, paths: tuple[str, ...] = ("/bin/sh",)) -> tuple[str, ...]:
    """The command line with a program behind it."""
    return (str(PROGRAM), str(note), str(len(paths)), *paths, *words)


def ended(command: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, check=False, capture_output=True, timeout=LIMIT)


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_its_source_gives_the_bytes_that_are_sent_along(architecture: str, tmp_path: Path) -> None:
    compiler = "gcc" if architecture == "x86_64" else f"{architecture}-linux-gnu-gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    subprocess.run([SOURCES / "build.sh", tmp_path, architecture], check=True)
    assert (tmp_path / f"first-{architecture}").read_bytes() == (SOURCES / f"first-{architecture}").read_bytes()


@pytest.mark.parametrize(
    ("text", "code"),
    [("true", 0), ("exit 7", 7), ("exit 137", 137), ("exit 255", 255), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_the_end_of_user_code_is_its_own_and_is_noted(note: Path, text: str, code: int) -> None:
    assert ended(behind(note, "sh", "-c", text)).returncode == code
    assert noted_exit_code(note.read_bytes()) == code
    assert len(note.read_bytes()) == len(NO_NOTE)


def test_nothing_is_noted_while_user_code_runs(note: Path) -> None:
    assert ended(behind(note, "sh", "-c", f"cat {note}")).stdout == NO_NOTE


def test_user_code_whose_note_cannot_be_written_runs_and_ends_as_it_would(tmp_path: Path) -> None:
    assert ended(behind(tmp_path / "nowhere", "sh", "-c", "exit 7")).returncode == 7


def test_user_code_is_the_first_of_its_paths_and_has_the_words_that_were_meant_for_it(note: Path) -> None:
    paths = ("/nowhere/sh", "/bin/sh/sh", "/bin/sh")
    told = ended(behind(note, "own name", "-c", 'echo "$0" "$@"', "a", "b c", paths=paths))
    assert told.stdout == b"a b c\n"


def test_a_script_that_names_no_shell_has_the_one_that_everybody_has(note: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "$@"; exit 4\n')
    script.chmod(0o755)
    told = ended(behind(note, "script", "a", "b c", paths=(str(script),)))
    assert (told.stdout, told.returncode) == (b"a b c\n", 4)


@pytest.mark.parametrize(("place", "code"), [("nowhere", 127), (".", 126)])
def test_what_cannot_be_run_is_named(note: Path, tmp_path: Path, place: str, code: int) -> None:
    told = ended(behind(note, "train", paths=(str(tmp_path / place),)))
    assert (told.returncode, told.stderr) == (code, b"muster: cannot run train\n")
    assert noted_exit_code(note.read_bytes()) == code


@pytest.mark.parametrize("words", [(), ("0", "/bin/sh", "sh"), ("2", "/bin/sh", "sh"), ("x", "/bin/sh", "sh")])
def test_a_command_line_that_makes_no_sense_is_refused(note: Path, words: tuple[str, ...]) -> None:
    told = ended((str(PROGRAM), str(note), *words))
    assert (told.returncode, told.stderr) == (126, b"muster: too few arguments\n")


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_is_passed_on(note: Path, sent: signal.Signals) -> None:
    name = sent.name.removeprefix("SIG")
    command = behind(note, "sh", "-c", f"trap 'exit 5' {name}; echo ready; while :; do sleep 0.01; done")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(sent)
        assert running.wait(LIMIT) == 5
    assert noted_exit_code(note.read_bytes()) == 5


def test_user_code_has_no_signal_blocked_and_nothing_open_but_its_own(note: Path) -> None:
    told = ended(behind(note, "sh", "-c", "grep SigBlk /proc/self/status; ls /proc/self/fd | wc -w"))
    blocked, descriptors = told.stdout.splitlines()
    alone = subprocess.run(("sh", "-c", "ls /proc/self/fd | wc -w"), check=True, capture_output=True, timeout=LIMIT)
    assert blocked.split()[1].strip(b"0") == b""
    assert descriptors == alone.stdout.strip()


def test_user_code_has_the_terminal(note: Path) -> None:
    ours, theirs = os.openpty()
    text = "trap 'exit 5' INT; echo ready; while :; do sleep 0.01; done"
    command = ("setsid", "--ctty", "--wait", *behind(note, "sh", "-c", text))
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE) as running:
        os.close(theirs)
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        os.write(ours, b"\x03")  # Ctrl-C
        assert running.wait(LIMIT) == 5
    os.close(ours)


def test_the_program_ends_when_user_code_does_and_reaps_what_is_left_to_it(note: Path) -> None:
    orphan = "sh -c 'sleep 0.01 & echo $!'"
    text = f"p=$({orphan}); while [ -e /proc/$p ]; do sleep 0.01; done; sleep 1000 & exit 6"
    as_first = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *behind(note, "sh", "-c", text))
    if os.geteuid() != 0:
        pytest.skip("only root can make the first process of a container without one")
    assert ended(as_first).returncode == 6
