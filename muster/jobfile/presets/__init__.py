"""Presets of job files: which keys each kind may have, how their files are read, and what is wrong with one.

Importing this package is cheap; the models of job files are imported when the first preset is looked at.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.domain.errors import InvalidJobError
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.policies.preset import Preset, PresetKind, problem_with_preset
from muster.domain.quoting import quote

__all__ = ["load_preset", "refuse_preset_faults"]


def load_preset(text: str, source: str, kind: PresetKind) -> Mapping[str, Any]:
    """The document of a preset that a file holds; raises JobFileError with all that is wrong, by line and column."""
    from muster.jobfile.presets.reading import from_text  # noqa: PLC0415 - models only when a preset is read

    return from_text(text, source, kind)


def refuse_preset_faults(preset: Preset, policies: Sequence[JobPolicy] = ()) -> Preset:
    """The preset, if nothing is wrong with it and no policy refuses what it says; raises InvalidJobError otherwise.

    The first call imports the models of job files, a third of a second.
    """
    if problem := problem_with_preset(preset):
        raise InvalidJobError(f"the {preset.kind} {quote(preset.name)} {problem}")
    from muster.jobfile.presets.faults import preset_faults  # noqa: PLC0415 - as above

    if found := preset_faults(preset, policies):
        raise InvalidJobError.of("\n".join(map(str, found)), found)
    return preset
