"""Which keys of a job file each kind of preset may have."""

from collections.abc import Mapping

from muster.domain.fleet.policies.preset import PresetKind
from muster.jobfile.models import JobKeys, RoleKeys
from muster.jobfile.presets.using import ROLES_KEY
from muster.jobfile.section import keys_of

_NEVER = frozenset({"project", "use"})
"""Keys of no preset: they say which presets there are."""

KEYS_OF_KIND: Mapping[PresetKind, frozenset[str]] = {
    PresetKind.TEMPLATE: frozenset(keys_of(JobKeys)) - _NEVER,
    PresetKind.ENVIRONMENT: frozenset(
        {"image", "pull", "entrypoint", "command", "env", "workdir", "user", "ports", "interactive"}
    ),
    PresetKind.RESOURCES: frozenset({"resources", "pools", "node_type", "topology"}),
    PresetKind.DATA: frozenset({"inputs", "mounts", "volumes"}),
}
"""Keys at the top of a preset, beside `roles`."""

KEYS_OF_ROLE = frozenset(keys_of(RoleKeys)) - {"name"}
"""Keys that a role can have by itself."""


def keys_of_kind(kind: PresetKind, *, in_role: bool = False) -> frozenset[str]:
    """The keys of a kind of preset at its top, or those under the name of a role."""
    known = KEYS_OF_KIND[kind]
    if not in_role:
        return known | {ROLES_KEY}
    return KEYS_OF_ROLE if kind is PresetKind.TEMPLATE else known & KEYS_OF_ROLE
