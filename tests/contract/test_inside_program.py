"""The program that is brought into executions, as it stands in the distribution: companion and caller."""

import os
import shutil
import signal
import struct
import subprocess
from errno import EACCES, ENOENT
from pathlib import Path

import pytest

from agent.core.door.packets import (
    CommandExited,
    CommandFailed,
    CommandSignal,
    CommandWanted,
    GangBegun,
    GangCommandAsked,
    GangErrorOutput,
    GangExit,
    GangInput,
    GangInputEnd,
    GangOutput,
    GangRefused,
    GangSignal,
    Speaker,
    StayAsked,
    Targets,
)
from tests.contract.door_side import ANSWER_LIMIT, TICKET, DoorLine, DoorSide, everything, program

ARCHITECTURES = ("x86_64", "aarch64")
LARGEST_PROGRAM = 150_000
"""Bytes of it that an execution gets, at most."""
SOURCES = Path(program().parent)


@pytest.fixture
def companion(door: DoorSide) -> DoorLine:
    return _companion(door)


def _companion(door: DoorSide) -> DoorLine:
    door.run("muster-inside", "stay", str(door.path), env={"MUSTER_TICKET": TICKET, "COLOUR": "blue"})
    line = door.line(Speaker.COMPANION)
    assert line.hear() == StayAsked(ticket=TICKET)
    return line


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_its_source_gives_the_bytes_that_are_sent_along(architecture: str, tmp_path: Path) -> None:
    compiler = "gcc" if architecture == "x86_64" else f"{architecture}-linux-gnu-gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    subprocess.run([SOURCES / "build.sh", tmp_path, architecture], check=True)
    assert (tmp_path / f"muster-inside-{architecture}").read_bytes() == program(architecture).read_bytes()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_is_small(architecture: str) -> None:
    assert program(architecture).stat().st_size <= LARGEST_PROGRAM


def test_a_command_has_its_own_output_error_output_and_exit_code(companion: DoorLine) -> None:
    script = "echo out; echo err >&2; exit 3"
    output, errors = companion.start(CommandWanted(number=1, words=("sh", "-c", script)))
    assert (everything(output), everything(errors)) == (b"out\n", b"err\n")
    assert companion.hear() == CommandExited(number=1, code=3)


def test_a_command_reads_its_input_to_the_end(companion: DoorLine) -> None:
    into, output, _ = companion.start(CommandWanted(number=1, words=("cat",), has_input=True))
    os.write(into, b"there and back")
    os.close(into)
    assert everything(output) == b"there and back"
    assert companion.hear() == CommandExited(number=1, code=0)


def test_a_command_has_the_variables_of_the_companion_and_its_own_but_no_ticket(companion: DoorLine) -> None:
    wanted = CommandWanted(number=1, words=("env",), env=("SHAPE=round", "COLOUR=red"))
    output, _ = companion.start(wanted)
    lines = everything(output).decode().splitlines()
    assert {"SHAPE=round", "COLOUR=red", f"PATH={os.defpath}"} <= set(lines)
    assert not [line for line in lines if line.startswith("MUSTER_TICKET") or line == "COLOUR=blue"]


def test_a_command_starts_in_the_directory_that_is_asked_for(companion: DoorLine, tmp_path: Path) -> None:
    output, _ = companion.start(CommandWanted(number=1, words=("pwd",), workdir=str(tmp_path)))
    assert everything(output) == f"{tmp_path}\n".encode()


def test_a_command_leads_a_session_with_nothing_ignored_and_nothing_open_of_the_companion(
    companion: DoorLine,
) -> None:
    script = "grep -E 'SigIgn|SigBlk' /proc/self/status; ls /proc/self/fd; cut -d' ' -f1,6 /proc/$$/stat"
    output, _ = companion.start(CommandWanted(number=1, words=("sh", "-c", script)))
    blocked, ignored, *rest = everything(output).decode().split("\n")
    assert (blocked.split()[1], ignored.split()[1]) == ("0" * 16, "0" * 16)
    assert rest[:4] == ["0", "1", "2", "3"]  # the last one is the directory that ls reads
    leader, session = rest[4].split()
    assert leader == session


@pytest.mark.parametrize(("word", "reason"), [("no-such-program", ENOENT), ("/etc/passwd", EACCES)])
def test_a_command_that_cannot_run_fails_with_the_reason(companion: DoorLine, word: str, reason: int) -> None:
    companion.say(CommandWanted(number=9, words=(word,)))
    assert companion.hear() == CommandFailed(number=9, errno=reason)


def test_a_signal_reaches_a_command_and_what_it_started(companion: DoorLine) -> None:
    output, _ = companion.start(CommandWanted(number=1, words=("sh", "-c", "sleep 600 & echo up; wait")))
    assert os.read(output, 3) == b"up\n"
    companion.say(CommandSignal(number=1, signal=signal.SIGKILL))
    assert companion.hear() == CommandExited(number=1, code=128 + signal.SIGKILL)
    assert everything(output) == b""  # whose other end the sleep had


def test_a_terminal_has_its_size_from_the_start_and_interrupts(companion: DoorLine) -> None:
    wanted = CommandWanted(number=1, words=("sh", "-c", "stty size; exec cat"), terminal=True, rows=33, columns=111)
    (terminal,) = companion.start(wanted)
    os.write(terminal, b"said\n")
    shown = b""
    while shown.count(b"said") < 2:  # once by the terminal, and once by the program that reads it
        shown += os.read(terminal, 100)
    assert b"33 111\r\n" in shown
    os.write(terminal, b"\x03")
    assert companion.hear() == CommandExited(number=1, code=128 + signal.SIGINT)
    os.close(terminal)


def test_as_many_commands_as_there_are_places_run_and_one_more_fails(companion: DoorLine) -> None:
    for number in range(128):
        for descriptor in companion.start(CommandWanted(number=number, words=("sleep", "600"))):
            os.close(descriptor)
    companion.say(CommandWanted(number=128, words=("true",)))
    assert isinstance(companion.hear(), CommandFailed)


def test_when_the_agent_is_gone_commands_are_hung_up_and_daemons_go_on(door: DoorSide, tmp_path: Path) -> None:
    line = _companion(door)
    daemon = "echo up; read line < go; echo 'still there'"
    os.mkfifo(tmp_path / "go")
    hung, _ = line.start(CommandWanted(number=1, words=("sleep", "600")))
    output, _ = line.start(CommandWanted(number=2, words=("sh", "-c", daemon), workdir=str(tmp_path), daemon=True))
    assert os.read(output, 3) == b"up\n"
    os.close(output)
    line.close()
    assert everything(hung) == b""  # as its command has ended
    assert door.line(Speaker.COMPANION).hear() == StayAsked(ticket=TICKET)
    (tmp_path / "go").write_text("\n")
    errors = door.programs[0].stderr
    assert errors is not None
    assert errors.readline() == b"still there\n"


def test_a_companion_waits_for_an_agent_that_starts_later(door: DoorSide) -> None:
    door.shut()
    door.path.unlink()
    door.run("muster-inside", "stay", str(door.path), env={"MUSTER_TICKET": TICKET})
    door.open()
    assert door.line(Speaker.COMPANION).hear() == StayAsked(ticket=TICKET)


def test_a_path_that_is_too_long_for_a_socket_is_no_hindrance(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    directory.mkdir()
    side = DoorSide(directory)
    try:
        _companion(side)
    finally:
        side.close()


def test_an_order_that_is_damaged_ends_the_line_and_not_the_companion(door: DoorSide) -> None:
    line = _companion(door)
    line.say_raw(b"C" + struct.pack(">IBHHI", 1, 0, 0, 0, 0xFFFFFFFF))
    assert door.line(Speaker.COMPANION).hear() == StayAsked(ticket=TICKET)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_execution_that_only_waits_ends_well_with_a_signal(door: DoorSide, number: signal.Signals) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})  # a signal that comes at once is not lost either
    waiting = door.run("muster-inside", "wait")
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    waiting.send_signal(number)
    assert waiting.wait(ANSWER_LIMIT) == 0


@pytest.mark.parametrize(
    ("name", "words", "asked"),
    [
        ("muster-exec", ("2", "ls", "-l"), GangCommandAsked(targets=Targets.ONE, target="2", words=("ls", "-l"))),
        (
            "muster-exec",
            ("--ranks", "0,2-3", "-e", "A=b", "--", "ls"),
            GangCommandAsked(targets=Targets.RANKS, target="0,2-3", words=("ls",), env=("A=b",)),
        ),
        ("muster-exec", ("-n", "--all", "ls"), GangCommandAsked(targets=Targets.ALL, target="", words=("ls",))),
        (
            "muster-rsh",
            ("worker-1", "orted", "-mca", '"a b"'),
            GangCommandAsked(targets=Targets.ONE, target="worker-1", words=('orted -mca "a b"',), daemon=True),
        ),
        (
            "ssh",
            ("-o", "StrictHostKeyChecking=no", "-x", "me@10.0.0.2", "-p22", "-o", "B=c", "cd /w;", "run", "-n"),
            GangCommandAsked(targets=Targets.ONE, target="10.0.0.2", words=("cd /w; run -n",)),
        ),
        (
            "muster-ssh",
            ("-l", "me", "-2", "host", "--", "ls"),
            GangCommandAsked(targets=Targets.ONE, target="host", words=("ls",)),
        ),
    ],
)
def test_each_name_asks_as_the_program_that_it_stands_for(
    door: DoorSide, name: str, words: tuple[str, ...], asked: GangCommandAsked
) -> None:
    caller = door.run(name, *words)
    line = door.line(Speaker.CALLER)
    heard = line.hear()
    assert isinstance(heard, GangCommandAsked)
    assert (heard.targets, heard.target, heard.words, heard.env, heard.daemon) == (
        asked.targets,
        asked.target,
        asked.words,
        asked.env,
        asked.daemon,
    )
    assert heard.has_input is ("-n" not in words[:1])
    line.say(GangExit(code=7))
    assert caller.wait(ANSWER_LIMIT) == 7


def test_a_caller_passes_on_input_output_and_the_exit_code(door: DoorSide) -> None:
    caller = door.run("muster-exec", "1", "cat", stdin=subprocess.PIPE)
    line = door.line(Speaker.CALLER)
    line.hear()
    line.say(GangBegun())
    assert caller.stdin is not None
    caller.stdin.write(b"in")
    caller.stdin.close()
    caller.stdin = None
    assert (line.hear(), line.hear()) == (GangInput(data=b"in"), GangInputEnd())
    line.say(GangOutput(data=b"out"))
    line.say(GangErrorOutput(data=b"err"))
    line.say(GangExit(code=42))
    assert (caller.communicate(timeout=ANSWER_LIMIT), caller.returncode) == ((b"out", b"err"), 42)


def test_signals_go_to_the_command_that_muster_exec_waits_for(door: DoorSide) -> None:
    caller = door.run("muster-exec", "-n", "1", "train")
    line = door.line(Speaker.CALLER)
    line.hear()
    line.say(GangBegun())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        caller.send_signal(number)
        assert line.hear() == GangSignal(number=number)
    line.say(GangExit(code=3))
    assert caller.wait(ANSWER_LIMIT) == 3


def test_a_signal_ends_the_program_that_stands_for_ssh(door: DoorSide) -> None:
    caller = door.run("ssh", "1", "orted")
    line = door.line(Speaker.CALLER)
    line.hear()
    caller.send_signal(signal.SIGTERM)
    assert caller.wait(ANSWER_LIMIT) == -signal.SIGTERM


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_muster_exec_says_how_it_is_used(door: DoorSide, word: str) -> None:
    caller = door.run("muster-exec", word)
    output, errors = caller.communicate(timeout=ANSWER_LIMIT)
    assert output.startswith(b"Usage: muster-exec [OPTIONS] [--] TARGET WORDS...\n")
    assert (errors, caller.returncode) == (b"", 0)


def test_the_end_of_a_command_is_heard_although_its_input_was_not_read(door: DoorSide) -> None:
    caller = door.run("muster-exec", "1", "true", stdin=subprocess.PIPE)
    line = door.line(Speaker.CALLER)
    line.hear()
    assert caller.stdin is not None
    caller.stdin.write(b"unread")
    caller.stdin.flush()
    line.wait()
    line.say(GangExit(code=5))
    line.close()
    assert caller.wait(ANSWER_LIMIT) == 5


def test_a_refusal_is_one_line_and_255(door: DoorSide) -> None:
    caller = door.run("muster-exec", "9", "ls")
    line = door.line(Speaker.CALLER)
    line.hear()
    line.say(GangRefused(text="gpu-9 is no member of this attempt"))
    assert caller.communicate(timeout=ANSWER_LIMIT)[1] == b"muster-exec: gpu-9 is no member of this attempt\n"
    assert caller.returncode == 255


@pytest.mark.parametrize(
    ("name", "begun", "code"), [("muster-exec", True, 255), ("muster-rsh", False, 255), ("muster-rsh", True, 0)]
)
def test_only_a_daemon_that_has_begun_does_without_the_agent(door: DoorSide, name: str, begun: bool, code: int) -> None:
    caller = door.run(name, "1", "orted")
    line = door.line(Speaker.CALLER)
    line.hear()
    if begun:
        line.say(GangBegun())
    line.close()
    assert caller.wait(ANSWER_LIMIT) == code


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), b"say where a command is to run"),
        (("1",), b"say what is to run there"),
        (("--colour", "1", "ls"), b"this option is not known"),
        (("1", "x" * (1 << 16), "x" * (1 << 16)), b"longer than 128 KiB"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused_without_the_agent(
    door: DoorSide, words: tuple[str, ...], reason: bytes
) -> None:
    caller = door.run("muster-exec", *words)
    assert reason in caller.communicate(timeout=ANSWER_LIMIT)[1]
    assert caller.returncode == 255


def test_a_program_outside_of_a_gang_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "muster-exec"
    shutil.copy(program(), path)
    done = subprocess.run([path, "1", "ls"], env={}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (
        255,
        b"muster-exec: MUSTER_DOOR is not set; the job needs `gang_commands: true`\n",
    )
