"""Looks at a whole state directory: database, logs, keys, and that they belong together; changes nothing."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coordinator.backup.progress import BackupProgress
from coordinator.core.records import Attempt, Execution, Job, Node
from coordinator.fleet.evidence import Beginning, beginning
from coordinator.fleet.files import FleetFiles
from coordinator.store.codec import decode
from coordinator.store.directory import FLEET_SECRET_BYTES, StateDirectory
from coordinator.store.fleet_row import open_readonly
from coordinator.store.logs.file import StoredLogFile, damaged_lines
from coordinator.store.schema import VERSION
from coordinator.store.schema_version import FIRST
from muster.domain.errors import MusterError
from muster.trust.certificates import matches_key, verify
from muster.trust.sealing import SealingKey, key_name

_RECORDS: Mapping[str, Callable[[str], object]] = {
    "jobs": lambda body: decode(Job, body),
    "attempts": lambda body: decode(Attempt, body),
    "executions": lambda body: decode(Execution, body),
    "nodes": lambda body: decode(Node, body),
}
_MOST = 20
"""Problems of one kind that are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateProblem:
    """Something that is wrong in a state directory."""

    part: str
    """`fleet`, `database`, `logs` or `keys`."""
    text: str


def check_state(
    directory: StateDirectory, now: datetime, progress: BackupProgress, *, quick: bool = False
) -> list[StateProblem]:
    """Everything that is wrong; `quick` trusts the indexes and does not read logs."""
    problems = [StateProblem(part="fleet", text=text) for text in _fleet(directory)]
    if directory.database.exists():
        problems += _limited("database", _database(directory.database, progress, quick=quick))
        if not quick:
            problems += _limited("logs", _logs(directory, progress))
    problems += [StateProblem(part="keys", text=text) for text in _keys(directory, now)]
    return problems


def _limited(part: str, found: Iterator[str]) -> list[StateProblem]:
    texts = list(found)
    more = [f"… and {len(texts) - _MOST} more"] if len(texts) > _MOST else []
    return [StateProblem(part=part, text=text) for text in (*texts[:_MOST], *more)]


def _fleet(directory: StateDirectory) -> Iterator[str]:
    try:
        found = beginning(FleetFiles(directory).evidence())
    except MusterError as error:
        yield str(error)
        return
    if found is Beginning.FIRST:
        yield "no fleet has begun here"
    elif isinstance(found, tuple):
        yield from found


def _database(database: Path, progress: BackupProgress, *, quick: bool) -> Iterator[str]:
    size = database.stat().st_size
    try:
        with closing(open_readonly(database)) as connection:
            progress.tell("checking the database", 0, size)
            version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            if version is None or version[0] != VERSION:
                shown = version[0] if version else "none"
                remedy = (
                    "no program of today reads it" if shown < FIRST else "start this program once, or take a newer one"
                )
                yield f"it has the schema {shown}, this program {VERSION}; {remedy}"
            words = "quick_check" if quick else "integrity_check"
            for (text,) in connection.execute(f"PRAGMA {words}({_MOST})"):
                if text != "ok":
                    yield str(text)
            for row in connection.execute("PRAGMA foreign_key_check"):
                yield f"a row of {row[0]} refers to one of {row[2]} that is not there"
            for table, read in _RECORDS.items():
                for rowid, body in connection.execute(f"SELECT rowid, body FROM {table}"):  # noqa: S608 - names above
                    try:
                        read(body)
                    except ValueError as error:
                        yield f"row {rowid} of {table} cannot be read: {error}"
    except sqlite3.Error as error:
        yield f"it cannot be read: {error}"


def _logs(directory: StateDirectory, progress: BackupProgress) -> Iterator[str]:
    """Lines that are no records, logs that end within a line, and complete ones that are not there."""
    try:
        with closing(open_readonly(directory.database)) as connection:
            complete = {
                str(name): f"{job}/{attempt}-{rank}"
                for name, job, attempt, rank in connection.execute(
                    "SELECT id, job, attempt, rank FROM executions WHERE body ->> '$.log_kept'"
                )
            }
    except sqlite3.Error:
        return  # said already
    for name, place in sorted(complete.items()):
        if not (directory.logs / f"{place}.cri").exists() and not (directory.logs / f"{place}.complete").exists():
            yield f"the log of {name} was complete, and is gone"
    files = sorted(directory.logs.rglob("*.cri")) if directory.logs.is_dir() else []
    for number, file in enumerate(files):
        progress.tell(f"checking {len(files)} logs", number << 20, len(files) << 20)
        try:
            with file.open("rb") as content:
                whole = StoredLogFile.of(content.fileno())
                cut = content.seek(0, 2) - whole.end
                damaged = damaged_lines(whole)
        except OSError as error:
            yield f"{file}: {error.strerror}"
            continue
        if damaged:
            yield f"{file}: {damaged} lines are damaged"
        if cut and file.with_suffix(".complete").exists():
            yield f"{file}: it is complete, but ends within a line"


def _keys(directory: StateDirectory, now: datetime) -> Iterator[str]:
    trust, fleet_key = directory.path / "trust", directory.path / "fleet.key"
    try:
        if fleet_key.exists() and fleet_key.stat().st_size != FLEET_SECRET_BYTES:
            yield f"{fleet_key} does not hold {FLEET_SECRET_BYTES} bytes"
        certificate, key = trust / "authority.pem", trust / "authority.key"
        if certificate.exists() and key.exists():
            verify(certificate.read_bytes(), certificate.read_bytes(), now)
            if not matches_key(certificate.read_bytes(), key.read_bytes()):
                yield f"{key} is not the key of {certificate}"
        yield from _secrets_key(directory, trust / "secrets.key")
    except (MusterError, OSError, ValueError) as error:
        yield str(error)
    for path in (directory.path, directory.database, fleet_key, directory.path / "tickets.key", *trust.glob("*.key")):
        if path.exists() and path.stat().st_mode & 0o077:
            yield f"{path} can be used by others than its owner"


def _secrets_key(directory: StateDirectory, file: Path) -> Iterator[str]:
    names = {SealingKey(bytes.fromhex(line)).name for line in file.read_text().splitlines()} if file.exists() else set()
    try:
        with closing(open_readonly(directory.database)) as connection:
            rows = connection.execute("SELECT project, name, sealed FROM secrets").fetchall()
    except sqlite3.Error:
        return
    for project, name, sealed in rows:
        if key_name(sealed) not in names:
            yield f"the secret {name} of project {project} is sealed with a key that is not in {file}"
