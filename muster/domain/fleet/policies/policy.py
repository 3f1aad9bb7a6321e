"""Policies of a fleet and of projects, and what a job breaks of them, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from muster.domain.fault import Fault, Path
from muster.domain.fleet.access import EVERYWHERE

MOST_POLICY_RULES = 200
"""Most keys that one policy has rules for."""
MOST_POLICY_OPTIONS = 200
"""Most values that one rule allows by name."""
LONGEST_POLICY_TEXT = 500
"""Most characters of a key, of a value and of a pattern in a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """What a job may say under one key; values are written as in a job file."""

    required: bool = False
    """Whether the job must say something other than what it would have anyway."""
    min: str = ""
    """The least amount; empty: any."""
    max: str = ""
    """The largest amount; empty: any."""
    step: str = ""
    """The distance between allowed amounts, from `min` on, or from zero; empty: any."""
    options: tuple[str, ...] = ()
    """Values that are allowed beside those that fit the pattern; empty: the pattern decides."""
    pattern: str = ""
    """Values that are allowed, with wildcards: `registry.local/*`; empty: the options decide."""
    locked: bool = False
    """Whether the value stays what a job has that says nothing of it, here and in presets."""
    edit: bool = True
    """Whether a job file may say something; otherwise only presets may."""
    add: bool = True
    """Whether a job file may have entries of its own in this map or list."""

    @property
    def bounded(self) -> bool:
        """Whether it is about an amount."""
        return bool(self.min or self.max or self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """The rules of a fleet or of one project; jobs keep both, so a project only narrows what its fleet allows."""

    project: str
    """The project; `*`: the fleet."""
    rules: Mapping[str, PolicyRule] = field(default_factory=dict)
    """The rules by key of the job file: `resources.gpus`, `roles.master.image`."""
    updated_at: datetime | None = None
    """When it was set; None: it never was."""
    updated_by: str = ""
    """The account that has set it."""

    @property
    def source(self) -> str:
        """The owner of the policy, in words: `project vision`."""
        return "the fleet" if self.project == EVERYWHERE else f"project {self.project}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyIssue:
    """One thing that a job breaks of one policy."""

    path: Path
    """The way to the value, as faults have it."""
    rule: str
    """The word of the rule: `max`, `options`, …"""
    message: str
    """What is wrong, and what is allowed; a sentence without its subject."""
    source: str
    """The owner of the policy, in words: `project vision`."""

    @property
    def fault(self) -> Fault:
        """The issue as a fault of the job."""
        return Fault(path=self.path, message=f"{self.message} (rule {self.rule} of the policy of {self.source})")


def changed_rules(before: Mapping[str, PolicyRule], after: Mapping[str, PolicyRule]) -> str:
    """Which keys have other rules than before, for the audit log; `nothing` where all are the same."""
    parts: Sequence[str] = (
        *(f"+{key}" for key in sorted(after.keys() - before.keys())),
        *(f"-{key}" for key in sorted(before.keys() - after.keys())),
        *(f"~{key}" for key in sorted(after.keys() & before.keys()) if after[key] != before[key]),
    )
    return ", ".join(parts) or "nothing"
