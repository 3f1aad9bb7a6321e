"""Objects of a store from the job file to user code, with a real coordinator, agent, mover and store."""

import json
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.job_input import JobInput
from muster.domain.data.pattern import InputLayout
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from tests.integration.programs import agent, coordinator
from tests.object_store import ObjectStore, object_store

READS = """cd "$MUSTER_INPUTS_DIR/shards" && echo $(find * -type f | sort | xargs cat) && env
cat "$MUSTER_CONFIG_DIR/inputs.json"
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the node's user for jobs can get to, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="muster-inputs-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


def job(url: str, script: str = READS, secret: str = "store", limit: int = 0) -> JobSpec:
    given = (JobInput(name="shards", url=url, secret=secret),)
    role = Role(count=2, command=("/bin/sh", "-c", script), inputs=given)
    return JobSpec(name="with-objects", roles=(role,), restarts=RestartPolicy(limit=limit, infrastructure=0))


def split_job() -> JobSpec:
    """Two executions, each of which prints the names of its part."""
    shards = JobInput(name="shards", url="s3://acme/data/", secret="store", split=True, layout=InputLayout.FLAT)
    names = 'ls "$MUSTER_INPUTS_DIR/shards" | tr "\\n" " "'
    role = Role(count=2, command=("/bin/sh", "-c", names), inputs=(shards,))
    return JobSpec(name="with-parts", roles=(role,))


def several_job() -> JobSpec:
    """Two executions, each of which prints the paths of its part of what two URLs hold."""
    urls = ("s3://acme/data/other.bin", "s3://acme/data/**/*.txt")
    shards = JobInput(name="shards", urls=urls, secret="store", split=True)
    paths = 'cd "$MUSTER_INPUTS_DIR/shards" && find * -type f | sort | tr "\\n" " "'
    return JobSpec(name="of-several", roles=(Role(count=2, command=("/bin/sh", "-c", paths), inputs=(shards,)),))


async def keep_secret(client: Client, store: ObjectStore, key_id: str, key: str, name: str = "store") -> None:
    values = {"endpoint": store.endpoint.encode(), "access-key-id": key_id.encode(), "secret-access-key": key.encode()}
    await client.secrets.set(name, values, kind=SecretKind.S3)


async def test_objects_of_a_store_are_there_for_all_ranks_and_its_keys_are_not(place: Path, store: ObjectStore) -> None:
    store.put("data/train-0.txt", b"one\n")
    store.put("data/sub/train-1.txt", b"two\n")
    store.put("data/other.bin", b"more")
    key_id, key = store.shut()
    async with coordinator(place) as login, client_of(login) as client, agent(place, login):
        await keep_secret(client, store, key_id, key)
        submitted = await client.jobs.submit(job("s3://acme/data/**/*.txt"), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
        assert ended.phase is JobPhase.SUCCEEDED, ended.failure
        for rank in (0, 1):
            printed = [line.text async for line in client.jobs.logs(submitted.id, follow=True) if line.rank == rank]
            assert printed[0] == b"two one"
            text = b"\n".join(printed)
            assert key.encode() not in text
            listed = json.loads(text[text.index(b'{\n  "shards"') :])["shards"]["files"]
            assert [(each["name"], each["size"], each["uri"]) for each in listed] == [
                ("train-1.txt", 4, "s3://acme/data/sub/train-1.txt"),
                ("train-0.txt", 4, "s3://acme/data/train-0.txt"),
            ]
            assert listed[1]["checksums"] == {"sha256": sha256(b"one\n").hexdigest()}
            assert listed[0]["path"].endswith("/inputs/shards/sub/train-1.txt")
        parts = await client.jobs.submit(split_job(), queue_anyway=True)
        assert (await client.jobs.wait(parts.id)).phase is JobPhase.SUCCEEDED
        names = {line.rank: line.text async for line in client.jobs.logs(parts.id, follow=True)}
        assert names == {0: b"other.bin train-1.txt ", 1: b"train-0.txt "}
        several = await client.jobs.submit(several_job(), queue_anyway=True)
        assert (await client.jobs.wait(several.id)).phase is JobPhase.SUCCEEDED
        paths = {line.rank: line.text async for line in client.jobs.logs(several.id, follow=True)}
        assert paths == {0: b"other.bin train-0.txt ", 1: b"sub/train-1.txt "}
        await keep_secret(client, store, key_id, "wrong", name="bad")
        refused = await client.jobs.submit(job("s3://acme/data/*", secret="bad"), queue_anyway=True)
        failure = (await client.jobs.wait(refused.id)).failure
        assert failure is not None
        assert failure.kind is FailureKind.DATA_REFUSED
        assert "inputs.shards: s3://acme/data/* refuses the secret 'bad' (SignatureDoesNotMatch)" in failure.message
        with pytest.raises(InvalidJobError, match=r"inputs\.shards\.secret: project default has no secret 'none'"):
            await client.jobs.submit(job("s3://acme/data/*", secret="none"), queue_anyway=True)


async def test_a_later_attempt_has_the_objects_that_the_first_one_found(place: Path, store: ObjectStore) -> None:
    store.put("data/1", b"one\n")
    script = 'ls "$MUSTER_INPUTS_DIR/shards"; exit $((1 - MUSTER_ATTEMPT / 2))'
    async with coordinator(place) as login, client_of(login) as client, agent(place, login):
        await keep_secret(client, store, "anybody", "anything")
        submitted = await client.jobs.submit(job("s3://acme/data/", script, limit=1), queue_anyway=True)
        async for line in client.jobs.logs(submitted.id, follow=True):
            assert line.text == b"1"
            store.put("data/2", b"two\n")
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
        store.put("data/1", b"another\n")
        again = await client.jobs.submit(job("s3://acme/data/"), queue_anyway=True)
        assert (await client.jobs.wait(again.id)).phase is JobPhase.SUCCEEDED
        [first, *_] = [line.text async for line in client.jobs.logs(again.id, follow=True) if line.rank == 0]
        assert first == b"another two"
