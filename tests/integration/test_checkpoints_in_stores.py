"""Checkpoints that go to a store, with a real coordinator, agent, mover, depot and store."""

from pathlib import Path

import pytest

from agent.data.checkpoints.store import KEPT_PARTS
from muster.client.client import Client
from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from tests.integration.output_fleets import fleet, place
from tests.object_store import BUCKET, ObjectStore, object_store

__all__ = ["place"]

LARGE = 9_000_000
"""More than is sent to a store at once."""
SAVES = f"""
cd "$MUSTER_CHECKPOINT_DIR"
save() {{
    mkdir "$1.tmp"; echo "$1" > "$1.tmp/n ü"; head -c {LARGE} /dev/zero > "$1.tmp/large"
    chmod +x "$1.tmp/n ü"; touch ".$1.finished"; mv "$1.tmp" "$1"
}}
"""
GOES_ON = (
    SAVES
    + """
if [ "$MUSTER_ATTEMPT" = 1 ]; then save one; exit 1; fi
if [ "$MUSTER_ATTEMPT" = 2 ]; then save two; exit 1; fi
ls -1 "$MUSTER_CHECKPOINT"; cat "$MUSTER_CHECKPOINT/n ü"; wc -c < "$MUSTER_CHECKPOINT/large"
test -x "$MUSTER_CHECKPOINT/n ü" && env | grep swordfish; save three
"""
)


def job(script: str, limit: int = 3, secret: str = "store") -> JobSpec:
    checkpoint = JobCheckpoint(to=f"s3://{BUCKET}/saved/", secret=secret, keep=1)
    role = Role(command=("/bin/sh", "-c", script), checkpoint=checkpoint)
    return JobSpec(name="saves", roles=(role,), restarts=RestartPolicy(limit=limit))


async def keep_secret(client: Client, store: ObjectStore) -> None:
    values = {"endpoint": store.endpoint, "access-key-id": "anybody", "secret-access-key": "swordfish"}
    await client.secrets.set("store", {k: v.encode() for k, v in values.items()}, kind=SecretKind.S3)


def keep_no_parts(place: Path) -> None:
    """Have a node that is not there yet keep no parts on its own disk, so that all come from the store."""
    (place / "node").mkdir()
    (place / "node" / KEPT_PARTS).touch()


async def test_the_next_attempt_finds_what_was_saved_to_a_store_and_what_is_too_old_goes(place: Path) -> None:
    keep_no_parts(place)
    with object_store() as store:
        async with fleet(place) as client:
            await keep_secret(client, store)
            submitted = await client.jobs.submit(job(GOES_ON), queue_anyway=True)
            ended = await client.jobs.wait(submitted.id)
            assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 3), ended.failure
            printed = [line.text async for line in client.jobs.logs(ended.id) if line.attempt == 3]
            assert printed == [b"large", "n ü".encode(), b"two", str(LARGE).encode()]
            below = f"saved/saves-{ended.id}"
            there = {tuple(key.removeprefix(f"{below}/").split("/")) for key in store.objects()}
            assert {(attempt, rank, *path) for attempt, rank, _, *path in there} == {
                (attempt, "0", name, file)
                for attempt, name in (("2", "two"), ("3", "three"))
                for file in ("large", "n ü")
            }
            saved = (await client.checkpoints.of(ended.id)).checkpoints
            assert [(each.name, each.bytes) for each in saved if each.whole] == [
                ("three", LARGE + 6),
                ("two", LARGE + 4),
            ]
            with pytest.raises(
                ConflictError, match=f"of rank 0 of checkpoint three of attempt 3 lies in s3://{BUCKET}"
            ):
                await client.checkpoints.get(ended.id, place / "saved")
            with pytest.raises(InvalidJobError, match=r"checkpoint\.secret: project default has no secret 'none'"):
                await client.jobs.submit(job("true", secret="none"), queue_anyway=True)
