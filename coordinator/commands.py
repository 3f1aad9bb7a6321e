"""The commands of `muster-coordinator` beside serving: they do one thing to a state directory and end."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from coordinator.backup.checking import check_state
from coordinator.backup.making import BackupWish, make_backup
from coordinator.backup.manifest import DATABASE, BackupManifest, KeyKeeping
from coordinator.backup.progress import BackupProgress
from coordinator.backup.restoring import Restored, RestoreWish, restore
from coordinator.clock import wall_time
from coordinator.fleet.files import FleetFiles
from coordinator.fleet.put_aside import PUT_ASIDE, put_aside
from coordinator.settings import default_state
from coordinator.store.directory import StateDirectory
from muster.daemon.journal import configure
from muster.daemon.refusal import refusing
from muster.domain.errors import MusterError
from muster.domain.quantity import moment_text

OperatorCommand = Callable[[argparse.Namespace], int]

_INTERRUPTED = 130
_TERMINATED = 143


def is_command(arguments: Sequence[str]) -> bool:
    """Whether a command line names a command; else it has options, and the coordinator serves."""
    return bool(arguments) and arguments[0] in COMMANDS


def run_command(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Carry out the command; its exit status. Exits with a message where it cannot be."""
    given = _parser(environ).parse_args(arguments)
    os.umask(0o077)
    configure("warning")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that nothing half is left
    try:
        with refusing(f"muster-coordinator {given.command}"):
            return COMMANDS[given.command](given)
    except KeyboardInterrupt:
        sys.stderr.write(f"muster-coordinator {given.command}: interrupted; nothing of it is left\n")
        return _INTERRUPTED
    return 1


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="muster-coordinator")
    commands = parser.add_subparsers(dest="command", required=True)
    backup = commands.add_parser("backup", help="write the state into one file, also while the coordinator runs")
    backup.add_argument("file", type=Path, help="the backup; replaced if it is there")
    backup.add_argument("--without-logs", action="store_true", help="leave the logs of executions out")
    backup.add_argument("--with-bundles", action="store_true", help="take the bundles along")
    backup.add_argument("--keys", type=Path, metavar="FILE", help="put the keys of the fleet into a file of their own")
    backup.add_argument("--passphrase-file", type=Path, metavar="FILE", help="seal the keys with its first line")
    again = commands.add_parser("restore", help="put a backup into an empty state directory, all of it or nothing")
    again.add_argument("file", type=Path, help="the backup")
    again.add_argument("--keys", type=Path, metavar="FILE", help="the keys, where they are in a file of their own")
    again.add_argument("--passphrase-file", type=Path, metavar="FILE", help="opens the keys, where they are sealed")
    again.add_argument("--revoke-tokens", action="store_true", help="revoke all tokens; an admin gets a new one")
    again.add_argument(
        "--revoke-tokens-after", type=_time, metavar="TIME", help="revoke those made from then on (2026-11-23T01:00Z)"
    )
    again.add_argument("--dry-run", action="store_true", help="verify the backup and say what it has")
    check = commands.add_parser("check", help="look at database, logs and keys; exit status 1 if something is wrong")
    check.add_argument("--quick", action="store_true", help="trust indexes, and do not read logs")
    check.add_argument("-o", "--output", choices=["text", "json"], default="text")
    anew = commands.add_parser("start-anew", help="put all that a fleet left aside, so that a new one begins")
    moved = commands.add_parser("moved", help="say that this state directory was moved here, and is used nowhere else")
    for each in (backup, again, check, anew, moved):
        each.add_argument("--state", type=Path, default=default_state(environ), help="state directory (%(default)s)")
    return parser


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time like 2026-11-23T01:00Z") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _backup(given: argparse.Namespace) -> int:
    wish = BackupWish(
        file=given.file,
        logs=not given.without_logs,
        bundles=given.with_bundles,
        keys_file=given.keys,
        passphrase_file=given.passphrase_file,
    )
    manifest = make_backup(StateDirectory(given.state), wish, wall_time(), BackupProgress(sys.stderr, "backup"))
    _say(f"backup: {given.file}, {given.file.stat().st_size} bytes", *_contents(manifest, given.keys))
    return 0


def _restore(given: argparse.Namespace) -> int:
    wish = RestoreWish(
        file=given.file,
        keys_file=given.keys,
        passphrase_file=given.passphrase_file,
        revoke=given.revoke_tokens or given.revoke_tokens_after is not None,
        revoke_after=None if given.revoke_tokens else given.revoke_tokens_after,
        look_only=given.dry_run,
    )
    directory, progress = StateDirectory(given.state), BackupProgress(sys.stderr, "restore")
    if given.dry_run:
        done = restore(directory, wish, wall_time(), progress)
    else:
        with directory.lock():
            done = restore(directory, wish, wall_time(), progress)
    _say(f"backup: {given.file}, whole", *_contents(done.manifest, given.keys), *_outcome(done, directory))
    return 0


def _contents(manifest: BackupManifest, keys_file: Path | None) -> Iterator[str]:
    yield f"fleet:  {manifest.fleet}, as it was at {moment_text(manifest.made_at)} (Muster {manifest.muster})"
    sizes = {part.name: part.size for part in manifest.parts}
    logs = [size for name, size in sizes.items() if name.endswith(".cri")]
    bundles = [size for name, size in sizes.items() if name.startswith("bundles/")]
    yield f"has:    the database, {sizes.get(DATABASE, 0)} bytes, schema {manifest.schema}"
    yield f"        {len(logs)} logs, {sum(logs)} bytes"
    if bundles:
        yield f"        {len(bundles)} bundles, {sum(bundles)} bytes"
    match manifest.keys:
        case KeyKeeping.PLAIN:
            yield "        the keys of the fleet, readable: keep this file as safe as the coordinator itself"
        case KeyKeeping.SEALED:
            yield "        the keys of the fleet, sealed: without the passphrase this backup is worth nothing"
        case KeyKeeping.APART:
            yield f"not:    the keys of the fleet, which are in {keys_file or 'a file of their own'}: keep both"
    for each in manifest.left_out:
        yield f"not:    {each}"


def _outcome(done: Restored, directory: StateDirectory) -> Iterator[str]:
    if done.wakes is None:
        yield "nothing was restored"
        return
    wakes, revoked = done.wakes, done.revoked
    yield f"restored into {directory.path}; nothing runs yet"
    yield f"counts again: {len(wakes.jobs)} jobs that had not ended, {wakes.nodes} nodes"
    if revoked is None:
        yield (
            f"counts again: {wakes.tokens} tokens ({wakes.logins} of them logins), {wakes.join_tokens} join tokens, "
            "also those that were revoked after the backup"
        )
        yield "              (`restore --revoke-tokens` into an empty directory revokes them all)"
    else:
        yield f"revoked: {revoked.tokens} tokens, {revoked.join_tokens} join tokens"
        if revoked.admin:
            yield f"log in as {revoked.admin} with the token in {directory.path / 'admin-token'}"
    yield "nodes and access that were taken away after the backup are back: see `muster nodes` and `muster users`"


def _check(given: argparse.Namespace) -> int:
    directory = StateDirectory(given.state)
    if not directory.path.is_dir():
        raise MusterError(f"there is no state directory {directory.path}")
    problems = check_state(directory, wall_time(), BackupProgress(sys.stderr, "check"), quick=given.quick)
    if given.output == "json":
        _say(json.dumps({"state": str(directory.path), "problems": [asdict(each) for each in problems]}, indent=1))
    else:
        _say(*(f"{each.part}: {each.text}" for each in problems), *(() if problems else ("all is well",)))
    return 1 if problems else 0


def _start_anew(given: argparse.Namespace) -> int:
    directory = StateDirectory(given.state)
    with directory.lock():
        kept = {"coordinator.lock", PUT_ASIDE}
        left = [path for path in sorted(directory.path.iterdir()) if path.name not in kept and path.suffix != ".toml"]
        place = put_aside(directory.path, left, wall_time())
    where = f"all of it is in {place}" if place else "there was nothing"
    _say(f"the next start in {directory.path} begins a new fleet; {where}")
    return 0


def _moved(given: argparse.Namespace) -> int:
    directory = StateDirectory(given.state)
    with directory.lock():
        FleetFiles(directory).accept_place()
    _say(f"the fleet is at home in {directory.path}; a coordinator on a copy elsewhere must not be started")
    return 0


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


COMMANDS: Mapping[str, OperatorCommand] = {
    "backup": _backup,
    "restore": _restore,
    "check": _check,
    "start-anew": _start_anew,
    "moved": _moved,
}
