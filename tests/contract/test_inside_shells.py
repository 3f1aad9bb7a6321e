"""Shells that the companion starts: whose they are, what they find, and how their terminals behave."""

import os
import pwd
import select
import signal
from collections.abc import Sequence
from errno import EACCES, ENOENT, ENOTDIR
from pathlib import Path

import pytest

from agent.core.door.packets import (
    CommandExited,
    CommandFailed,
    CommandKept,
    CommandSignal,
    CommandWanted,
    FaultyPart,
    Speaker,
    StayAsked,
)
from tests.contract.door_side import ANSWER_LIMIT, TICKET, DoorLine, DoorSide, everything

ME = pwd.getpwuid(os.geteuid())
NO_SHELLS = {"nologin", "false", "true"}

needs_a_shell_of_its_own = pytest.mark.skipif(
    not os.access(ME.pw_shell, os.X_OK) or Path(ME.pw_shell).name in NO_SHELLS,
    reason="the user of this test has no shell",
)


def _companion(door: DoorSide, **env: str) -> DoorLine:
    door.run("muster-inside", "stay", str(door.path), env={"MUSTER_TICKET": TICKET, **env})
    line = door.line(Speaker.COMPANION)
    assert line.hear() == StayAsked(ticket=TICKET)
    return line


@pytest.fixture
def companion(door: DoorSide) -> DoorLine:
    return _companion(door)


class Shown:
    """What a terminal shows, text after text."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._left = b""

    def until(self, text: bytes) -> None:
        """Pass over what it shows up to the end of a text; what follows is there for the next call."""
        while text not in self._left:
            assert select.select([self._terminal], [], [], ANSWER_LIMIT)[0], self._left
            self._left += os.read(self._terminal, 4096)
        self._left = self._left.partition(text)[2]


def _until(terminal: int, text: bytes) -> None:
    Shown(terminal).until(text)


def _line(*words: str, number: int = 1, env: Sequence[str] = ()) -> CommandWanted:
    return CommandWanted(number=number, words=words, shell=True, env=tuple(env))


@needs_a_shell_of_its_own
def test_a_line_is_run_by_the_shell_of_the_user_as_ssh_does(companion: DoorLine) -> None:
    output, errors = companion.start(_line("echo $0 | tr a-z A-Z; echo err >&2; exit 3"))
    assert everything(output).decode() == f"{Path(ME.pw_shell).name.upper()}\n"
    assert everything(errors) == b"err\n"
    assert companion.hear() == CommandExited(number=1, code=3)


@needs_a_shell_of_its_own
def test_a_shell_without_a_line_is_that_of_a_login(companion: DoorLine) -> None:
    into, output, _ = companion.start(CommandWanted(number=1, words=(), shell=True, has_input=True))
    os.write(into, b"echo I am $0; exit 4\n")
    os.close(into)
    assert f"I am -{Path(ME.pw_shell).name}\n".encode() in everything(output)
    assert companion.hear() == CommandExited(number=1, code=4)


@needs_a_shell_of_its_own
def test_a_shell_finds_who_it_runs_as_and_a_terminal_what_it_is(door: DoorSide) -> None:
    line = _companion(door)
    names = ("HOME", "SHELL", "USER", "LOGNAME")
    output, _ = line.start(_line("env"))
    found = dict(each.split("=", 1) for each in everything(output).decode().splitlines())
    expected = {"HOME": ME.pw_dir, "SHELL": ME.pw_shell, "USER": ME.pw_name, "LOGNAME": ME.pw_name}
    assert {name: found[name] for name in names} == expected
    assert line.hear() == CommandExited(number=1, code=0)
    [terminal] = line.start(CommandWanted(number=2, words=("sh", "-c", "echo $TERM"), terminal=True))
    assert b"xterm-256color\r\n" in everything(terminal)


@needs_a_shell_of_its_own
def test_what_is_set_already_stays(door: DoorSide) -> None:
    line = _companion(door, HOME="/somewhere", USER="somebody")
    [terminal] = line.start(
        CommandWanted(
            number=1,
            words=("echo =$HOME=$USER=$LOGNAME=$TERM=",),
            shell=True,
            terminal=True,
            env=("TERM=dumb", "LOGNAME=else"),
        )
    )
    assert b"=/somewhere=somebody=else=dumb=\r\n" in everything(terminal)


def test_a_command_that_is_no_shell_gets_no_variables_of_a_shell(companion: DoorLine) -> None:
    output, _ = companion.start(CommandWanted(number=1, words=("env",)))
    names = {each.split(b"=")[0] for each in everything(output).splitlines()}
    assert names == {b"PATH", b"MUSTER_DOOR"}


@pytest.mark.parametrize(
    ("workdir", "reason"), [("nowhere", ENOENT), ("file", ENOTDIR), ("/proc/1/fd/../../nothing", ENOENT)]
)
def test_a_directory_that_is_not_there_is_told_apart_from_a_program(
    companion: DoorLine, tmp_path: Path, workdir: str, reason: int
) -> None:
    (tmp_path / "file").touch()
    companion.say(CommandWanted(number=9, words=("true",), workdir=str(tmp_path / workdir)))
    assert companion.hear() == CommandFailed(number=9, errno=reason, part=FaultyPart.DIRECTORY)
    companion.say(CommandWanted(number=9, words=("/etc/passwd",), workdir=str(tmp_path)))
    assert companion.hear() == CommandFailed(number=9, errno=EACCES, part=FaultyPart.PROGRAM)


def test_keys_that_stop_and_interrupt_reach_what_is_in_front_and_not_the_shell(companion: DoorLine) -> None:
    wanted = CommandWanted(number=1, words=("bash", "--norc", "--noprofile", "-i"), terminal=True, env=("PS1=$ ",))
    [terminal] = companion.start(wanted)
    shown = Shown(terminal)
    shown.until(b"$ ")
    os.write(terminal, b"cat\n")
    for key, effect in ((b"\x1a", b"Stopped"), (b"\x03", b"^C")):
        os.write(terminal, b"said\n")
        shown.until(b"said\r\n")
        shown.until(b"said\r\n")  # the first one is of the terminal, this one of the program in front
        os.write(terminal, key)
        shown.until(effect)
        shown.until(b"$ ")
        os.write(terminal, b"fg\n" if key == b"\x1a" else b"")
    os.write(terminal, b"echo code $?; exit 7\n")
    shown.until(b"code 130\r\n")
    assert companion.hear() == CommandExited(number=1, code=7)


def test_a_terminal_is_the_one_that_controls_its_session(companion: DoorLine) -> None:
    [terminal] = companion.start(CommandWanted(number=1, words=("sh", "-c", "echo mine > /dev/tty"), terminal=True))
    assert everything(terminal) == b"mine\r\n"


def test_what_hangs_up_ends_also_where_it_is_stopped(companion: DoorLine) -> None:
    [terminal] = companion.start(CommandWanted(number=1, words=("sh", "-c", "echo up; kill -STOP $$"), terminal=True))
    _until(terminal, b"up")
    companion.say(CommandSignal(number=1, signal=signal.SIGHUP))
    assert companion.hear() == CommandExited(number=1, code=128 + signal.SIGHUP)
    os.close(terminal)


def _kept(number: int, name: str) -> CommandWanted:
    return CommandWanted(number=number, words=("sh",), terminal=True, kept_name=name, env=("PS1=$ ",))


def test_a_kept_shell_goes_to_the_next_agent_with_its_terminal(door: DoorSide) -> None:
    line = _companion(door)
    hung, _ = line.start(CommandWanted(number=1, words=("sleep", "600")))
    [terminal] = line.start(_kept(2, "work"))
    os.write(terminal, b"greeting='good morning'\n")
    _until(terminal, b"$ ")
    os.close(terminal)
    line.close()
    assert everything(hung) == b""  # as its command has ended
    again = door.line(Speaker.COMPANION)
    assert again.hear() == StayAsked(ticket=TICKET)
    packet, [terminal] = again.hear_all()
    assert isinstance(packet, CommandKept)
    assert (packet.number, packet.name) == (2, "work")
    assert packet.pid > 1
    os.write(terminal, b"echo $greeting to $$; exit 5\n")
    assert f"good morning to {packet.pid}".encode() in everything(terminal)
    assert again.hear() == CommandExited(number=2, code=5)


def test_a_kept_shell_that_has_ended_meanwhile_is_not_handed_over(door: DoorSide, tmp_path: Path) -> None:
    line = _companion(door)
    os.mkfifo(tmp_path / "ended")
    wanted = CommandWanted(
        number=1,
        words=("sh", "-c", "echo up; read word; exec 3> ended"),
        workdir=str(tmp_path),
        terminal=True,
        kept_name="one",
    )
    [terminal] = line.start(wanted)
    _until(terminal, b"up")
    [other] = line.start(_kept(2, "two"))
    door.shut()
    line.close()
    os.write(terminal, b"go\n")
    with (tmp_path / "ended").open("rb") as ended:
        assert ended.read() == b""  # which ends with the command
    os.close(terminal)
    os.close(other)
    door.open()
    again = door.line(Speaker.COMPANION)
    assert again.hear() == StayAsked(ticket=TICKET)
    packet, descriptors = again.hear_all()
    while isinstance(packet, CommandKept) and packet.name == "one":  # it is just being waited for
        os.close(*descriptors)
        packet, descriptors = again.hear_all()
    assert isinstance(packet, CommandKept)
    assert packet.name == "two"
    os.close(*descriptors)


def test_the_terminal_of_a_kept_shell_is_let_go_when_that_hangs_up(companion: DoorLine) -> None:
    wanted = CommandWanted(
        number=1, words=("sh", "-c", "trap '' HUP; echo up; read word; exit 6"), terminal=True, kept_name="deaf"
    )
    [terminal] = companion.start(wanted)
    _until(terminal, b"up")
    companion.say(CommandSignal(number=1, signal=signal.SIGHUP))
    companion.say(CommandWanted(number=2, words=("true",)))  # by then the companion has heard the signal
    packet, descriptors = companion.hear_all()
    for each in (*descriptors, terminal):
        os.close(each)  # the last one of the terminal, so that what reads from it finds its end
    assert {companion.hear(), companion.hear()} == {
        CommandExited(number=1, code=6),
        CommandExited(number=2, code=0),
    }, packet


@pytest.mark.parametrize(
    "raw",
    [
        b"L\0\0\0",
        b"L\0\0\0\1\0",
        b"K\0\0\0\1\0",
        b"C\0\0\0\1\0\0\1\0\1\0\0\0\0\0\0\0\0\0\0\0\0",  # no words
        b"C\0\0\0\1\0\0\1\0\1\0\0\0\0\0\0\0\1a\0\1\0\0\0\1a\0\0",  # kept without a terminal
    ],
)
def test_an_order_that_is_damaged_ends_the_line_and_not_the_companion(door: DoorSide, raw: bytes) -> None:
    line = _companion(door)
    line.say_raw(raw)
    assert door.line(Speaker.COMPANION).hear() == StayAsked(ticket=TICKET)
