"""Parts of checkpoints in a real server of objects: sent, fetched, compared and removed by the real mover."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.data.checkpoints.in_stores import PartsInStores
from agent.data.left_files import LeftFiles, ReadFiles, read_left_files
from agent.data.mover.mover import Mover
from muster.domain.data.checkpoint import CheckpointPlace, part_directory
from muster.domain.errors import UnavailableError
from muster.transfer.bucket_faults import BucketRefusedError, NoObjectError
from muster.transfer.objects import WrongContentError
from tests.object_store import BUCKET, ObjectStore, object_store

BELOW = "saved/train-j1"


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


@pytest.fixture
def parts() -> PartsInStores:
    return PartsInStores(Mover())


def place_in(store: ObjectStore, attempt: int = 1, key: str = "something", endpoint: str = "") -> CheckpointPlace:
    opens = {"endpoint": endpoint or store.endpoint, "access-key-id": "somebody", "secret-access-key": key}
    return CheckpointPlace(
        to=f"s3://{BUCKET}/{BELOW}/{attempt}/0",
        secret="store",
        opens={name: value.encode() for name, value in opens.items()},
        earlier=tuple(f"s3://{BUCKET}/{BELOW}/{number}/0" for number in range(1, attempt)),
    )


def saved(directory: Path, content: str) -> LeftFiles:
    """A checkpoint of two files, one of which is a program."""
    step = directory / content / "step"
    (step / "a b").mkdir(parents=True)
    (step / "a b" / "ü?*").write_text(content)
    (step / "run").write_text(f"#!{content}")
    (step / "run").chmod(0o755)
    return read_left_files(step.parent, None, 1 << 30, which=ReadFiles(entry="step"))


def unheard(count: int) -> None:
    del count


async def test_a_part_comes_back_as_it_was_and_a_break_is_gone_on_with(
    store: ObjectStore, parts: PartsInStores, tmp_path: Path
) -> None:
    found, place, into, heard = saved(tmp_path, "one"), place_in(store), tmp_path / "back" / "saved", list[int]()
    into.mkdir(parents=True)
    await parts.send(place, found)
    for _ in range(2):
        await parts.fetch(place, found.tree.digest, found.tree.entries, into, heard.append)
        assert sum(heard) == found.tree.size
        heard.clear()
    assert (into / "step" / "a b" / "ü?*").read_text() == "one"
    assert (into / "step" / "run").stat().st_mode & 0o777 == 0o755
    assert read_left_files(into, None, 1 << 30, which=ReadFiles(entry="step")).tree == found.tree


async def test_what_is_not_as_it_was_stored_is_not_restored(
    store: ObjectStore, parts: PartsInStores, tmp_path: Path
) -> None:
    found, place = saved(tmp_path, "one"), place_in(store)
    await parts.send(place, found)
    (tmp_path / "x").mkdir()
    below = f"{BELOW}/1/0/{part_directory(found.tree.digest)}/step"
    store.put(f"{below}/run", b"#!two")
    with pytest.raises(WrongContentError, match="run holds something else than was stored"):
        await parts.fetch(place, found.tree.digest, found.tree.entries, tmp_path / "x" / "1", unheard)
    store.remove(f"{below}/run")
    with pytest.raises(WrongContentError, match="run is not there as it was stored"):
        await parts.fetch(place, found.tree.digest, found.tree.entries, tmp_path / "x" / "2", unheard)
    for key in store.objects():
        store.remove(key)
    with pytest.raises(NoObjectError):
        await parts.fetch(place, found.tree.digest, found.tree.entries, tmp_path / "x" / "3", unheard)


async def test_what_does_not_stay_is_removed_from_all_attempts_of_the_rank_and_nothing_else(
    store: ObjectStore, parts: PartsInStores, tmp_path: Path
) -> None:
    trees = {}
    for attempt, content in ((1, "one"), (1, "two"), (2, "three"), (2, "four")):
        found = saved(tmp_path, content)
        trees[content] = found.tree.digest
        await parts.send(place_in(store, attempt), found)
    store.put(f"{BELOW}/1/1/other-rank")
    store.put(f"{BELOW}/1/01/other")
    await parts.clear(place_in(store, 2), {trees["two"], trees["four"]})
    left = {tuple(key.removeprefix(f"{BELOW}/").split("/")[:3]) for key in store.objects()}
    assert left == {
        ("1", "0", part_directory(trees["two"])),
        ("2", "0", part_directory(trees["four"])),
        ("1", "1", "other-rank"),
        ("1", "01", "other"),
    }


async def test_a_store_that_is_away_or_shut_is_told_apart_and_removing_waits_for_another_time(
    store: ObjectStore, parts: PartsInStores, tmp_path: Path
) -> None:
    found = saved(tmp_path, "one")
    with pytest.raises(UnavailableError):
        await parts.send(place_in(store, endpoint="http://127.0.0.1:1"), found)
    key_id, _ = store.shut()
    opens = {**place_in(store).opens, "access-key-id": key_id.encode()}
    shut = replace(place_in(store), opens=opens)
    with pytest.raises(BucketRefusedError, match="refuses the secret 'store'"):
        await parts.send(shut, found)
    await parts.clear(shut, ())
