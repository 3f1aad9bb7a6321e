"""Outputs that go to a store, with a real coordinator, agent, mover, depot and store."""

from pathlib import Path

import pytest

from muster.client.client import Client
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import OutputsStage
from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.output_fleets import fleet, place
from tests.object_store import BUCKET, object_store

__all__ = ["place"]

LEAVES = """cd "$MUSTER_OUTPUTS_DIR"; mkdir "a b"
echo one > "a b/ü.txt"; head -c 20000000 /dev/zero > large; echo no > cache
"""


def job(script: str, to: str = f"s3://{BUCKET}/runs", **more: object) -> JobSpec:
    terms = OutputTerms(to=to, secret="store", only=("**/*.txt", "large"), **more)  # type: ignore[arg-type]  # any fields
    return JobSpec(name="leaves", roles=(Role(count=1, command=("/bin/sh", "-c", script), outputs=terms),))


async def test_outputs_go_to_a_store_however_user_code_ends(place: Path) -> None:
    with object_store() as store:
        async with fleet(place) as client:
            values = {"endpoint": store.endpoint, "access-key-id": "anybody", "secret-access-key": "anything"}
            await client.secrets.set("store", {k: v.encode() for k, v in values.items()}, kind=SecretKind.S3)
            submitted = await client.jobs.submit(job(f"{LEAVES}exit 3"), queue_anyway=True)
            ended = await client.jobs.wait(submitted.id)
            assert ended.phase is JobPhase.FAILED
            below = f"s3://{BUCKET}/runs/leaves-{ended.id}/1/0"
            files = await client.outputs.list(ended.id, metadata=True)
            assert [(each.path, each.size, each.uri) for each in files] == [
                ("a b/ü.txt", 4, f"{below}/a b/ü.txt"),
                ("large", 20_000_000, f"{below}/large"),
            ]
            assert store.get(f"runs/leaves-{ended.id}/1/0/a b/ü.txt") == b"one\n"
            assert store.get(f"runs/leaves-{ended.id}/1/0/large") == bytes(20_000_000)
            assert store.objects() == {f"runs/leaves-{ended.id}/1/0/{path}" for path in ("a b/ü.txt", "large")}
            with pytest.raises(ConflictError, match=f"what rank 0 of job {ended.id} has left lies in {below}"):
                await client.outputs.get(ended.id, place / "results")
            await refused(client, ended.id)


async def refused(client: Client, ended: str) -> None:
    """What goes wrong is said where the job is submitted, or where its outputs are asked for."""
    takes = Role(command=("true",), inputs=(JobInput(name="base", source=f"job:{ended}"),))
    with pytest.raises(ConflictError, match="has left is in a store; name it by url: s3://acme/runs"):
        await client.jobs.submit(JobSpec(name="takes", roles=(takes,)), queue_anyway=True)
    unopened = Role(command=("true",), outputs=OutputTerms(to="s3://acme/runs"))
    with pytest.raises(InvalidJobError, match=r"outputs\.secret: is missing"):
        await client.jobs.submit(JobSpec(name="nothing", roles=(unopened,)), queue_anyway=True)
    submitted = await client.jobs.submit(
        job("echo x > $MUSTER_OUTPUTS_DIR/large", to="s3://nobody/x"), queue_anyway=True
    )
    assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
    [left] = (await client.outputs.of(submitted.id)).ranks
    assert left.outputs.stage is OutputsStage.ON_NODE
    assert "there is no such bucket: s3://nobody/x/leaves-" in left.outputs.why
