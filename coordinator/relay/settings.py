"""The relay's settings: parsed once, passed on."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator.relay.joining import RELAY_STREAMS
from muster.daemon.journal import add_format_option
from muster.daemon.options_file import parse_with_file


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """Everything that can be chosen about a relay."""

    state: Path
    """The state directory of the coordinator, whose socket lies in it."""
    listen_relay: str = ""
    """Where clients and agents are served; empty: as the coordinator says."""
    relay_streams: int = RELAY_STREAMS
    """Streams at once."""
    relay_rate: int | None = None
    """Bytes a second of one account; None: any."""
    ready_file: Path | None = None
    """Where the bound address is written once it serves."""
    log_level: str = "info"
    log_format: str = "text"
    """Form of each line of the journal: `text` or `json`."""


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> RelaySettings:
    """Settings from the command line, with defaults from the environment; exits with a message for bad ones."""
    parser = argparse.ArgumentParser(
        prog="muster-relay",
        description="Carries the bytes of attachments between clients and agents; keys come from the coordinator.",
    )
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(environ.get("MUSTER_STATE", "/var/lib/muster/coordinator")),
        help="state directory of the coordinator on this machine (%(default)s)",
    )
    parser.add_argument(
        "--listen-relay",
        default="",
        help="for clients and agents; port 0 takes a free one (by default the second port after that for clients)",
    )
    parser.add_argument(
        "--relay-streams",
        type=_positive,
        default=RELAY_STREAMS,
        metavar="N",
        help="streams at once, two for each attachment (%(default)s)",
    )
    parser.add_argument(
        "--relay-rate",
        type=_megabytes,
        metavar="MB",
        help="megabytes a second of one account, in both directions together (no limit)",
    )
    parser.add_argument("--ready-file", type=Path, help="write the bound address there once serving")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    add_format_option(parser, environ)
    given = parse_with_file(parser, arguments)
    host, _, port = given.listen_relay.rpartition(":")
    if given.listen_relay and not (host and port.isdecimal()):
        parser.error(f"--listen-relay {given.listen_relay} is no address like 0.0.0.0:7462")
    return RelaySettings(**vars(given))


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _megabytes(text: str) -> int:
    return _positive(text) * 1_000_000
