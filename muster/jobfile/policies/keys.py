"""Keys of policies: whether a job file has them, and to whom they belong."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from muster.domain.quoting import did_you_mean, quote
from muster.jobfile.models import RoleKeys
from muster.jobfile.schema import schema
from muster.jobfile.section import keys_of

WORKERS = "workers"
"""The key for all executions of a job, whatever roles they have."""
ROLE_POLICY_KEYS = frozenset(keys_of(RoleKeys)) - {"name"}
"""First keys of what each role has by itself."""


def unknown_key(path: str) -> str:
    """Why a policy cannot have rules for a key, as a sentence without its subject; empty: it can."""
    first, _, rest = path.partition(".")
    if first == "roles":
        name, _, inner = rest.partition(".")
        if not name or not inner:
            return "must name a role and a key of it, like roles.master.resources.gpus"
        if inner.partition(".")[0] not in ROLE_POLICY_KEYS:
            return f"is no key of a role{did_you_mean(inner, sorted(ROLE_POLICY_KEYS))}"
        path = "count" if inner == "count" else inner
        return "" if path == "count" else _unknown(path)
    if first == "project":
        return "is not for policies: each project has a policy of its own"
    if first == "use":
        return "is not for policies: they are about what a job is with its presets"
    return _unknown(path)


def _unknown(path: str) -> str:
    node, parts = _root(), path.split(".")
    for place, part in enumerate(parts):
        inner = _maps(node)
        named = next((each[part] for each in map(_properties, inner) if part in each), None)
        if named is not None:
            node = named
            continue
        if any(_is_open(each) for each in inner):
            return ""  # a map with names of the user's own; what its entries have is not looked at
        known = sorted({key for each in inner for key in _properties(each)})
        if not known:
            return f"goes on after {quote('.'.join(parts[:place]))}, which has no keys"
        return f"is no key of a job file{did_you_mean(part, known)}"
    return ""


def _properties(node: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = node.get("properties", {})
    return found


def _is_open(node: Mapping[str, Any]) -> bool:
    return isinstance(node.get("additionalProperties"), dict) or "patternProperties" in node


def _maps(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The maps that a key may hold, behind references and alternatives."""
    if "$ref" in node:
        return _maps(_root()["$defs"][node["$ref"].rpartition("/")[2]])
    inside = [each for key in ("anyOf", "oneOf") for part in node.get(key, ()) for each in _maps(part)]
    return [node, *inside] if _properties(node) or _is_open(node) else inside


@cache
def _root() -> Mapping[str, Any]:
    return schema()
