"""Puts a backup into an empty state directory: all of it or nothing, after every digest was looked at."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coordinator.backup.archive import extract, part_content, verified
from coordinator.backup.keys import open_keys, read_keys, read_passphrase
from coordinator.backup.manifest import DATABASE, KEYS_PART, BackupError, BackupManifest, BackupPart, KeyKeeping
from coordinator.backup.progress import BackupProgress
from coordinator.backup.revoking import Revoked, Wakes, revoke_tokens, what_wakes
from coordinator.core.records import KeepStoryEvent
from coordinator.fleet.files import RECORD, RESTORING, FleetFiles
from coordinator.store.directory import StateDirectory
from coordinator.store.records.sql import SqlStore
from coordinator.store.trust.sql import SqlTrust
from muster.domain.event import FleetEvent, FleetEventKind
from muster.trust.files import sync_directory, write_private

_STAYS = frozenset({"coordinator.lock", "put-aside", "lost+found"})
"""Names that an empty state directory may have, beside files of options."""
_BELONGS = (DATABASE, "logs", "bundles", "trust", "fleet.key", "admin-token", "local-token", RECORD)
"""Names that a restore makes; what says that a fleet is here comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreWish:
    """What somebody wants of a restore."""

    file: Path
    keys_file: Path | None = None
    passphrase_file: Path | None = None
    revoke: bool = False
    """Whether tokens are revoked."""
    revoke_after: datetime | None = None
    """Only those made from then on; None: all."""
    look_only: bool = False
    """Verify the backup and change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore has done, for the person who asked for it."""

    manifest: BackupManifest
    wakes: Wakes | None = None
    """What counts again; None: nothing was restored."""
    revoked: Revoked | None = None


def restore(directory: StateDirectory, wish: RestoreWish, now: datetime, progress: BackupProgress) -> Restored:
    """Verify a backup and put it into the directory, which is locked; raises MusterError, and nothing has changed."""
    manifest = verified(wish.file, progress)
    keys = _keys(manifest, wish)
    if wish.look_only:
        return Restored(manifest=manifest)
    staging = directory.path / RESTORING
    _require_empty(directory.path, staging)
    try:
        staging.mkdir(mode=0o700)
        staged = StateDirectory(staging)
        extract(wish.file, manifest, lambda part: _target(staging, part), progress)
        for name, content in keys.items():
            (staging / name).parent.mkdir(mode=0o700, exist_ok=True)
            write_private(staging / name, content)
        wakes, revoked = _prepared(staged, manifest, wish, now)
        _give_to_owner_of(directory.path, staging)
        for name in _BELONGS:
            if (staging / name).exists():
                (staging / name).rename(directory.path / name)
        sync_directory(directory.path)
    except BaseException as error:
        _clear(directory.path, staging)
        if isinstance(error, OSError):
            raise BackupError(f"cannot restore into {directory.path}: {error.strerror}; nothing was changed") from error
        raise
    FleetFiles(directory).accept_place()
    shutil.rmtree(staging)
    return Restored(manifest=manifest, wakes=wakes, revoked=revoked)


def _prepared(
    staged: StateDirectory, manifest: BackupManifest, wish: RestoreWish, now: datetime
) -> tuple[Wakes, Revoked | None]:
    """Bring the database to this version, note where it comes from, and see what it would wake."""
    store, trust = SqlStore.open(staged.database), SqlTrust.open(staged.database)
    try:
        made = manifest.made_at.isoformat(timespec="seconds")
        told = FleetEvent(kind=FleetEventKind.RESTORED, at=now, text=f"as the fleet was at {made}")
        store.commit([KeepStoryEvent(event=told)])
        wakes = what_wakes(store.load(), trust.load_trust(), now)
        if not wish.revoke:
            return wakes, None
        return wakes, revoke_tokens(trust, staged.path, now, wish.revoke_after)
    finally:
        trust.close()
        store.close()


def _keys(manifest: BackupManifest, wish: RestoreWish) -> Mapping[str, bytes]:
    match manifest.keys:
        case KeyKeeping.APART:
            if wish.keys_file is None:
                raise BackupError("the keys of this backup are in a file of their own: name it with --keys FILE")
            try:
                content = wish.keys_file.read_bytes()
            except OSError as error:
                raise BackupError(f"cannot read {wish.keys_file}: {error.strerror}") from error
            if hashlib.sha256(content).hexdigest() != manifest.keys_sha256:
                raise BackupError(f"{wish.keys_file} does not hold the keys of this backup, or was changed")
        case KeyKeeping.SEALED:
            if wish.passphrase_file is None:
                raise BackupError(
                    "the keys of this backup are sealed: name the file with the passphrase (--passphrase-file FILE)"
                )
            sealed = part_content(wish.file, KEYS_PART)
            passphrase = read_passphrase(wish.passphrase_file)
            content = open_keys(sealed, passphrase, bytes.fromhex(manifest.salt), manifest.fleet)
        case KeyKeeping.PLAIN:
            content = part_content(wish.file, KEYS_PART)
    keys = read_keys(content)
    if RECORD not in keys:
        raise BackupError("the keys of this backup are not whole: take another backup")
    return keys


def _target(staging: Path, part: BackupPart) -> Path | None:
    return None if part.name == KEYS_PART else staging / part.name


def _require_empty(state: Path, staging: Path) -> None:
    if staging.exists():  # a restore was killed: the directory was empty when it began
        _clear(state, staging)
    found = sorted(path.name for path in state.iterdir() if path.name not in _STAYS and path.suffix != ".toml")
    if found:
        raise BackupError(
            f"{state} is not empty, it has {', '.join(found[:5])}: name another directory, or put what is there aside "
            f"with `muster-coordinator start-anew --state {state}`"
        )


def _clear(state: Path, staging: Path) -> None:
    """Take back what a restore has made; what marks it as unfinished goes last."""
    for name in _BELONGS:
        path = state / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(staging, ignore_errors=True)


def _give_to_owner_of(state: Path, staging: Path) -> None:
    """Have root restore for the coordinator's user."""
    owner = state.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        for path in (state / "coordinator.lock", *staging.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
