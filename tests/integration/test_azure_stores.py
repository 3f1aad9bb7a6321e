"""Objects of Azure as inputs and outputs, with a real coordinator, agent, mover, depot and a server that speaks so."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.data.mover.mover import Mover
from muster.client.client import Client
from muster.domain.data.buckets.bucket_url import read_bucket_url
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import OutputsStage
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.transfer.bucket_faults import BucketRefusedError
from muster.transfer.store_access import StoreAccess
from tests.azure_store import ACCOUNT, CONTAINER, KEY, AzureServer, azure_store
from tests.integration.output_fleets import fleet, place

__all__ = ["place"]

LARGE = 20_000_000
LEAVES = f'cd "$MUSTER_OUTPUTS_DIR"; mkdir "a b"; echo one > "a b/ü.txt"; head -c {LARGE} /dev/zero > large'
SHOWS = 'cd "$MUSTER_INPUTS_DIR/left" && cat "a b/ü.txt" && wc -c < large; env'


@pytest.fixture(scope="module")
def store() -> Iterator[AzureServer]:
    with azure_store() as found:
        yield found


async def keep_secret(client: Client, store: AzureServer, name: str, **more: str) -> None:
    values = {"account": ACCOUNT, "endpoint": store.endpoint, **more}
    await client.secrets.set(name, {key: it.encode() for key, it in values.items()}, kind=SecretKind.AZURE)


def files_below(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in path.rglob("*") if each.is_file()]


def leaves(secret: str) -> JobSpec:
    terms = OutputTerms(to=f"az://{CONTAINER}/runs/{{{{muster:role}}}}", secret=secret)
    return JobSpec(name="leaves", roles=(Role(command=("/bin/sh", "-c", LEAVES), outputs=terms),))


def shows(url: str) -> JobSpec:
    given = (JobInput(name="left", url=url, secret="reads"),)
    return JobSpec(name="shows", roles=(Role(command=("/bin/sh", "-c", SHOWS), inputs=given),))


async def test_what_one_job_leaves_in_a_container_another_one_reads_by_a_signature(
    place: Path, store: AzureServer
) -> None:
    signature = store.signature()
    async with fleet(place) as client:
        await keep_secret(client, store, "writes", key=KEY)
        await keep_secret(client, store, "reads", sas=signature)
        first = await client.jobs.submit(leaves("writes"), queue_anyway=True)
        assert (await client.jobs.wait(first.id)).phase is JobPhase.SUCCEEDED
        below = f"runs/worker/leaves-{first.id}/1/0"
        assert store.get(f"{below}/a b/ü.txt") == b"one\n"
        second = await client.jobs.submit(shows(f"az://{CONTAINER}/{below}/"), queue_anyway=True)
        assert (await client.jobs.wait(second.id)).phase is JobPhase.SUCCEEDED
        printed = [line.text async for line in client.jobs.logs(second.id, follow=True)]
        assert printed[:2] == [b"one", str(LARGE).encode()]
        refused = await client.jobs.submit(leaves("reads"), queue_anyway=True)
        await client.jobs.wait(refused.id)
        [left] = (await client.outputs.of(refused.id)).ranks
        assert left.outputs.stage is OutputsStage.ON_NODE
        assert f"az://{CONTAINER}/runs/worker/leaves-{refused.id}/1/0/" in left.outputs.why
        assert "refuses the secret 'reads' (Authorization" in left.outputs.why
    proof = signature.rpartition("sig=")[2].encode()
    assert not [each for each in (*printed, *files_below(place)) if KEY.encode() in each or proof in each]


@pytest.mark.parametrize(
    ("url", "more", "sentence"),
    [
        ("az://acme/none", {}, r"there is no object az://acme/none \(BlobNotFound\)"),
        ("az://acme/data/x*", {}, r"there is no object az://acme/data/x\*; there are objects such as data/a"),
        ("az://nobody/a", {}, "there is no such container: az://nobody/a"),
        ("az://nobody/*", {}, r"there is no such container: az://nobody/\*"),
        ("az://acme/data/a", {"key": b64encode(b"another key").decode()}, "refuses the secret 'store'"),
        ("az://acme/data/a", {"key": "quark"}, "'store' cannot be used: its key, sas, endpoint or ca is none"),
        ("az://acme/data/a", {"account": "evil.example.org/"}, "'store' has an account that is no name"),
    ],
)
async def test_what_cannot_be_had_of_a_container_says_why(
    store: AzureServer, url: str, more: dict[str, str], sentence: str
) -> None:
    store.put("data/a", b"a")
    named, mover = read_bucket_url(url), Mover()
    assert named is not None
    said = {"endpoint": store.endpoint, "account": ACCOUNT, "key": KEY, "secret": "store", **more}
    async with mover.needed():
        with pytest.raises(BucketRefusedError, match=sentence):
            await mover.listed(named, StoreAccess(patience=20, **said))
