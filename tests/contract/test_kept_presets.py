"""Presets on disk: every version stays as it was put, and a name that is used again counts on."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.presets import Presets
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, AuditEntry
from muster.domain.fleet.policies.preset import Preset, PresetId, PresetKind

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ENTRY = AuditEntry(at=NOW, who="ada", what="presets.put", target="", origin="", result="ok")
OLD = Preset(
    project="vision",
    kind=PresetKind.ENVIRONMENT,
    name="pytorch",
    document={"image": "pt:2.8", "env": {"B": "1", "A": None}, "ports": ["http"]},
    title="PyTorch",
    note="first",
    made_at=NOW,
    made_by="ada",
)
NEW = replace(OLD, document={"image": "pt:2.9"}, note="")
OF_FLEET = replace(OLD, project=EVERYWHERE, kind=PresetKind.RESOURCES, document={"resources": {"gpus": 8}})


async def test_versions_of_presets_outlive_the_coordinator_as_they_were_put(tmp_path: Path) -> None:
    store = SqlTrust.open(tmp_path / "coordinator.db")
    presets = Presets(store, ("vision",))
    for each in (OF_FLEET, OLD, NEW, NEW):
        await presets.put(each, ENTRY)
    with pytest.raises(UnknownNameError, match="no project 'speech'"):
        await presets.put(replace(OLD, project="speech"), ENTRY)

    again = Presets(store, ("vision",))
    which = again.meant("vision", PresetKind.ENVIRONMENT, "pytorch")
    assert again.usable_in("vision") == [replace(NEW, version=2), replace(OF_FLEET, version=1)]
    assert again.usable_in("other") == again.usable_in(EVERYWHERE) == [replace(OF_FLEET, version=1)]
    assert await again.version(which, 1) == replace(OLD, version=1)
    assert await again.history(which) == [replace(NEW, version=2), replace(OLD, version=1)]
    assert again.meant("vision", PresetKind.RESOURCES, "pytorch").project == EVERYWHERE
    with pytest.raises(UnknownNameError, match="has no version 3; the newest is 2"):
        await again.version(which, 3)
    assert [use.told("vision") for use in again.uses_of("vision")] == [
        "1 preset is kept in it (environment pytorch): `muster presets remove environment pytorch --project vision`"
    ]
    store.close()


async def test_a_preset_that_was_removed_is_gone_and_its_numbers_are_not_given_again(tmp_path: Path) -> None:
    store = SqlTrust.open(tmp_path / "coordinator.db")
    presets = Presets(store, ("vision",))
    for each in (OLD, NEW):
        await presets.put(each, ENTRY)
    await presets.remove(OLD.id, ENTRY)

    again = Presets(store, ("vision",))
    assert not again.usable_in("vision")
    assert not again.uses_of("vision")
    for kept in (presets, again):
        with pytest.raises(UnknownNameError, match="neither project vision nor the fleet has a preset environment"):
            kept.meant("vision", PresetKind.ENVIRONMENT, "pytorch")
    with pytest.raises(UnknownNameError, match="project vision has no preset environment"):
        await again.remove(PresetId(project="vision", kind=PresetKind.ENVIRONMENT, name="pytorch"), ENTRY)
    assert (await again.put(OLD, ENTRY)).version == 3
    assert await again.history(OLD.id) == [replace(OLD, version=3)]
    store.close()
