"""The JSON Schema of job files, from the models: as strict as JSON Schema can be.

It cannot say that names differ, that numbers stand in a relation, or how large things are together; the rule book can.
"""

from typing import Any

from muster.domain.jobs.rules.job_rules import ONLY_WITH_IMAGE
from muster.jobfile.models import JobKeys

ID = "urn:muster:job-file"
"""Under which editors and programs keep the schema."""

_Schema = dict[str, Any]


def schema() -> _Schema:
    """See `muster.jobfile.job_schema`."""
    made = _tidy(JobKeys.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        **made,
        "title": "Muster job file",
        "not": {"required": ["workers", "roles"]},
        "if": {"not": _has("use")},
        "then": {"allOf": [_who_runs(), _alone(), _in_roles()]},
    }


def _tidy(node: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """A part without what JSON Schema needs to allow null, which a job file never does; with its own names alone."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidy(value) for key, value in node.items() if not (key == "default" and value is None)}
    if "patternProperties" in tidy:
        tidy.setdefault("additionalProperties", False)
    options = [option for option in tidy.get("anyOf", []) if option != {"type": "null"}]
    if "anyOf" not in tidy or len(options) == len(tidy["anyOf"]):
        return tidy
    del tidy["anyOf"]
    return {**tidy, **options[0]} if len(options) == 1 else {**tidy, "anyOf": options}


def _has(*keys: str) -> _Schema:
    return {"required": list(keys)}


def _none_of(*cases: _Schema) -> _Schema:
    return {"not": {"anyOf": list(cases)}}


def _with(key: str, inner: _Schema) -> _Schema:
    return {"properties": {key: inner}, "required": [key]}


_PROCESS = {"not": _has("image")}
_WRITTEN = [*map(_has, ONLY_WITH_IMAGE), _with("resources", _has("shm"))]
"""Keys that only containers have, whatever they say."""
_READ = _with("writable", {"const": False})
_ASKED = [
    _with("security", _with("capabilities", {"minItems": 1})),
    _with("volumes", {"not": {"additionalProperties": _none_of(_has("path"), _has("tmpfs"), _READ)}}),
    _with("inputs", {"not": {"additionalProperties": {"not": {"type": "object", **_has("path")}}}}),
    *(_with("security", _with(key, {"const": True})) for key in ("privileged", "gain_privileges", "image_user")),
]
_WAITS = _with("interactive", {"not": {"const": False}})
"""A job whose main program waits where it has no command."""
_BRIDGE = _with("network", {"const": "bridge"})


def _who_runs() -> _Schema:
    """One key at most says who runs in the containers."""
    both = {**_with("security", _with("image_user", {"const": True})), "required": ["security", "user"]}
    return {"not": both, "properties": {"roles": {"items": {"not": both}}}}


def _alone() -> _Schema:
    """A job without roles and without an image."""
    plain = {"not": {"anyOf": [_has("image"), _has("roles")]}}
    return {"if": plain, "then": {"anyOf": [_has("command"), _WAITS], **_none_of(*_WRITTEN, *_ASKED, _BRIDGE)}}


def _in_roles() -> _Schema:
    """Roles of which some have no image."""
    role = {"if": _PROCESS, "then": _none_of(*_WRITTEN, *_ASKED)}
    told = {
        "if": _none_of(_has("command"), _WAITS),
        "then": {"properties": {"roles": {"items": {"if": _PROCESS, "then": _has("command")}}}},
    }
    some = {"if": _with("roles", {"contains": _PROCESS}), "then": _none_of(*_WRITTEN, _BRIDGE)}
    every = {"properties": {"roles": {"items": role}}}
    return {"if": {**_has("roles"), "not": _has("image")}, "then": {"allOf": [every, told, some]}}
