"""Nodes of a gang that fetch the same objects: their store gives each once, whatever the nodes do to each other."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.data.buckets.listing import BucketListing, StoredObject
from muster.domain.data.job_input import JobInput
from muster.domain.fleet.secret import DeliveredSecret, SecretKind
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from tests.integration.cable import Cable
from tests.integration.swarms import GangNode, gang_of
from tests.object_store import ObjectStore, object_store

LARGE = random.Random(1).randbytes(6 * 1024 * 1024 + 7)
SMALL = {f"small-{number:02}": random.Random(number).randbytes(40_000) for number in range(40)}
WHOLE = b"".join((LARGE, *SMALL.values()))
SHARDS = JobInput(name="shards", url="s3://acme/data/", secret="store")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """A large object, forty small ones, and one that is empty."""
    with object_store() as found:
        found.put("data/large", LARGE)
        for name, content in SMALL.items():
            found.put(f"data/{name}", content)
        found.put("data/nothing")
        yield found


@asynccontextmanager
async def reaching(store: ObjectStore, directory: Path, *names: str) -> AsyncIterator[tuple[Cable, list[GangNode]]]:
    """Nodes of a gang that reach a store over one line, which counts what it brings."""
    async with asyncio.TaskGroup() as tasks:
        line = Cable(tasks)
        await line.lay(store.endpoint.removeprefix("http://"))
        values = {"endpoint": f"http://{line.address}", "access-key-id": "somebody", "secret-access-key": "something"}
        secret = DeliveredSecret(
            name="store", kind=SecretKind.S3, values={name: value.encode() for name, value in values.items()}
        )

        async def keys(execution: ExecutionId) -> Sequence[DeliveredSecret]:
            del execution
            return (secret,)

        async with gang_of(directory, *names, keys=keys) as nodes:
            yield line, nodes
        await line.take_up()


async def test_three_nodes_cost_the_store_one_download(store: ObjectStore, tmp_path: Path) -> None:
    async with reaching(store, tmp_path, "a", "b", "c") as (line, nodes):
        assert await asyncio.gather(*(node.fetch(SHARDS) for node in nodes)) == [WHOLE] * 3
        assert line.brought <= 1.05 * len(WHOLE)
        assert all(any("from other nodes" in detail for detail in node.said) for node in nodes)


async def test_the_others_end_when_a_node_goes_away_half_way(store: ObjectStore, tmp_path: Path) -> None:
    async with reaching(store, tmp_path, "a", "b", "c") as (line, [first, second, third]):
        leaving = asyncio.Event()
        lost = asyncio.create_task(third.fetch(SHARDS, lambda detail: leaving.set() if " of " in detail else None))
        others = [asyncio.create_task(node.fetch(SHARDS)) for node in (first, second)]
        await leaving.wait()
        lost.cancel()
        await third.fall_silent()
        assert await asyncio.gather(*others) == [WHOLE] * 2
        assert line.brought <= 1.5 * len(WHOLE)


async def test_an_object_that_has_changed_since_is_refused_by_the_nodes_of_a_gang(
    store: ObjectStore, tmp_path: Path
) -> None:
    given = replace(SHARDS, url="s3://acme/data/large")
    began_with = StoredObject(key="data/large", size=len(LARGE), version='"1"')
    async with reaching(store, tmp_path, "a", "b") as (_, nodes):
        nodes[0].gang.noted[given.origin] = BucketListing((began_with,)).found(given.origin)
        for refused in await asyncio.gather(*(node.fetch(given) for node in nodes), return_exceptions=True):
            assert isinstance(refused, ExecutionError)
            assert refused.kind is FailureKind.DATA_REFUSED
            assert "s3://acme/data/large has changed since this job began" in str(refused)


async def test_what_other_nodes_were_believed_counts_for_their_project_alone(
    store: ObjectStore, tmp_path: Path
) -> None:
    async with reaching(store, tmp_path, "a", "b") as (line, nodes):
        held = await asyncio.gather(*(node.fetch(replace(SHARDS, url="s3://acme/data/large")) for node in nodes))
        assert held == [LARGE] * 2
        kept = nodes[0].cache
        name = f"http://{line.address} s3://acme/data/large"
        assert kept.known(name, "default") is not None
        assert kept.known(name, "another") is None
