"""What is wrong with what a role says of its outputs."""

import re
from collections.abc import Iterator

from muster.domain.data.buckets.bucket_url import BUCKET_NAME
from muster.domain.data.output_terms import LiveOutputs, OutputTerms, StoredAfter
from muster.domain.data.tree import MalformedTreeError, refuse_bad_content_path
from muster.domain.fault import Fault
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.rules import job_values as values
from muster.domain.jobs.rules.data.only_rules import only_faults
from muster.domain.jobs.rules.data.own_places import own_place
from muster.domain.jobs.rules.data.volume_rules import MIN_VOLUME
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.jobs.rules.telling import told
from muster.domain.quantity import format_duration

OUTPUT_PLACE = rf"(s3|az)://{BUCKET_NAME}(/[^*?]+)?"
"""The pattern of places in stores to which outputs go."""
LONGEST_OUTPUT_PLACE = 512
"""Characters of such a place; the names of files come below it, and a store takes 1,024 bytes."""


def output_place(text: str) -> Wrong | None:
    """A place in a store to which outputs go."""
    if len(text) > LONGEST_OUTPUT_PLACE:
        return Wrong(f"has {len(text)} characters; {LONGEST_OUTPUT_PLACE} are the most")
    if re.fullmatch(OUTPUT_PLACE, text) is None:
        return Wrong(
            "must be a bucket, or a place in one, like s3://acme/runs or az://acme/runs; there are no wildcards in it"
        )
    prefix = text.removesuffix("/").partition("://")[2].partition("/")[2]
    try:
        if prefix:
            refuse_bad_content_path(prefix)
    except MalformedTreeError as error:
        return Wrong(f"names a place that cannot be: {error}")
    return None


def _live_faults(terms: OutputTerms) -> Iterator[Fault]:
    path = ("outputs", "live")
    if terms.live is LiveOutputs.SETTLED:
        message = "cannot be settled yet; say read-only, and take the write permission from files that are whole"
        yield Fault(path=path, message=message)
    elif terms.are_live and terms.after is not StoredAfter.ALWAYS:
        yield Fault(path=path, message="stands beside on: success, which nobody can know while user code runs")


def output_faults(spec: JobSpec, role: Role) -> Iterator[Fault]:
    """Everything that is wrong with the terms of a role's outputs, by paths below the role."""
    terms = role.outputs
    yield from only_faults(terms.only, ("outputs", "only"))
    yield from _live_faults(terms)
    if terms.limit is not None:
        yield from told(("outputs", "limit"), values.memory(terms.limit, MIN_VOLUME))
    if terms.to:
        yield from told(("outputs", "to"), output_place(terms.to) or own_place(terms.to))
        if not terms.secret:
            yield Fault(path=("outputs", "secret"), message="is missing: name the secret that opens the store of `to`")
        if terms.keep is not None:
            yield Fault(path=("outputs", "keep"), message="stands beside to: the store says how long it keeps objects")
    if terms.secret:
        yield from told(("outputs", "secret"), values.label(terms.secret))
        if not terms.to:
            yield Fault(path=("outputs", "secret"), message="opens the store of `to`, which is missing")
    if terms.keep is not None:
        path, wrong = ("outputs", "keep"), values.duration(terms.keep)
        yield from told(path, wrong)
        if not wrong and spec.delete_after is not None and terms.keep > spec.delete_after:
            after = format_duration(spec.delete_after)
            yield Fault(path=path, message=f"is longer than the job stays (delete_after: {after})")
