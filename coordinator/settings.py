"""The coordinator's settings: parsed once in main, passed on."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from coordinator.logins.settings import (
    LoginSettings,
    add_arguments,
    login_settings,
    permitted_url,
    without_login,
)
from coordinator.service.attaching.attachment_limits import ACCOUNT_ATTACHMENTS
from coordinator.trust.audit.exports.audit_syslog import SyslogTarget
from muster.client.endpoint import DEFAULT_ADDRESS
from muster.daemon.journal import add_format_option
from muster.daemon.options_file import parse_with_file

DEFAULT_KEPT_LOG = 1024
NO_LOG_QUOTA = 0
"""Value of a quota of logs that sets no limit."""
_LAST_PORT = 65535


_RENAMED = frozenset({"name", "bundle_signer"})
"""Options whose setting has another name, as they may be repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """Everything that can be chosen about a coordinator."""

    state: Path
    """Directory of the database, the logs and the authority; one coordinator at a time."""
    listen: str = DEFAULT_ADDRESS
    """Where clients are served."""
    listen_agents: str = ""
    """Where agents are served."""
    names: tuple[str, ...] = ()
    """Names and addresses by which clients reach it, beside those it knows by itself."""
    local: bool = False
    """Serve this machine only, in plain text, for whoever may read the token in the state directory."""
    init: bool = False
    """Only make what a first start makes."""
    log_limit: int = DEFAULT_KEPT_LOG
    """MiB that are kept of what one execution prints."""
    log_quota: int = NO_LOG_QUOTA
    """MiB that are kept of the logs of all projects together; 0: as many as the disk has room for."""
    log_quota_project: int = NO_LOG_QUOTA
    """MiB that are kept of the logs of one project; 0: no limit of its own."""
    attachments_per_account: int = ACCOUNT_ATTACHMENTS
    """Attachments that one account may have open; of connections it may have ten times as many beside."""
    secrets_key: str = "keep"
    """What to do with the key that keeps secrets: `keep`, `rotate`, or `replace` it with the loss of what it opens."""
    bundle_signers: frozenset[str] = frozenset()
    """Fingerprints of the keys one of which must have signed a bundle that is uploaded; none: any bundle is taken."""
    ready_file: Path | None = None
    """Where the bound address is written once it serves."""
    console_url: str = ""
    """How browsers reach the console; empty: `muster open` finds none."""
    login: LoginSettings | None = None
    """How people log in whom an identity provider knows; None: by token alone."""
    log_level: str = "info"
    log_format: str = "text"
    """Form of each line of the journal: `text` or `json`."""
    audit_keep: int | None = None
    """Days that entries of the audit log are kept; None: for ever."""
    audit_file: Path | None = None
    """Where the audit log is written as JSON lines, too."""
    audit_syslog: SyslogTarget | None = None
    """The server that gets the audit log as messages, too; None: there is none."""


def default_state(environ: Mapping[str, str]) -> Path:
    """The state directory where none is named."""
    return Path(environ.get("MUSTER_STATE", "/var/lib/muster/coordinator"))


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> CoordinatorSettings:
    """Settings from the command line, with defaults from the environment; exits with a message for bad ones."""
    parser = argparse.ArgumentParser(
        prog="muster-coordinator",
        description="Queues jobs, places them on nodes, calls the roll and starts every worker at once.",
        epilog="In place of options, a command: backup, restore, check, start-anew, moved (each with --help).",
    )
    parser.add_argument(
        "--state", type=Path, default=default_state(environ), help="database, logs, authority (%(default)s)"
    )
    parser.add_argument("--listen", default=DEFAULT_ADDRESS, help="for clients; port 0 takes a free one (%(default)s)")
    parser.add_argument("--listen-agents", default="", help="for agents (by default the port after that for clients)")
    parser.add_argument(
        "--name", action="append", default=[], help="clients reach it by this name or address, too; may be repeated"
    )
    parser.add_argument(
        "--local",
        action="store_true",
        help="serve this machine only, in plain text, for whoever may read `local-token` in the state directory",
    )
    parser.add_argument("--init", action="store_true", help="make authority and first admin, say how to log in, end")
    parser.add_argument(
        "--log-limit",
        type=_positive,
        default=DEFAULT_KEPT_LOG,
        metavar="MIB",
        help="kept of what one execution prints (%(default)s); agents have a limit of their own",
    )
    parser.add_argument(
        "--bundle-signer",
        action="append",
        default=[],
        type=_fingerprint,
        metavar="sha256:…",
        help="take only bundles that this key has signed (`muster bundles keygen` shows it); may be repeated",
    )
    parser.add_argument(
        "--log-quota", type=_positive, default=NO_LOG_QUOTA, metavar="MIB", help="kept of all logs together (no limit)"
    )
    parser.add_argument(
        "--log-quota-project",
        type=_positive,
        default=NO_LOG_QUOTA,
        metavar="MIB",
        help="kept of all logs of a project (no limit)",
    )
    parser.add_argument(
        "--attachments-per-account",
        type=_positive,
        default=ACCOUNT_ATTACHMENTS,
        metavar="N",
        help="attachments that one account has open at once; ten times as many connections beside (%(default)s)",
    )
    parser.add_argument(
        "--console-url",
        type=_console_url,
        default="",
        metavar="URL",
        help="how browsers reach the console, like https://muster.example.org: people sign in there, and nowhere else",
    )
    parser.add_argument("--ready-file", type=Path, help="write the bound address there once serving")
    parser.add_argument(
        "--secrets-key",
        choices=["keep", "rotate", "replace"],
        default="keep",
        help="at this start: seal all secrets with a new key, or forget those whose key is lost (%(default)s)",
    )
    parser.add_argument(
        "--audit-keep", type=_positive, metavar="DAYS", help="remove older entries of the audit log (kept for ever)"
    )
    parser.add_argument(
        "--audit-file", type=Path, metavar="FILE", help="write the audit log there, too, as JSON lines, as it happens"
    )
    parser.add_argument(
        "--audit-syslog",
        type=_syslog_target,
        metavar="WHERE",
        help="hand the audit log to a syslog, too: unix:/dev/log, udp://HOST:PORT or tcp://HOST:PORT",
    )
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    add_format_option(parser, environ)
    add_arguments(parser)
    given = parse_with_file(parser, arguments)
    if given.local and (given.listen_agents or given.init):
        parser.error("--local has no door for agents of other machines and nobody to log in")
    host, _, port = given.listen.rpartition(":")
    if not host or not port.isdecimal():
        parser.error(f"--listen {given.listen} is no address like 0.0.0.0:7460")
    after = int(port) + 1 if int(port) else 0
    settings = {key: value for key, value in without_login(vars(given)).items() if key not in _RENAMED}
    settings["login"] = login_settings(parser, vars(given))
    settings["listen_agents"] = given.listen_agents or f"{host}:{after}"
    signers = frozenset(given.bundle_signer)
    return CoordinatorSettings(**settings, names=tuple(given.name), bundle_signers=signers)


def _fingerprint(text: str) -> str:
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no fingerprint like sha256: and 64 digits")
    return text


def _console_url(text: str) -> str:
    url = urlsplit(text.rstrip("/"))
    if not permitted_url(text) or url.path or url.query or url.fragment:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no URL like https://muster.example.org, without a path (plain http only on 127.0.0.1)"
        )
    return url.geturl()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _syslog_target(text: str) -> SyslogTarget:
    if text.startswith("unix:/"):
        return SyslogTarget(scheme="unix", path=text.removeprefix("unix:"))
    scheme, slashes, place = text.partition("://")
    host, _, port = place.rpartition(":")
    if (
        not slashes
        or scheme not in {"udp", "tcp"}
        or not host
        or not port.isdecimal()
        or not 0 < int(port) <= _LAST_PORT
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is none of unix:/dev/log, udp://HOST:PORT and tcp://HOST:PORT")
    return SyslogTarget(scheme=scheme, host=host.strip("[]"), port=int(port))
