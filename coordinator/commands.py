"""The commands of `muster-coordinator` beside serving: they do one thing to a state directory and end."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from coordinator.clock import wall_time
from coordinator.fleet.files import FleetFiles
from coordinator.fleet.put_aside import PUT_ASIDE, put_aside
from coordinator.settings import default_state
from coordinator.store.directory import StateDirectory
from muster.journal import configure
from muster.refusal import refusing

Command = Callable[[argparse.Namespace], int]


def command(arguments: Sequence[str]) -> Command | None:
    """The command that the first word of a command line names; None: it is an option, and the coordinator serves."""
    return COMMANDS.get(arguments[0]) if arguments else None


def run_command(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Carry out the command; exits with a message where it cannot be."""
    given = _parser(environ).parse_args(arguments)
    os.umask(0o077)
    configure(given.log_level)
    with refusing(f"muster-coordinator {given.command}"):
        return COMMANDS[given.command](given)
    return 1


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="muster-coordinator")
    commands = parser.add_subparsers(dest="command", required=True)
    anew = commands.add_parser("start-anew", help="put all that a fleet left aside, so that a new one begins")
    moved = commands.add_parser("moved", help="say that this state directory was moved here, and is used nowhere else")
    for each in (anew, moved):
        each.add_argument("--state", type=Path, default=default_state(environ), help="state directory (%(default)s)")
        each.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="warning")
    return parser


def _start_anew(given: argparse.Namespace) -> int:
    directory = StateDirectory(given.state)
    with directory.lock():
        kept = {"coordinator.lock", PUT_ASIDE}
        left = [path for path in sorted(directory.path.iterdir()) if path.name not in kept and path.suffix != ".toml"]
        place = put_aside(directory.path, left, wall_time())
    where = f"all of it is in {place}" if place else "there was nothing"
    sys.stdout.write(f"the next start in {directory.path} begins a new fleet; {where}\n")
    return 0


def _moved(given: argparse.Namespace) -> int:
    directory = StateDirectory(given.state)
    with directory.lock():
        FleetFiles(directory).accept_place()
    sys.stdout.write(
        f"the fleet is at home in {directory.path}; a coordinator on a copy elsewhere must not be started\n"
    )
    return 0


COMMANDS: Mapping[str, Command] = {"start-anew": _start_anew, "moved": _moved}
