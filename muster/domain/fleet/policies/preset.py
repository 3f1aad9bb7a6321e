"""Presets: named fragments of job files, of the fleet and of projects, every version of which is kept."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from muster.domain.fleet.access import EVERYWHERE

MOST_PRESETS = 200
"""Most presets of one project, or of the fleet."""
MOST_PRESET_VERSIONS = 1000
"""Highest number of a version of one preset."""
MOST_PRESETS_USED = 20
"""Most presets that one job file names."""
LONGEST_PRESET = 32 * 1024
"""Most characters of a preset's document as JSON."""
LONGEST_PRESET_TITLE = 100
"""Most characters of a preset's title."""
LONGEST_PRESET_NOTE = 1000
"""Most characters of the note of a version."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")


class PresetKind(StrEnum):
    """What a preset is about, which says what keys it may have."""

    TEMPLATE = "template"  #: a whole job, or as much of one as others begin with; any keys
    ENVIRONMENT = "environment"  #: the image, and what user code finds in it
    RESOURCES = "resources"  #: what each execution gets, and on which nodes
    DATA = "data"  #: files that each execution finds


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetId:
    """Which preset is meant, whatever its version."""

    project: str
    """The project; `*`: the fleet."""
    kind: PresetKind
    name: str

    @property
    def source(self) -> str:
        """The owner, in words: `project vision`."""
        return "the fleet" if self.project == EVERYWHERE else f"project {self.project}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One version of a preset; it never changes, and another document is another version."""

    project: str
    """The project; `*`: the fleet."""
    kind: PresetKind
    name: str
    version: int = 0
    """From 1; 0: it is not kept yet."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """Values by key of the job file; `roles` is a map by the name of a role."""
    title: str = ""
    """What it is, for people who choose one."""
    note: str = ""
    """What is new in this version."""
    made_at: datetime | None = None
    """When this version was put; None: it is not kept yet."""
    made_by: str = ""
    """The account that has put it."""

    @property
    def id(self) -> PresetId:
        """Which preset it is a version of."""
        return PresetId(project=self.project, kind=self.kind, name=self.name)


def problem_with_preset(preset: Preset) -> str:
    """What is wrong with the texts of a preset, as a sentence without its subject; empty: nothing."""
    if not _NAME.fullmatch(preset.name):
        return "must have a name of at most 63 lower-case letters, digits and inner dots, hyphens and underscores"
    if len(preset.title) > LONGEST_PRESET_TITLE:
        return f"has a title of {len(preset.title)} characters; {LONGEST_PRESET_TITLE} are the most"
    if len(preset.note) > LONGEST_PRESET_NOTE:
        return f"has a note of {len(preset.note)} characters; {LONGEST_PRESET_NOTE} are the most"
    return "" if preset.document else "says nothing; give it at least one key of a job file"


def document_text(document: Mapping[str, Any]) -> str:
    """The document of a preset as JSON, as it travels and is measured."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
