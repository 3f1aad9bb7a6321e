"""The files by which a state directory shows whose it is, and the look at them when a coordinator starts."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from coordinator.fleet.evidence import Beginning, Evidence, FleetRecord, beginning
from coordinator.fleet.place import StatePlace, copied, place_of_directory
from coordinator.fleet.put_aside import put_aside
from coordinator.store.directory import StateDirectory
from coordinator.store.fleet_row import read_fleet_id, write_fleet_id
from coordinator.store.store import StoreError
from muster.trust.files import read_secret, write_private

RECORD = "fleet.json"
ID_BESIDE_KEYS = "fleet-id"
RESTORING = ".restoring"
"""The directory in which a restore puts everything first."""

_ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """The content of `fleet.json`."""

    record: FleetRecord
    place: StatePlace | None


class FleetFiles:
    """Identity of the fleet whose state lies in a directory; to be used while the directory is locked."""

    def __init__(self, directory: StateDirectory) -> None:
        self._directory = directory
        self._state = directory.path
        self._record: FleetRecord | None = None

    @property
    def id(self) -> str:
        """The fleet id; known once the start was allowed."""
        assert self._record is not None
        return self._record.id

    def allow_start(self, now: datetime) -> None:
        """Raise StoreError unless what lies here is one whole fleet, at its place, or nothing."""
        if not self._log_lost:
            self._directory.running.unlink(missing_ok=True)  # it speaks of the last coordinator, not of this one
        found, written = self.evidence(), self._written()
        match beginning(found):
            case Beginning.AGAIN:
                assert written is not None
                self._require_place(written)
                self._record = written.record
                self._write(self._record)
            case Beginning.FIRST | Beginning.UPGRADE:
                self._record = written.record if written else FleetRecord(id=secrets.token_hex(_ID_BYTES))
                self._write(self._record)
                if found.certificate != found.private_key:  # an earlier first start ended between the two
                    trust = self._state / "trust"
                    put_aside(self._state, [trust / "authority.pem", trust / "authority.key"], now)
            case problems:
                raise StoreError(
                    f"the state directory {self._state} does not hold one whole fleet: {'; '.join(problems)}. Nothing "
                    "was changed. Put back what is missing (`muster-coordinator restore`, docs/backup.md). Or begin "
                    f"a new fleet on purpose: `muster-coordinator start-anew --state {self._state}` puts all that is "
                    "left aside, and the next start is a first one"
                )

    def have_begun(self, *, authority: bool) -> None:
        """Note that database and keys are there, so that a later start misses what is gone."""
        assert self._record is not None
        if read_fleet_id(self._directory.database) != self.id:
            write_fleet_id(self._directory.database, self.id)
        if authority:
            beside = self._state / "trust" / ID_BESIDE_KEYS
            if not beside.exists():
                write_private(beside, f"{self.id}\n".encode())
        key = _key_name(self._directory.fleet_key())
        begun = replace(self._record, made=True, key=key, authority=authority or self._record.authority)
        if begun != self._record:
            self._write(begun)

    def accept_place(self) -> None:
        """Have the fleet be at home here from now on, wherever it was; raises StoreError where there is none."""
        written = self._written()
        if written is None:
            raise StoreError(f"{self._state} holds no {RECORD}: no fleet has begun there")
        self._write(written.record)

    def evidence(self) -> Evidence:
        """What lies in the directory; raises StoreError for what cannot be read."""
        state, trust, database = self._state, self._state / "trust", self._directory.database
        written, key, beside = self._written(), state / "fleet.key", trust / ID_BESIDE_KEYS
        others = (("admin-token", state / "admin-token"), ("logs", self._directory.logs))
        half_restored = (state / RESTORING).exists()
        look_inside = not half_restored and not self._log_lost
        return Evidence(
            record=written.record if written else None,
            database=read_fleet_id(database) if look_inside else None,
            key=_key_name(key.read_bytes()) if key.exists() else None,
            keys=read_secret(beside) if beside.exists() else None,
            certificate=(trust / "authority.pem").exists(),
            private_key=(trust / "authority.key").exists(),
            other=tuple(name for name, path in others if _holds_anything(path)),
            log_lost=self._log_lost,
            half_restored=half_restored,
        )

    @property
    def _log_lost(self) -> bool:
        database = self._directory.database
        wal = database.with_name(f"{database.name}-wal")
        return self._directory.running.exists() and database.exists() and not wal.exists()

    def _require_place(self, written: _Written) -> None:
        before, now = written.place, place_of_directory(self._state)
        if before is None:
            return
        reason = copied(before, now, original_there=_fleet_at(Path(before.path)) == written.record.id)
        if reason:
            raise StoreError(
                f"the state directory {self._state} was not started here before: {reason}. Two coordinators of one "
                "fleet would each have half of it. If the other one is not used any more, say so once: "
                f"`muster-coordinator moved --state {self._state}`"
            )

    def _written(self) -> _Written | None:
        return _read(self._state / RECORD)

    def _write(self, record: FleetRecord) -> None:
        content = asdict(record) | {"place": asdict(place_of_directory(self._state))}
        write_private(self._state / RECORD, json.dumps(content, indent=1).encode() + b"\n")
        self._record = record


def _read(file: Path) -> _Written | None:
    try:
        content: Mapping[str, Any] = json.loads(file.read_bytes())
        place = content.get("place")
        fields = {name: value for name, value in content.items() if name in FleetRecord.__slots__}
        return _Written(record=FleetRecord(**fields), place=StatePlace(**place) if place else None)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"{file} cannot be read: {error}. Put a backup in its place (see docs/backup.md)") from error


def _fleet_at(state: Path) -> str:
    try:
        written = _read(state / RECORD)
    except StoreError:
        return ""
    return written.record.id if written else ""


def _key_name(key: bytes) -> str:
    return hashlib.sha256(b"name of a fleet key\0" + key).hexdigest()[: 2 * _ID_BYTES]


def _holds_anything(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()
