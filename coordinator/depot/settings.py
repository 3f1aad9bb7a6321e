"""The depot's settings: parsed once, passed on."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.daemon.journal import add_format_option
from muster.daemon.options_file import parse_with_file


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotSettings:
    """Everything that can be chosen about a depot."""

    state: Path
    """The state directory of the coordinator, whose socket lies in it."""
    depot_dir: Path
    """Where the objects lie."""
    listen_depot: str = ""
    """Where clients and nodes are served; empty: as the coordinator says."""
    ready_file: Path | None = None
    """Where the bound address is written once it serves."""
    log_level: str = "info"
    log_format: str = "text"
    """Form of each line of the journal: `text` or `json`."""


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> DepotSettings:
    """Settings from the command line, with defaults from the environment; exits with a message for bad ones."""
    parser = argparse.ArgumentParser(
        prog="muster-depot",
        description="Keeps code of jobs, named by content; keys come from the coordinator.",
    )
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(environ.get("MUSTER_STATE", "/var/lib/muster/coordinator")),
        help="state directory of the coordinator on this machine (%(default)s)",
    )
    parser.add_argument(
        "--depot-dir",
        type=Path,
        default=None,
        help="where the objects lie, best on a disk of their own (by default `depot` in the state directory)",
    )
    parser.add_argument(
        "--listen-depot",
        default="",
        help="for clients and nodes; port 0 takes a free one (by default the third port after that for clients)",
    )
    parser.add_argument("--ready-file", type=Path, help="write the bound address there once serving")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    add_format_option(parser, environ)
    given = parse_with_file(parser, arguments)
    host, _, port = given.listen_depot.rpartition(":")
    if given.listen_depot and not (host and port.isdecimal()):
        parser.error(f"--listen-depot {given.listen_depot} is no address like 0.0.0.0:7463")
    return DepotSettings(**{**vars(given), "depot_dir": given.depot_dir or given.state / "depot"})
