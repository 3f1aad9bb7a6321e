"""Outputs that are stored as their job says, with a real coordinator, a real agent and a real depot."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import OutputTerms, StoredAfter
from muster.domain.data.outputs import OutputsStage, RankOutputs
from muster.domain.errors import ConflictError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.depots import age_all, depot, uploaded
from tests.integration.output_fleets import LIMIT, WRITES, fleet, folder_in, place
from tests.integration.programs import agent, coordinator
from tests.integration.relays import until

__all__ = ["place"]


def job(script: str, **terms: object) -> JobSpec:
    outputs = OutputTerms(**terms)  # type: ignore[arg-type]  # any of its fields
    return JobSpec(name="leaves", roles=(Role(command=("/bin/sh", "-c", script), outputs=outputs),))


async def left_by(client: Client, spec: JobSpec, ends: JobPhase) -> RankOutputs:
    """What the one execution of a job has left, once that has ended as it is to end."""
    submitted = await client.jobs.submit(spec, queue_anyway=True)
    ended = await client.jobs.wait(submitted.id)
    assert ended.phase is ends, ended.summary
    [left] = (await client.outputs.of(ended.id)).ranks
    return left


async def test_only_files_with_these_names_are_stored_and_none_stay_on_the_node(place: Path) -> None:
    script = 'cd "$MUSTER_OUTPUTS_DIR"; mkdir a; echo 1 > a/model.pt; echo 2 > cache; ln -s / link'
    async with fleet(place) as client:
        left = await left_by(client, job(script, only=("**/*.pt",)), JobPhase.SUCCEEDED)
        assert (left.outputs.stage, left.outputs.files, left.outputs.left_out) == (OutputsStage.STORED, 1, 0)
        await until(lambda: not list((place / "node" / "executions").iterdir()))
        assert not (place / "node" / "outputs").exists()


@pytest.mark.parametrize(
    ("end", "phase", "stage"),
    [
        ("exit 0", JobPhase.SUCCEEDED, OutputsStage.STORED),
        ("exit 3", JobPhase.FAILED, OutputsStage.UNWANTED),
    ],
)
async def test_outputs_of_success_alone_are_stored_and_others_go_with_the_execution(
    place: Path, end: str, phase: JobPhase, stage: OutputsStage
) -> None:
    async with fleet(place) as client:
        left = await left_by(client, job(f"{WRITES}; {end}", after=StoredAfter.SUCCESS), phase)
        assert left.outputs.stage is stage
        await until(lambda: not list((place / "node" / "executions").iterdir()))
        assert not (place / "node" / "outputs").exists()


async def test_more_than_the_job_allows_stays_on_the_node(place: Path) -> None:
    script = 'head -c 1048577 /dev/zero > "$MUSTER_OUTPUTS_DIR/large"'
    async with fleet(place) as client:
        left = await left_by(client, job(script, limit=2**20), JobPhase.SUCCEEDED)
        assert (left.outputs.stage, left.outputs.why) == (
            OutputsStage.ON_NODE,
            "they are more than the 1Mi of outputs.limit",
        )


async def until_expired(client: Client, job_id: JobId) -> None:
    while True:
        [left] = (await client.outputs.of(job_id)).ranks
        if left.outputs.stage is OutputsStage.EXPIRED:
            return
        assert left.outputs.stage is OutputsStage.STORED, left.outputs.why
        await asyncio.sleep(0.05)


async def test_outputs_that_were_kept_for_long_enough_go_while_their_job_stays(place: Path) -> None:
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, asyncio.timeout(LIMIT), agent(place, login):
        async with depot(state):
            await uploaded(client, folder_in(place / "folder"))
            submitted = await client.jobs.submit(job(WRITES, keep=timedelta(seconds=1)), queue_anyway=True)
            assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
            await until_expired(client, submitted.id)
            with pytest.raises(ConflictError, match="is not there any more"):
                await client.jobs.submit(taking(submitted.id))
        objects = age_all(state)
        async with depot(state):
            await until(lambda: not list(objects.all()))
        assert (await client.jobs.get(submitted.id)).phase is JobPhase.SUCCEEDED


def taking(source: JobId) -> JobSpec:
    inputs = (JobInput(name="base", source=f"job:{source}"),)
    return JobSpec(name="next", roles=(Role(command=("true",), inputs=inputs),))
