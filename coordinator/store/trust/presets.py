"""The versions of presets in the database."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select

from coordinator.store.trust.schema import presets
from coordinator.trust.records import RemovedPreset
from muster.domain.fleet.policies.preset import Preset, PresetId, PresetKind


def newest(connection: Connection) -> Sequence[Preset | RemovedPreset]:
    """The newest version of each preset, also of those that were removed."""
    key = (presets.c.project, presets.c.kind, presets.c.name)
    last = select(*key, func.max(presets.c.version).label("version")).group_by(*key).subquery()
    same = and_(*(presets.c[name] == last.c[name] for name in ("project", "kind", "name", "version")))
    return [_preset(dict(row)) for row in connection.execute(select(presets).join(last, same)).mappings()]


def versions(connection: Connection, which: PresetId, version: int | None = None) -> Sequence[Preset]:
    """All versions of a preset, the newest first, or the one with a number."""
    wanted = select(presets).where(*_is(which)).order_by(presets.c.version.desc())
    if version is not None:
        wanted = wanted.where(presets.c.version == version)
    found = [_preset(dict(row)) for row in connection.execute(wanted).mappings()]
    return [each for each in found if isinstance(each, Preset)]


def keep(connection: Connection, change: Preset | RemovedPreset) -> None:
    """Add a version, or forget all of a preset but for how many there were."""
    if isinstance(change, Preset):
        connection.execute(insert(presets), asdict(change))
        return
    connection.execute(delete(presets).where(*_is(change.id)))
    connection.execute(insert(presets), {**asdict(change), "document": None, "title": "", "note": "", "made_by": ""})


def _is(which: PresetId) -> tuple[ColumnElement[bool], ...]:
    return presets.c.project == which.project, presets.c.kind == which.kind, presets.c.name == which.name


def _preset(row: dict[str, Any]) -> Preset | RemovedPreset:
    kind = PresetKind(row["kind"])
    if row["document"] is None:
        return RemovedPreset(project=row["project"], kind=kind, name=row["name"], version=row["version"])
    return Preset(**{**row, "kind": kind})
