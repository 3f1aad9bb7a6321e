"""A job of any kind, checked by pydantic: its specification, or everything that is wrong with it."""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path as FilePath

from pydantic import ValidationError

from muster.domain.fault import Path
from muster.domain.jobs.job import JobSpec
from muster.jobfile.build import Builder
from muster.jobfile.document import Loc, Table, unfold
from muster.jobfile.errors import FieldError
from muster.jobfile.models import JobKeys
from muster.jobfile.sentences import findings

MAX_PROBLEMS = 200
"""Nobody reads more, and a hostile file could have very many."""


def builder_of(root: Table, base: FilePath | None) -> Builder:
    """What builds the job of a tree that was found right before, and knows where each of its values stands."""
    builder = Builder(JobKeys.model_validate(unfold(root, lambda scalar: scalar)), base)
    builder.spec()
    return builder


def checked_with_places(
    root: Table, base: FilePath | None
) -> tuple[JobSpec | None, Sequence[tuple[Loc, FieldError]], Callable[[Path], Loc]]:
    """The same as `checked`, and what says where in the tree a value stands that the rule book names by its role."""
    try:
        keys = JobKeys.model_validate(unfold(root, lambda scalar: scalar))  # that still knows how it was written
    except ValidationError as error:
        return None, list(islice(findings(error), MAX_PROBLEMS)), tuple
    builder = Builder(keys, base)
    spec = builder.spec()
    found = builder.findings[:MAX_PROBLEMS]
    return (None if found else spec), found, builder.where


def checked(root: Table, base: FilePath | None) -> tuple[JobSpec | None, Sequence[tuple[Loc, FieldError]]]:
    """The job that the tree describes; or None, and what is wrong where."""
    spec, found, _ = checked_with_places(root, base)
    return spec, found
