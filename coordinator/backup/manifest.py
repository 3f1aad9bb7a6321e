"""The list in a backup: what it has, and what it leaves out."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from muster.domain.errors import MusterError

BACKUP_FORMAT = 1
BACKUP_MANIFEST = "MANIFEST.json"
DATABASE = "coordinator.db"
KEYS_PART = "keys"
LARGEST_MANIFEST = 1 << 30

_PLAIN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,200}"
_ALLOWED = re.compile(
    rf"{DATABASE}|{KEYS_PART}|logs/{_PLAIN}/[0-9]+-[0-9]+\.(cri|complete)|bundles/[0-9a-f]{{64}}--{_PLAIN}"
)


class BackupError(MusterError):
    """A backup cannot be made, or a file is none, or is damaged; says what to do."""


class KeyKeeping(StrEnum):
    """Where the keys of the fleet are."""

    PLAIN = "plain"  #: in the backup, for whoever can read the file
    SEALED = "sealed"  #: in the backup, for whoever has the passphrase
    APART = "apart"  #: in a file of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPart:
    """One file of the state directory, or all keys together."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """What a backup says of itself."""

    muster: str
    """Version of the program that made it."""
    schema: str
    """Version of the database's schema."""
    fleet: str
    made_at: datetime
    keys: KeyKeeping
    salt: str = ""
    """What goes with the passphrase, in hexadecimal digits."""
    keys_sha256: str = ""
    """Digest of the keys where they are apart."""
    left_out: tuple[str, ...] = ()
    parts: tuple[BackupPart, ...] = ()

    def written(self) -> bytes:
        """The list as it stands in the file."""
        content = {"format": BACKUP_FORMAT, **asdict(self), "made_at": self.made_at.isoformat()}
        return json.dumps(content, indent=1).encode() + b"\n"


def read_manifest(text: bytes) -> BackupManifest:
    """The list of a backup; raises BackupError for what is none, or would write outside of its directory."""
    try:
        content: Mapping[str, Any] = json.loads(text)
        if content.get("format") != BACKUP_FORMAT:
            raise BackupError(f"the backup has the format {content.get('format')}: take a newer Muster to restore it")
        fields = {name: value for name, value in content.items() if name != "format"}
        fields["made_at"] = datetime.fromisoformat(content["made_at"])
        fields["keys"] = KeyKeeping(content["keys"])
        fields["left_out"] = tuple(map(str, content["left_out"]))
        fields["parts"] = tuple(BackupPart(**each) for each in content["parts"])
        manifest = BackupManifest(**fields)
        foreign = [part.name for part in manifest.parts if not _ALLOWED.fullmatch(part.name)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BackupError(f"the list in the backup cannot be read: {error}") from error
    if foreign or len({part.name for part in manifest.parts}) != len(manifest.parts):
        raise BackupError(
            f"the list in the backup names what belongs in none: {', '.join(foreign[:3]) or 'a part twice'}"
        )
    return manifest
