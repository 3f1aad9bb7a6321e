"""Presets of job files: which keys each kind may have, how their files are read, and what is wrong with one.

Importing this package is cheap; the models of job files are imported when the first preset is looked at.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.domain.errors import InvalidJobError
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.policies.preset import Preset, PresetKind, problem_with_preset
from muster.domain.quoting import quote
from muster.jobfile.errors import FieldError, JobFileError

if TYPE_CHECKING:
    from muster.domain.jobs.job import JobSpec
    from muster.jobfile.presets.job_document import JobDocument
    from muster.jobfile.presets.joining import MergedJob
    from muster.jobfile.presets.using import NamedPreset

__all__ = [
    "described_jobs",
    "load_preset",
    "merged_job",
    "named_by",
    "named_in_document",
    "refuse_preset_faults",
    "refused_in_document",
]


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


def described_jobs(
    text: str, source: str, *, base: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> "tuple[tuple[int, JobSpec | JobDocument], ...]":
    """The jobs of a file as `load_jobs` gives them, but of those that name presets their documents, each with its line.

    A document has what only this place can read: files beside the job file, and where folders are.
    """
    from muster.jobfile.presets.describing import all_described  # noqa: PLC0415 - YAML and models only when read

    return all_described(text, source, base=base, overrides=overrides or {})


def refused_in_document(
    message: str, source: str, text: str, *, number: int = 0, overrides: Mapping[str, Any] | None = None
) -> JobFileError | None:
    """What a coordinator refuses of a document that came from job `number` of a file, with its lines.

    What presets say has no line. None where the message names no key of the file.
    """
    from muster.jobfile.presets.describing import placed  # noqa: PLC0415 - as above

    return placed(message, source, text, number=number, overrides=overrides or {})


def named_by(document: str) -> tuple[str, str]:
    """The name and the project that the document of a job gives it, both perhaps empty; raises InvalidJobError."""
    from muster.jobfile.presets.job_document import JobDocument, table_of  # noqa: PLC0415 - as above

    try:
        found = JobDocument(root=table_of(document))
    except FieldError as error:
        raise InvalidJobError(f"the document of the job {error.message}") from None
    return found.name, found.project


def named_in_document(document: str) -> "Sequence[NamedPreset]":
    """The presets that the document of a job names, in the order in which they are joined; raises InvalidJobError."""
    from muster.jobfile.presets.joining import presets_of  # noqa: PLC0415 - models only where there are presets

    return presets_of(document)


def merged_job(document: str, project: str, presets: Sequence[Preset]) -> "MergedJob":
    """The job that a document and the presets that it names make; raises InvalidJobError with all that is wrong."""
    from muster.jobfile.presets.joining import job_of  # noqa: PLC0415 - as above

    return job_of(document, project, presets)
