"""What a start finds of a fleet in a state directory, and whether it fits together; pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

OLDER = ""
"""The fleet id of a database that was written before there were fleet ids."""

_LOG_LOST = (
    "coordinator.db-wal is gone, with what was stored last before the coordinator was killed (if you have opened the "
    "database with another program meanwhile, nothing is lost: remove coordinator.running)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRecord:
    """What the file `fleet.json` says."""

    id: str
    made: bool = False
    """Whether the first start came to its end; until then what is missing is made."""
    key: str = ""
    """Name of the fleet key; says nothing of the key itself."""
    authority: bool = False
    """Whether the fleet has an authority, which `muster up` does without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What lies in a state directory."""

    record: FleetRecord | None = None
    """None: there is no `fleet.json`."""
    database: str | None = None
    """Fleet id in the database, or OLDER; None: the database is missing, empty, or holds no fleet."""
    key: str | None = None
    """Name of the fleet key that is there."""
    keys: str | None = None
    """Fleet id beside the keys in `trust`."""
    certificate: bool = False
    """Whether the certificate of the authority is there."""
    private_key: bool = False
    """Whether the key of the authority is there."""
    other: tuple[str, ...] = ()
    """What else only a fleet leaves: its logs, the token of the first admin."""
    log_lost: bool = False
    """Whether the last coordinator was killed, and the write-ahead log that it left is gone."""
    half_restored: bool = False
    """Whether a restore began here and did not end."""


class Beginning(Enum):
    """How a start goes on."""

    FIRST = "first"
    """Nothing is here: a fleet begins."""
    UPGRADE = "upgrade"
    """A fleet from before there were fleet ids; it gets one."""
    AGAIN = "again"
    """The fleet of before goes on."""


def beginning(found: Evidence) -> Beginning | tuple[str, ...]:
    """How the start goes on, or all that is wrong."""
    if found.half_restored:
        return ("a restore began here and did not end: run it again",)
    if found.log_lost:
        return (_LOG_LOST,)
    problems = tuple(_problems(found))
    if problems:
        return problems
    if found.record is not None:
        return Beginning.AGAIN if found.record.made else Beginning.FIRST
    return Beginning.FIRST if found.database is None else Beginning.UPGRADE


def _problems(found: Evidence) -> Iterator[str]:
    match found.record:
        case None:
            yield from _problems_without_record(found)
        case FleetRecord(made=False):
            if found.database not in {None, OLDER, found.record.id}:
                yield f"coordinator.db is of another fleet ({found.database})"
        case _:
            yield from _problems_with(found.record, found)


def _problems_without_record(found: Evidence) -> Iterator[str]:
    left = [
        *(("fleet.key",) if found.key else ()),
        *(("trust/fleet-id",) if found.keys else ()),
        *(("trust/authority.pem",) if found.certificate else ()),
        *(("trust/authority.key",) if found.private_key else ()),
        *found.other,
    ]
    if found.database is None:
        if left:
            yield f"coordinator.db is missing or empty, but {', '.join(left)} of a fleet are here"
        return
    if found.database != OLDER:
        yield f"fleet.json is missing, but coordinator.db of the fleet {found.database} is here"
    elif found.key is None:
        yield "fleet.key is missing"
    yield from _half_an_authority(found)


def _problems_with(record: FleetRecord, found: Evidence) -> Iterator[str]:
    if found.database is None:
        yield "coordinator.db is missing or empty"
    elif found.database not in {OLDER, record.id}:
        yield f"coordinator.db is of another fleet ({found.database})"
    if found.key is None:
        yield "fleet.key is missing"
    elif found.key != record.key:
        yield "fleet.key is another one"
    if record.authority and not (found.certificate or found.private_key):
        yield "trust/authority.pem and trust/authority.key are missing"
    yield from _half_an_authority(found)
    if record.authority and found.keys is None:
        yield "trust/fleet-id is missing"
    elif found.keys not in {None, record.id}:
        yield f"the keys in trust are of another fleet ({found.keys})"


def _half_an_authority(found: Evidence) -> Iterator[str]:
    if found.certificate and not found.private_key:
        yield "trust/authority.key is missing"
    if found.private_key and not found.certificate:
        yield "trust/authority.pem is missing"
