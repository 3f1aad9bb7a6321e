"""Which files of an input an execution gets: all of them, or its part."""

from collections.abc import Mapping
from typing import TypeVar

from muster.domain.data.job_input import JobInput
from muster.domain.data.pattern import split_among
from muster.domain.gangs.plan import Assignment

Whatever = TypeVar("Whatever")


def part_of(assignment: Assignment, each: JobInput, by_path: Mapping[str, Whatever]) -> dict[str, Whatever]:
    """The files of an input that an execution gets, by their paths."""
    paths = sorted(by_path, key=str.encode)
    if each.split:
        paths = list(split_among(paths, assignment.role_rank, assignment.role_size))
    return {path: by_path[path] for path in paths}
