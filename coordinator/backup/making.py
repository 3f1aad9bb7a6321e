"""Makes a backup of a state directory, also while a coordinator works in it."""

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

import muster
from coordinator.backup.archive import ArchiveWriter, fresh_file
from coordinator.backup.keys import collect_keys, read_passphrase, seal_keys
from coordinator.backup.manifest import DATABASE, KEYS_PART, BackupError, BackupManifest, KeyKeeping
from coordinator.backup.progress import BackupProgress
from coordinator.store.database_copy import copy_database
from coordinator.store.directory import StateDirectory
from coordinator.store.fleet_row import open_readonly
from coordinator.store.logs.file import StoredLogFile


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupWish:
    """What somebody wants of a backup."""

    file: Path
    logs: bool = True
    bundles: bool = False
    keys_file: Path | None = None
    """Where the keys go; None: into the backup."""
    passphrase_file: Path | None = None
    """File with the passphrase that seals the keys; None: they are not sealed."""


def make_backup(directory: StateDirectory, wish: BackupWish, now: datetime, progress: BackupProgress) -> BackupManifest:
    """Write the backup; the list of what it has. Raises MusterError, and leaves nothing of it."""
    if wish.keys_file is not None and wish.passphrase_file is not None:
        raise BackupError("keys go into a file of their own (--keys) or are sealed (--passphrase-file), not both")
    copy = wish.file.with_name(f".{wish.file.name}.{os.getpid()}.database")
    try:
        copy_database(directory.database, copy, lambda done, whole: progress.tell("copying the database", done, whole))
        with closing(open_readonly(copy, alone=True)) as database:
            fleet, schema = (
                _one(database.execute("SELECT id FROM fleet")),
                _one(database.execute("SELECT version_num FROM alembic_version")),
            )
            jobs = [str(job) for (job,) in database.execute("SELECT id FROM jobs ORDER BY sequence")]
        if not fleet:
            raise BackupError(f"{directory.database} belongs to no fleet: start this version of the coordinator once")
        keys = collect_keys(directory.path)
        keeping, shown, salt = _kept(keys, wish, fleet)
        with fresh_file(wish.file) as file:
            archive = ArchiveWriter(file, progress)
            with copy.open("rb") as content:
                archive.add(DATABASE, content, os.fstat(content.fileno()).st_size)
            for name, path in _files(directory, wish, jobs):
                _add_file(archive, name, path)
            if keeping is not KeyKeeping.APART:
                archive.add(KEYS_PART, io.BytesIO(shown), len(shown))
            manifest = BackupManifest(
                muster=muster.__version__,
                schema=schema,
                fleet=fleet,
                made_at=now,
                keys=keeping,
                salt=salt.hex(),
                keys_sha256=hashlib.sha256(keys).hexdigest() if keeping is KeyKeeping.APART else "",
                left_out=tuple(_left_out(wish, keeping)),
                parts=tuple(archive.parts),
            )
            archive.end(manifest)
            if wish.keys_file is not None:
                with fresh_file(wish.keys_file) as apart:
                    apart.write(keys)
        return manifest
    finally:
        copy.unlink(missing_ok=True)


def _kept(keys: bytes, wish: BackupWish, fleet: str) -> tuple[KeyKeeping, bytes, bytes]:
    if wish.keys_file is not None:
        return KeyKeeping.APART, b"", b""
    if wish.passphrase_file is None:
        return KeyKeeping.PLAIN, keys, b""
    sealed, salt = seal_keys(keys, read_passphrase(wish.passphrase_file), fleet)
    return KeyKeeping.SEALED, sealed, salt


def _files(directory: StateDirectory, wish: BackupWish, jobs: list[str]) -> Iterator[tuple[str, Path]]:
    """Logs of the jobs that the copy of the database knows, and bundles; the names that they have in the backup."""
    if wish.logs:
        for job in jobs:
            place = directory.logs / job
            names = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
            # A marker that comes later belongs to a log of which the copy may lack the end.
            markers = [name for name in names if name.endswith(".complete")]
            for name in (*markers, *(name for name in names if name.endswith(".cri"))):
                yield f"logs/{job}/{name}", place / name
    if wish.bundles and directory.bundles.is_dir():
        for path in sorted(directory.bundles.glob("*--*")):
            yield f"bundles/{path.name}", path


def _add_file(archive: ArchiveWriter, name: str, path: Path) -> None:
    try:
        with path.open("rb") as content:
            archive.add(
                name, content, _whole_lines(content) if name.endswith(".cri") else os.fstat(content.fileno()).st_size
            )
    except FileNotFoundError:
        return  # its job was deleted meanwhile


def _whole_lines(content: IO[bytes]) -> int:
    return StoredLogFile.of(content.fileno()).end


def _left_out(wish: BackupWish, keeping: KeyKeeping) -> Iterator[str]:
    if not wish.logs:
        yield "logs of executions (--without-logs)"
    if not wish.bundles:
        yield "bundles: upload them again (--with-bundles takes them along)"
    if keeping is KeyKeeping.APART:
        yield "keys of the fleet: they are in a file of their own (--keys)"
    yield "tickets.key: another one is made, and attachments that are open meanwhile end"
    yield "what the depot keeps: jobs whose code lies there alone cannot begin anew"
    yield "settings: the unit's options and its file of options"
    yield "what lies on nodes: programs that run, and output that the coordinator does not have yet"
    yield "what was put aside, and copies of the database from before migrations"


def _one(found: object) -> str:
    row = found.fetchone()  # type: ignore[attr-defined]  # a cursor, as this database is SQLite
    return str(row[0]) if row else ""
