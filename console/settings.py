"""The console's settings: parsed once, passed on."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from muster.client.endpoint import coordinator_address, parse_address
from muster.daemon.journal import add_format_option
from muster.daemon.options_file import parse_with_file
from muster.domain.errors import MusterError
from muster.rpc.channel import is_loopback

DEFAULT_HISTORY_LIMIT = 20
"""GiB of history on the disk, unless somebody wants more or less."""
DEFAULT_LISTEN = "127.0.0.1:7464"
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """Everything that can be chosen about a console."""

    coordinator: str
    """The address of the coordinator for clients, `host:port`."""
    authority: Path | None = None
    """The certificate of the fleet's authority; None: plain text, which only `muster up` speaks."""
    listen: str = DEFAULT_LISTEN
    """Where HTTP is served."""
    url: str = ""
    """How browsers and programs reach it; empty: under the address that it serves at."""
    cert: Path | None = None
    """The certificate that it shows, with those between it and its authority; None: plain HTTP, on loopback alone."""
    key: Path | None = None
    """The key of `cert`."""
    notify: Path | None = None
    """The file of subscriptions; None: nobody is notified."""
    state: Path | None = None
    """Where deliveries wait that are to be made, and the key of sessions; None: sessions end with the console."""
    token_file: Path | None = None
    """The file with its own token, with which it follows events and keeps its mirror; None: it does neither."""
    history_limit: int = DEFAULT_HISTORY_LIMIT
    """GiB of what nodes used that are kept in `state`; 0: it keeps nothing of it."""
    notify_test: str = ""
    """A subscription whose target gets a test, instead of anything else."""
    ready_file: Path | None = None
    """Where its URL is written once it serves."""
    log_level: str = "info"
    log_format: str = "text"
    """Form of each line of the journal: `text` or `json`."""

    @property
    def origin(self) -> str:
        """How browsers name it where they say what page a request comes from; empty: by its address."""
        url = urlsplit(self.url)
        return f"{url.scheme}://{url.netloc}".lower() if self.url else ""

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which it may be asked: a page of another site must not reach it by a name of its own."""
        named = urlsplit(self.url).hostname
        return LOOPBACK_NAMES | {self.listen.rpartition(":")[0]} | ({named} if named else set())


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> ConsoleSettings:
    """Settings from the command line, with defaults from the environment; exits with a message for bad ones."""
    parser = argparse.ArgumentParser(
        prog="muster-console",
        description="Serves Muster over HTTP. It does everything with the token of whoever asks.",
    )
    parser.add_argument(
        "--coordinator",
        default=coordinator_address(environ),
        metavar="HOST:PORT",
        help="address of the coordinator for clients (%(default)s)",
    )
    parser.add_argument("--authority", type=Path, metavar="FILE", help="certificate of the fleet's authority")
    parser.add_argument(
        "--listen", default=DEFAULT_LISTEN, metavar="HOST:PORT", help="where HTTP is served (%(default)s)"
    )
    parser.add_argument("--url", default="", help="how others reach it, like https://muster.example.com")
    parser.add_argument("--cert", type=Path, metavar="FILE", help="certificate to show, with those between")
    parser.add_argument("--key", type=Path, metavar="FILE", help="key of the certificate")
    parser.add_argument("--notify", type=Path, metavar="FILE", help="subscriptions to events (docs/notifications.md)")
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIRECTORY",
        default=Path(environ["MUSTER_STATE"]) if environ.get("MUSTER_STATE") else None,
        help="where history, deliveries of events and the key of sessions are kept (MUSTER_STATE)",
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="its own token, for events, mirror and history")
    parser.add_argument(
        "--history-limit",
        type=int,
        default=DEFAULT_HISTORY_LIMIT,
        metavar="GIB",
        help="disk for what nodes used, in the state directory (%(default)s); 0: none",
    )
    parser.add_argument("--notify-test", default="", metavar="NAME", help="send a test to a subscription, and end")
    parser.add_argument("--ready-file", type=Path, help="write the URL there once it serves")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    add_format_option(parser, environ)
    given = parse_with_file(parser, arguments)
    try:
        given.coordinator = parse_address(given.coordinator)
    except MusterError as error:
        parser.error(f"--coordinator: {error}")
    settings = ConsoleSettings(**vars(given))
    if (fault := _fault(settings)) is not None:
        parser.error(fault)
    return settings


def _fault(settings: ConsoleSettings) -> str | None:
    """What is wrong with settings that each look right."""
    host, _, port = settings.listen.rpartition(":")
    if not (host and port.isdecimal()):
        return f"--listen {settings.listen} is no address like {DEFAULT_LISTEN}"
    if (settings.cert is None) != (settings.key is None):
        return "--cert and --key belong together"
    if settings.cert is None and not is_loopback(settings.listen):
        return (
            f"will not speak unencrypted at {settings.listen}: give --cert and --key, "
            "or listen at 127.0.0.1 behind a proxy that speaks HTTPS"
        )
    if settings.history_limit < 0:
        return f"--history-limit {settings.history_limit} is no number of GiB"
    url = urlsplit(settings.url)
    if settings.url and (url.scheme not in {"http", "https"} or not url.hostname):
        return f"--url {settings.url} is no address like https://muster.example.com"
    return _fault_in_notifying(settings)


def _fault_in_notifying(settings: ConsoleSettings) -> str | None:
    if settings.notify_test and settings.notify is None:
        return "--notify-test needs --notify FILE"
    if settings.notify is not None and not settings.notify_test and not (settings.state and settings.token_file):
        return "--notify needs --state DIRECTORY and --token-file FILE"
    return None
