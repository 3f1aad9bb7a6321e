"""Inputs with several URLs: what each of them holds, put together in one directory."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from agent.data.bucket_inputs import BucketFetching, FoundObjects
from agent.data.held import HeldFile
from agent.data.parts import part_of
from muster.domain.data.job_input import JobInput, without_query
from muster.domain.data.pattern import NamePatternError, in_one_place
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import ExecutionError, FailureKind

Told = Callable[[str], None]
FetchFile = Callable[[Assignment, JobInput, Told], Awaitable[HeldFile]]
"""Has the file of one URL on the node; raises ExecutionError or OSError."""


async def files_of_several(
    assignment: Assignment, each: JobInput, fetch_file: FetchFile, buckets: BucketFetching | None, progress: Told
) -> Sequence[HeldFile]:
    """Have those files of an input on the node that an execution gets, one URL after the other.

    Raises ExecutionError where they cannot be had, and OSError where the disk does not take them.
    """
    found: list[tuple[JobInput, Told, FoundObjects | None]] = []
    for place, one in enumerate(each.singly, 1):
        told = _counting(progress, f"URL {place} of {len(each.urls)}")
        found.append((one, told, await _objects(assignment, one, buckets, told)))
    left = _wanted(assignment, each, [(one, objects) for one, _, objects in found])
    files: list[HeldFile] = []
    for one, told, objects in found:
        paths = [path for path in _paths(one, objects) if path in left]
        left.difference_update(paths)  # an object that two URLs name is one file
        if objects is not None and buckets is not None:
            files += await buckets.have(assignment, objects, paths)
        elif paths:
            files.append(await fetch_file(assignment, one, told))
    return files


async def _objects(
    assignment: Assignment, one: JobInput, buckets: BucketFetching | None, told: Told
) -> FoundObjects | None:
    """The objects of one URL; None: it is a file."""
    if not one.is_in_bucket:
        return None
    if buckets is None:
        raise ExecutionError(FailureKind.RUNTIME, f"inputs.{one.name}: this agent has no way to {one.url}")
    return await buckets.look(assignment, one, told)


def _wanted(assignment: Assignment, each: JobInput, found: Sequence[tuple[JobInput, FoundObjects | None]]) -> set[str]:
    """The paths of the files that an execution gets; raises ExecutionError where two files would lie at one."""
    try:
        by_path = in_one_place(_named(found))
    except NamePatternError as error:
        raise ExecutionError(FailureKind.DATA_REFUSED, f"inputs.{each.name}: {error}") from None
    return set(part_of(assignment, each, by_path))


def _named(found: Sequence[tuple[JobInput, FoundObjects | None]]) -> Iterator[tuple[str, str]]:
    """All files by their paths, with names by which people know them apart."""
    for place, (one, objects) in enumerate(found, 1):
        for path in _paths(one, objects):
            yield path, f"{without_query(one.url)} (URL {place})" if objects is None else objects.url(path)


def _paths(one: JobInput, objects: FoundObjects | None) -> Sequence[str]:
    return (one.file_name,) if objects is None else tuple(objects.by_path)


def _counting(progress: Told, which: str) -> Told:
    return lambda detail: progress(f"{detail} ({which})")
