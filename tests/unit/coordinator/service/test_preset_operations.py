"""Presets: who puts and sees them, what is written down of that, and that policies hold for them as well."""

import pytest

from coordinator.service.queueing.presets import PresetOperations
from coordinator.trust.policies import Policies
from coordinator.trust.presets import Presets
from muster.domain.errors import InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access, AuditEntry
from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from muster.domain.fleet.policies.preset import Preset, PresetKind
from tests.unit.coordinator.service.callers import Trusted, of_all, person
from tests.unit.coordinator.trust.memory_trust import NOW

OPERATOR, MEMBER = person("olga", red=Access.OPERATOR), person("max", red=Access.MEMBER)
ADMIN, VIEWER = of_all(Access.ADMIN), person("vera", red=Access.VIEWER)
KIND, IMAGE = PresetKind.ENVIRONMENT, {"image": "registry.local/pt:2.9"}


def environment(project: str = "red", **document: object) -> Preset:
    return Preset(project=project, kind=KIND, name="pytorch", document=document or IMAGE)


async def test_operators_put_presets_members_see_them_and_the_audit_log_says_which_version() -> None:
    trusted = Trusted()
    presets = PresetOperations(trusted.operations, Presets(trusted.store, trusted.registry.projects), lambda _: ())

    made = await presets.put(OPERATOR, environment(""))
    await presets.put(OPERATOR, environment(image="registry.local/pt:3"))
    await presets.put(ADMIN, environment("*"))
    for caller, wish in ((MEMBER, environment()), (OPERATOR, environment("*"))):
        with pytest.raises((PermissionDeniedError, UnknownNameError)):
            await presets.put(caller, wish)

    assert (made.project, made.version, made.made_by) == ("red", 1, "olga")
    assert [(each.project, each.version) for each in await presets.list(MEMBER, "")] == [("red", 2), ("*", 1)]
    assert (await presets.get(MEMBER, "red", KIND, "pytorch", 1)).document == IMAGE
    assert [each.version for each in await presets.history(MEMBER, "red", KIND, "pytorch")] == [2, 1]
    with pytest.raises(PermissionDeniedError):
        await presets.list(VIEWER, "red")
    with pytest.raises(UnknownNameError, match="no project 'blue'"):
        await presets.list(MEMBER, "blue")
    await presets.remove(OPERATOR, "red", KIND, "pytorch")
    assert (await presets.get(MEMBER, "red", KIND, "pytorch")).project == "*"
    told = [(who, what, target, result) for who, what, target, result in await trusted.told() if result[:2] == "ok"]
    assert told == [
        ("olga", "presets.put", "red/environment/pytorch", "ok, version 1"),
        ("olga", "presets.put", "red/environment/pytorch", "ok, version 2"),
        ("root", "presets.put", "*/environment/pytorch", "ok, version 1"),
        ("olga", "presets.remove", "red/environment/pytorch", "ok"),
    ]


async def test_a_preset_is_refused_for_its_keys_and_for_what_policies_of_its_project_refuse() -> None:
    trusted = Trusted()
    policies = Policies(trusted.store, trusted.registry.projects)
    entry = AuditEntry(at=NOW, who="root", what="policies.set", target="red", origin="", result="ok")
    await policies.put(JobPolicy(project="red", rules={"image": PolicyRule(pattern="registry.local/*")}), entry)
    kept = Presets(trusted.store, trusted.registry.projects)
    presets = PresetOperations(trusted.operations, kept, policies.that_hold)

    with pytest.raises(InvalidJobError, match="inputs: is no key that a preset of the kind environment has"):
        await presets.put(OPERATOR, environment(inputs={"a": "https://example.org/a"}))
    with pytest.raises(InvalidJobError, match=r'image: "pt" is not allowed; .* the policy of project red'):
        await presets.put(OPERATOR, environment(image="pt"))

    assert not kept
    assert (await presets.put(OPERATOR, environment())).version == 1
