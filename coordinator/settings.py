"""The coordinator's settings: parsed once in main, passed on."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.endpoint import DEFAULT_ADDRESS

DEFAULT_LOG_LIMIT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """Everything that can be chosen about a coordinator."""

    state: Path
    """Directory of the database and the logs; one coordinator at a time."""
    listen: str = DEFAULT_ADDRESS
    insecure: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    log_limit: int = DEFAULT_LOG_LIMIT
    """MiB that are kept of what one execution prints."""
    ready_file: Path | None = None
    """Where the bound address is written once it serves."""
    log_level: str = "info"


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> CoordinatorSettings:
    """Settings from the command line, with defaults from the environment; exits with a message for bad ones."""
    parser = argparse.ArgumentParser(
        prog="muster-coordinator",
        description="Queues jobs, places them on nodes, calls the roll and starts every worker at once.",
    )
    state = environ.get("MUSTER_STATE", "/var/lib/muster/coordinator")
    parser.add_argument("--state", type=Path, default=Path(state), help="directory of database and logs (%(default)s)")
    parser.add_argument("--listen", default=DEFAULT_ADDRESS, help="host:port; port 0 takes a free one (%(default)s)")
    parser.add_argument(
        "--insecure",
        action="store_true",
        default=environ.get("MUSTER_INSECURE") == "1",
        help="speak unencrypted with other machines too: only where you trust the network",
    )
    parser.add_argument("--tls-cert", type=Path, help="the coordinator's certificate (PEM)")
    parser.add_argument("--tls-key", type=Path, help="its key (PEM)")
    parser.add_argument("--tls-client-ca", type=Path, help="whose certificates agents and clients must show (PEM)")
    parser.add_argument(
        "--log-limit",
        type=_positive,
        default=DEFAULT_LOG_LIMIT,
        metavar="MIB",
        help="kept of what one execution prints (%(default)s); agents have a limit of their own",
    )
    parser.add_argument("--ready-file", type=Path, help="write the bound address there once serving")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    given = parser.parse_args(arguments)
    if (given.tls_cert is None) != (given.tls_key is None):
        parser.error("--tls-cert and --tls-key belong together")
    if given.tls_client_ca is not None and given.tls_cert is None:
        parser.error("--tls-client-ca needs --tls-cert and --tls-key")
    return CoordinatorSettings(**vars(given))


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)
