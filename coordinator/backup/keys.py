"""The keys of a fleet as one text for its backup, plain or sealed with a passphrase."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from coordinator.backup.manifest import BackupError
from muster.trust.sealing import SealError, seal, sealing_key_of, unseal

SALT_BYTES = 16
_PATTERNS = ("fleet.json", "fleet.key", "admin-token", "local-token", "trust/*")
_ALLOWED = re.compile(r"(trust/)?[a-z0-9][a-z0-9_.-]{0,100}")
_BOUND_TO = b"keys in a backup of fleet "


def collect_keys(state: Path) -> bytes:
    """All files of a state directory that its database needs and must not hold; raises BackupError."""
    found = {
        str(path.relative_to(state)): path
        for pattern in _PATTERNS
        for path in state.glob(pattern)
        if path.is_file() and not path.name.endswith(".new")
    }
    try:
        return json.dumps({name: path.read_bytes().hex() for name, path in sorted(found.items())}).encode()
    except OSError as error:
        raise BackupError(
            f"cannot read {error.filename}: {error.strerror}; run this as the coordinator's user"
        ) from error


def read_keys(content: bytes) -> Mapping[str, bytes]:
    """The files by their paths in the state directory; raises BackupError."""
    try:
        found = {str(name): bytes.fromhex(text) for name, text in json.loads(content).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise BackupError("these are no keys of a backup") from error
    if not all(_ALLOWED.fullmatch(name) for name in found):
        raise BackupError("the keys of the backup name files outside of the state directory")
    return found


def seal_keys(content: bytes, passphrase: str, fleet: str) -> tuple[bytes, bytes]:
    """The keys, for whoever has the passphrase, and the salt that goes with it."""
    salt = os.urandom(SALT_BYTES)
    return seal(sealing_key_of(passphrase, salt), content, _BOUND_TO + fleet.encode()), salt


def open_keys(sealed: bytes, passphrase: str, salt: bytes, fleet: str) -> bytes:
    """The keys that were sealed; raises BackupError for another passphrase."""
    try:
        return unseal([sealing_key_of(passphrase, salt)], sealed, _BOUND_TO + fleet.encode())
    except SealError as error:
        raise BackupError("the passphrase is not the one with which the keys in this backup were sealed") from error


def read_passphrase(file: Path) -> str:
    """The first line of a file; raises BackupError for one that cannot be read or is empty."""
    try:
        text = file.read_text().partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"cannot read the passphrase in {file}") from error
    if not text:
        raise BackupError(f"{file} holds no passphrase in its first line")
    return text
