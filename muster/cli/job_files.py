"""The jobs that a user's files describe, and where each stands."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from muster.domain.errors import InvalidJobError, MusterError
from muster.domain.jobs.job import JobSpec
from muster.jobfile import load_job, refused_in_file
from muster.jobfile.presets import described_jobs, refused_in_document

if TYPE_CHECKING:
    from muster.jobfile.presets.job_document import JobDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A job, and where it is described."""

    spec: "JobSpec | JobDocument"
    """The job, or its values where it names presets."""
    where: str
    """File and line: `sweep.yaml:12`."""
    text: str = ""
    source: str = ""
    number: int = 0
    """The place of the job in its file, from 0."""
    base: Path | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)

    def located(self, error: MusterError) -> MusterError:
        """What a coordinator has refused, with the lines of the file, as far as it names any."""
        if not isinstance(self.spec, JobSpec):
            told = refused_in_document(str(error), self.source, self.text, number=self.number, overrides=self.overrides)
            return error if told is None else type(error)(str(told))
        found = refused_in_file(
            str(error), self.source, self.text, number=self.number, base=self.base, overrides=self.overrides
        )
        return error if found is None else type(error)(str(found))


def read_job(file: Path, overrides: Mapping[str, str]) -> JobSpec:
    """The one job that a file describes, `-` for stdin, with values replaced by dotted key."""
    text, source, base = read_text_file(file, "the job file ")
    return load_job(text, source, base=base, overrides=overrides)


def read_jobs(files: Sequence[Path], overrides: Mapping[str, str]) -> tuple[Described, ...]:
    """All jobs of some files, `-` for stdin, with values replaced in each; one error tells what is wrong in any."""
    jobs: list[Described] = []
    errors: list[InvalidJobError] = []
    for file in files:
        try:
            text, source, base = read_text_file(file, "the job file ")
            found = described_jobs(text, source, base=base, overrides=overrides)
        except InvalidJobError as error:
            errors.append(error)
        else:
            jobs += (
                Described(
                    spec=spec,
                    where=f"{source}:{line}",
                    text=text,
                    source=source,
                    number=number,
                    base=base,
                    overrides=overrides,
                )
                for number, (line, spec) in enumerate(found)
            )
    if errors:
        raise InvalidJobError("\n".join(map(str, errors)))
    return tuple(jobs)


def read_text_file(file: Path, what: str = "") -> tuple[str, str, Path]:
    """What is in a file (`-`: stdin), how messages name it, and where the files are that it names.

    Raises InvalidJobError, which says `what` it is before its name.
    """
    if str(file) == "-":
        return sys.stdin.read(), "stdin", Path.cwd()
    try:
        return file.read_text(encoding="utf-8"), str(file), file.parent
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise InvalidJobError(f"cannot read {what}{file}: {reason}") from error
