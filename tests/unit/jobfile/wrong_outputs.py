"""Jobs with something wrong in what they say of outputs, each with the beginning of the sentence that says what."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from muster.domain.data.output_terms import LiveOutputs, OutputTerms, StoredAfter
from muster.domain.jobs.job import JobSpec
from tests.unit.jobfile.wrong_jobs import job, role


def outputs(spec: JobSpec | None = None, **terms: Any) -> JobSpec:
    return role(spec or job(), outputs=OutputTerms(**terms))


WRONG_OUTPUTS: Sequence[tuple[JobSpec, str]] = (
    (outputs(only=("a", "b**")), "roles[0].outputs.only[1]: 'b**': `**` stands for whole segments"),
    (outputs(only=("/muster/outputs/a",)), "roles[0].outputs.only[0]: must be a path below the outputs directory"),
    (outputs(only=("a",) * 33), "roles[0].outputs.only: has 33 names; 32 are the most"),
    (outputs(limit=200), "roles[0].outputs.limit: is 200 bytes; the least is 1Mi"),
    (outputs(limit=2**61), "roles[0].outputs.limit: is more than"),
    (outputs(keep=timedelta()), "roles[0].outputs.keep: must be above zero"),
    (outputs(keep=timedelta(days=400)), "roles[0].outputs.keep: is longer than 365d"),
    (outputs(to="gs://acme/a", secret="store"), "roles[0].outputs.to: must be a bucket, or a place in one"),
    (outputs(to="s3://acme/a*", secret="store"), "roles[0].outputs.to: must be a bucket, or a place in one"),
    (outputs(to="s3://acme/a//b", secret="store"), "roles[0].outputs.to: names a place that cannot be"),
    (outputs(to=f"s3://acme/{'a' * 600}", secret="store"), "roles[0].outputs.to: has 610 characters; 512 are the most"),
    (outputs(to="s3://acme/a"), "roles[0].outputs.secret: is missing"),
    (outputs(secret="store"), "roles[0].outputs.secret: opens the store of `to`, which is missing"),
    (outputs(to="s3://acme", secret="My Store"), "roles[0].outputs.secret: must be 1 to 63 lower-case letters"),
    (
        outputs(to="s3://acme", secret="store", keep=timedelta(days=1)),
        "roles[0].outputs.keep: stands beside to: the store says how long",
    ),
    (
        outputs(job(delete_after=timedelta(days=1)), keep=timedelta(days=2)),
        "roles[0].outputs.keep: is longer than the job stays (delete_after: 1d)",
    ),
    (outputs(live=LiveOutputs.SETTLED), "roles[0].outputs.live: cannot be settled yet; say read-only"),
    (
        outputs(live=LiveOutputs.READ_ONLY, after=StoredAfter.SUCCESS),
        "roles[0].outputs.live: stands beside on: success, which nobody can know",
    ),
)
