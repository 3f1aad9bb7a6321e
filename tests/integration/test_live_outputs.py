"""Outputs that are stored while user code runs, in the depot and in a store, while the agent is killed."""

import asyncio
import signal
from pathlib import Path

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.output_terms import LiveOutputs, OutputTerms
from muster.domain.data.outputs import OutputFile, OutputsStage
from muster.domain.fleet.secret import SecretKind
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.depots import depot, uploaded
from tests.integration.output_fleets import LIMIT, folder_in, place
from tests.integration.programs import agent, coordinator
from tests.integration.relays import until
from tests.object_store import BUCKET, object_store

__all__ = ["place"]

PUBLISHES = """cd "$MUSTER_OUTPUTS_DIR"; echo one > epoch-1; chmod a-w epoch-1; echo begun > log
until test -e "{goes}"; do sleep 0.1; done
rm -f epoch-1; echo two > epoch-2; chmod a-w epoch-2; echo done >> log
"""


def job(place: Path, **terms: str) -> JobSpec:
    outputs = OutputTerms(live=LiveOutputs.READ_ONLY, **terms)  # type: ignore[arg-type]  # words alone
    role = Role(command=("/bin/sh", "-c", PUBLISHES.format(goes=place / "goes")), outputs=outputs)
    return JobSpec(name="publishes", roles=(role,))


async def files_of(client: Client, job: JobId) -> list[OutputFile]:
    return list(await client.outputs.list(job))


async def until_stored(client: Client, job: JobId) -> list[OutputFile]:
    """The files of a job, once some are stored."""
    while not (found := await files_of(client, job)):  # noqa: ASYNC110 - nobody tells when
        await asyncio.sleep(0.1)
    return found


async def test_a_file_that_nobody_may_write_to_is_stored_at_once_and_the_rest_at_the_end(place: Path) -> None:
    state, secret = place / "coordinator", {"access-key-id": b"anybody", "secret-access-key": b"anything"}
    with object_store() as store:
        async with (
            asyncio.timeout(LIMIT),
            coordinator(place) as login,
            client_of(login) as client,
            depot(state),
        ):
            await uploaded(client, folder_in(place / "folder"))
            values = {**secret, "endpoint": store.endpoint.encode()}
            await client.secrets.set("store", values, kind=SecretKind.S3)
            async with agent(place, login, ending=signal.SIGKILL):
                in_depot = await client.jobs.submit(job(place), queue_anyway=True)
                in_store = await client.jobs.submit(
                    job(place, to=f"s3://{BUCKET}/runs", secret="store"), queue_anyway=True
                )
                for each in (in_depot, in_store):
                    assert [file.path for file in await until_stored(client, each.id)] == ["epoch-1"]
                    assert (await client.jobs.get(each.id)).phase is JobPhase.RUNNING
                    [left] = (await client.outputs.of(each.id)).ranks
                    assert left.outputs.stage is OutputsStage.LIVE
                await client.outputs.get(in_depot.id, place / "so-far")
                assert (place / "so-far" / "epoch-1").read_text() == "one\n"
                below = f"runs/publishes-{in_store.id}/1/0"
                assert store.objects() == {f"{below}/epoch-1"}
            (place / "goes").touch()
            async with agent(place, login):
                for each in (in_depot, in_store):
                    assert (await client.jobs.wait(each.id)).phase is JobPhase.SUCCEEDED
                    assert [file.path for file in await files_of(client, each.id)] == ["epoch-1", "epoch-2", "log"]
                    [left] = (await client.outputs.of(each.id)).ranks
                    assert (left.outputs.stage, left.outputs.files) == (OutputsStage.STORED, 3)
                await client.outputs.get(in_depot.id, place / "results")
                assert store.objects() == {f"{below}/{name}" for name in ("epoch-1", "epoch-2", "log")}
    assert (place / "results" / "epoch-1").read_text() == "one\n"
    assert (place / "results" / "log").read_text() == "begun\ndone\n"
    await until(lambda: not (place / "node" / "outputs").exists() or not list((place / "node" / "outputs").iterdir()))
