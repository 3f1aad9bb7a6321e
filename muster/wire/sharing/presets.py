"""Presets of the fleet and of projects."""

import json
from collections.abc import Mapping
from typing import Any

from muster.domain.fleet.policies.preset import Preset, PresetKind, document_text
from muster.rpc.v1 import presets_pb2 as pb
from muster.wire import checks

LONGEST_SENT_PRESET = 1024 * 1024
"""Most bytes of a document that is read at all; what is longer than a preset may be is refused in a sentence."""


def preset_to_wire(preset: Preset) -> pb.Preset:
    """The version of a preset as a message."""
    return pb.Preset(
        project=preset.project,
        kind=preset.kind,
        name=preset.name,
        version=preset.version,
        document=document_text(preset.document),
        title=preset.title,
        note=preset.note,
        made_at=checks.timestamp(preset.made_at),
        made_by=preset.made_by,
    )


def preset_from_wire(message: pb.Preset) -> Preset:
    """The version of a preset in a message; raises WireError. What is wrong with its keys is found elsewhere."""
    return Preset(
        project=checks.text(message.project, "Preset.project"),
        kind=preset_kind(message.kind, "Preset.kind"),
        name=checks.text(message.name, "Preset.name"),
        version=message.version,
        document=values_from_json(message.document, "Preset.document"),
        title=checks.plain(message.title, "Preset.title"),
        note=checks.plain(message.note, "Preset.note"),
        made_at=checks.optional_moment(message, "made_at"),
        made_by=checks.text(message.made_by, "Preset.made_by"),
    )


def preset_kind(value: str, where: str) -> PresetKind:
    """The kind of a preset; raises WireError."""
    return checks.word(PresetKind, value, where)


def values_from_json(text: str, where: str) -> Mapping[str, Any]:
    """The map that a text of JSON holds; raises WireError."""
    if len(text) > LONGEST_SENT_PRESET:
        raise checks.WireError(where, f"has {len(text)} characters; at most {LONGEST_SENT_PRESET} are read")
    try:
        values = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise checks.WireError(where, "is not valid JSON") from None
    if not isinstance(values, dict):
        raise checks.WireError(where, "must be a map with keys of a job file")
    return values


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")
