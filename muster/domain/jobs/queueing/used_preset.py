"""Which versions of presets a job was made with when it was submitted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPreset:
    """The version of a preset with which a job was made."""

    project: str
    """The project of the preset; `*`: the fleet."""
    kind: str
    name: str
    version: int

    def __str__(self) -> str:
        owner = "the fleet" if self.project == "*" else f"project {self.project}"
        return f"{self.kind} {self.name}@{self.version} of {owner}"
