"""Outputs that go to a store, with a real coordinator, agent, mover, depot and store."""

import asyncio
import signal
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import OutputsStage
from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.cable import Cable
from tests.integration.depots import depot, uploaded
from tests.integration.output_fleets import LIMIT, fleet, folder_in, place
from tests.integration.programs import agent, coordinator
from tests.integration.relays import until
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
            missed = await refused(client, ended.id)
            store.make_bucket("nobody")
            assert (await client.outputs.retry(missed)).ranks == (0,)
            assert await until_stored_again(client, missed) == (
                OutputsStage.STORED,
                f"s3://nobody/x/leaves-{missed}/1/0",
            )
            assert store.get(f"x/leaves-{missed}/1/0/large", bucket="nobody") == b"x\n"


async def test_an_agent_that_is_killed_while_it_sends_to_a_store_leaves_that_to_the_next_one(place: Path) -> None:
    state = place / "coordinator"
    with object_store() as store:
        async with (
            asyncio.timeout(LIMIT),
            coordinator(place) as login,
            depot(state),
            client_of(login) as client,
            asyncio.TaskGroup() as tasks,
        ):
            await uploaded(client, folder_in(place / "folder"))
            cable = Cable(tasks)
            await cable.lay(store.endpoint.removeprefix("http://"))
            values = {"endpoint": f"http://{cable.address}", "access-key-id": "any", "secret-access-key": "thing"}
            await client.secrets.set("store", {k: v.encode() for k, v in values.items()}, kind=SecretKind.S3)
            cable.hold(downwards=True)
            async with agent(place, login, ending=signal.SIGKILL):
                submitted = await client.jobs.submit(job(LEAVES), queue_anyway=True)
                await until(lambda: any(key.endswith("txt") for key in store.objects()))  # and nobody has heard of it
                assert (await client.jobs.get(submitted.id)).phase is JobPhase.STORING
            cable.cut()
            cable.let_go()
            cable.mend()
            async with agent(place, login):
                assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
            below = f"runs/leaves-{submitted.id}/1/0"
            assert store.objects() == {f"{below}/{path}" for path in ("a b/ü.txt", "large")}
            assert store.get(f"{below}/large") == bytes(20_000_000)
            [left] = (await client.outputs.of(submitted.id)).ranks
            assert (left.outputs.stage, left.outputs.files) == (OutputsStage.STORED, 2)
            await cable.take_up()


async def until_stored_again(client: Client, job: str) -> tuple[OutputsStage, str]:
    """What has become of outputs that somebody wanted to have stored again, and where they are."""
    while True:
        [left] = (await client.outputs.of(job)).ranks
        if left.outputs.stage is not OutputsStage.STORING_AGAIN:
            return left.outputs.stage, left.store
        await asyncio.sleep(0.05)


async def refused(client: Client, ended: str) -> str:
    """What goes wrong is said where the job is submitted, or where its outputs are asked for; a job whose outputs
    found no bucket.
    """
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
    return submitted.id
