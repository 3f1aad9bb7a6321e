"""What comes in: job files, and small bodies whose fields are checked."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request

from muster.domain.errors import InvalidJobError, JobsRefusedError, MusterError
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.rules.job_values import MAX_EXECUTIONS
from muster.jobfile import JobFileError, Problem, job_from, refused_in_file
from muster.jobfile.presets import described_jobs, refused_in_document

if TYPE_CHECKING:
    from muster.jobfile.presets.job_document import JobDocument

SOURCE = "body"
"""How a job file is called that came as the body of a request."""
LONGEST_ASKED_SPAN = 10 * 365 * 86_400
"""Seconds of a span of time that a request names: ten years."""
JSON_TYPES = frozenset({"application/json"})
YAML_TYPES = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})

LARGEST_COUNT = 2**31 - 1
"""The greatest of counts and of numbers of attempts that a request can name."""
LARGEST_EVENT = 2**63 - 1
"""The greatest number of an event that a request can name."""
Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
AttemptNumber = Annotated[int | None, Query(ge=1, le=LARGEST_COUNT, description="An attempt; none: the newest.")]
AnAttempt = Annotated[int, Path(ge=1, le=LARGEST_COUNT, description="The number of an attempt.")]
Rank = Annotated[int, Field(ge=0, lt=MAX_EXECUTIONS)]
Ranks = Annotated[Sequence[Rank], Query(alias="rank", description="Ranks; none: all.")]
PageSize = Annotated[int, Query(ge=1, le=1000, description="Most items of one answer.")]
Page = Annotated[str, Query(description="`next` of the answer before; empty: from the beginning.")]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_ASKED_SPAN)]


def _with_zone(said: datetime | None) -> datetime | None:
    """A time that names no zone is one of UTC."""
    return said.replace(tzinfo=UTC) if said is not None and said.tzinfo is None else said


Time = Annotated[datetime | None, AfterValidator(_with_zone), Query(description="A time, like 2026-11-27T09:00:00Z.")]


class Fields(BaseModel):
    """A small body: fields that nobody knows are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class DescribedJobs:
    """The jobs of a request."""

    text: str
    specs: tuple["JobSpec | JobDocument", ...]
    """The jobs, or the values of those that name presets."""
    is_list: bool
    """Whether several were sent, be it a list of one."""

    def located(self, error: MusterError) -> MusterError:
        """What the coordinator has refused, with the lines of the file, as far as it names any."""
        if isinstance(error, JobsRefusedError):
            refused = {place: self._located(each, place) for place, each in error.refused.items()}
            return JobsRefusedError(error.names, refused, error.accepted)
        return self._located(error, 0) if isinstance(error, InvalidJobError) else error

    def _located(self, error: MusterError, number: int) -> MusterError:
        if isinstance(error, JobFileError) or not self.text:
            return error
        if not isinstance(self.specs[number], JobSpec):
            return refused_in_document(str(error), SOURCE, self.text, number=number) or error
        return refused_in_file(str(error), SOURCE, self.text, number=number, base=None, overrides={}) or error


async def jobs_of(request: Request) -> DescribedJobs:
    """The jobs that the body of a request describes, as YAML with `---` between them, or as JSON, one or a list.

    Raises JobFileError with all faults, and HTTPException (415) for a body of another type.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in JSON_TYPES | YAML_TYPES:
        detail = f"a job file is application/yaml or application/json, and this is {kind or 'of no type'}"
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError:
        raise JobFileError(SOURCE, [_whole("is not UTF-8 text")]) from None
    if kind in YAML_TYPES:
        return DescribedJobs(text, tuple(spec for _, spec in described_jobs(text, SOURCE)), is_list="\n---" in text)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JobFileError(SOURCE, [_whole(f"is not valid JSON: {error}")]) from None
    if isinstance(values, list):
        return DescribedJobs("", tuple(_jobs(values)), is_list=True)
    # JSON is YAML but for its tabs, which stand between values alone, so faults are found at their lines.
    text = text.replace("\t", " ")
    return DescribedJobs(text, tuple(spec for _, spec in described_jobs(text, SOURCE)), is_list=False)


def span_of(seconds: float | None) -> timedelta | None:
    """A span of time that a request names; None: it names none."""
    return None if seconds is None else timedelta(seconds=seconds)


def _jobs(values: Sequence[Any]) -> "Sequence[JobSpec | JobDocument]":
    problems, specs = list[Problem](), list["JobSpec | JobDocument"]()
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            problems.append(_whole(f"has at [{number}] no map with keys such as name and command"))
            continue
        try:
            if "use" in value:
                specs += (spec for _, spec in described_jobs(json.dumps(value), f"{SOURCE}[{number}]"))
            else:
                specs.append(job_from(value, f"{SOURCE}[{number}]"))
        except JobFileError as error:
            problems += (_whole(str(each), f"[{number}]") for each in error.problems)
    if problems or not values:
        raise JobFileError(SOURCE, problems or [_whole("is a list without a job")])
    return specs


def _whole(message: str, field: str = "") -> Problem:
    return Problem(line=0, column=0, field=field, message=message)
