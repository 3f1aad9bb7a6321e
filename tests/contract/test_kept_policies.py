"""Policies on disk: what is set stays, and what is taken back is gone."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.policies import Policies
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, AuditEntry
from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ENTRY = AuditEntry(at=NOW, who="ada", what="policies.set", target="", origin="", result="ok")
RULES = {
    "resources.gpus": PolicyRule(required=True, min="2", max="8", step="2"),
    "image": PolicyRule(options=("a", "b"), pattern="registry.local/*"),
    "env": PolicyRule(add=False, edit=False, locked=True),
}
OF_FLEET = JobPolicy(project=EVERYWHERE, rules=RULES, updated_at=NOW, updated_by="ada")
OF_VISION = JobPolicy(project="vision", rules={"workers": PolicyRule(max="4")}, updated_at=NOW, updated_by="ada")


async def test_policies_outlive_the_coordinator_until_they_are_taken_back(tmp_path: Path) -> None:
    store = SqlTrust.open(tmp_path / "coordinator.db")
    policies = Policies(store, ("vision",))
    for each in (OF_VISION, OF_FLEET):
        await policies.put(each, ENTRY)
    with pytest.raises(UnknownNameError, match="no project 'speech'"):
        await policies.put(JobPolicy(project="speech", rules=RULES), ENTRY)

    again = Policies(store, ("vision",))
    assert again.that_hold("vision") == policies.that_hold("vision") == (OF_FLEET, OF_VISION)
    assert again.that_hold("other") == again.that_hold(EVERYWHERE) == (OF_FLEET,)
    assert [use.told("vision") for use in again.uses_of("vision")] == [
        "1 policy is set for it (vision): `muster projects policy vision --remove`"
    ]

    await again.put(JobPolicy(project="vision"), ENTRY)
    assert Policies(store, ("vision",)).that_hold("vision") == again.that_hold("vision") == (OF_FLEET,)
    assert not again.uses_of("vision")
    store.close()
