"""What job files say of outputs."""

from datetime import timedelta

import pytest

from muster.domain.data.output_terms import ALL_OUTPUTS, OutputTerms, StoredAfter
from muster.domain.jobs.job import JobSpec
from muster.jobfile import JobFileError, dump_job, load_job

HEAD = "name: a\ncommand: x\n"


def loaded(text: str) -> JobSpec:
    return load_job(text, "job.yaml")


def test_all_outputs_are_stored_unless_the_job_says_otherwise() -> None:
    assert loaded(HEAD).roles[0].outputs == ALL_OUTPUTS
    assert loaded(f"{HEAD}outputs: {{}}\n").roles[0].outputs == ALL_OUTPUTS


def test_each_key_says_what_is_stored() -> None:
    text = f"{HEAD}outputs:\n  on: success\n  only: ['**/*.pt', plots/]\n  limit: 2Gi\n  keep: 90d\n"
    assert loaded(text).roles[0].outputs == OutputTerms(
        after=StoredAfter.SUCCESS, only=("**/*.pt", "plots/"), limit=2 * 2**30, keep=timedelta(days=90)
    )
    assert dump_job(loaded(text))["outputs"] == {
        "on": "success",
        "only": ["**/*.pt", "plots/"],
        "limit": "2Gi",
        "keep": "90d",
    }


def test_a_place_in_a_store_stands_beside_what_opens_it() -> None:
    text = f"{HEAD}outputs: {{to: 's3://acme/runs', secret: store}}\n"
    assert loaded(text).roles[0].outputs == OutputTerms(to="s3://acme/runs", secret="store")
    assert dump_job(loaded(text))["outputs"] == {"to": "s3://acme/runs", "secret": "store"}


def test_a_role_says_all_of_it_anew() -> None:
    text = f"{HEAD}outputs: {{keep: 1d, limit: 1Gi}}\nroles:\n- {{name: a, outputs: {{keep: 2d}}}}\n- {{name: b}}\n"
    first, second = (role.outputs for role in loaded(text).roles)
    assert (first, second) == (
        OutputTerms(keep=timedelta(days=2)),
        OutputTerms(keep=timedelta(days=1), limit=2**30),
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{on: failure}", 'job.yaml:3:15: outputs.on: must be always or success, not "failure"'),
        ("{only: ['/a']}", "job.yaml:3:18: outputs.only[0]: must be a path below the outputs directory"),
        ("{to: 's3://acme/runs'}", "outputs.secret: is missing: name the secret that opens the store of `to`"),
        (
            "{to: runs, secret: store}",
            "job.yaml:3:15: outputs.to: must be a bucket, or a place in one, like s3://acme/runs",
        ),
        ("{live: settled}", "job.yaml:3:17: outputs.live: cannot be settled yet; say read-only, and take the write"),
        ("[a.pt]", 'outputs: must be a map, not a list; write it like outputs: {only: ["**/*.pt"], keep: 90d}'),
        ("{keep: 2d}\ndelete_after: 1d", "outputs.keep: is longer than the job stays (delete_after: 1d)"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(written: str, said: str) -> None:
    with pytest.raises(JobFileError) as refused:
        loaded(f"{HEAD}outputs: {written}\n")
    assert said in str(refused.value)
