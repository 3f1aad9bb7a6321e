"""The mover as a process of its own, against a real server of objects."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import psutil
import pytest

from agent.data.cache import ArrivingInput
from agent.data.left_files import read_left_files
from agent.data.mover.messages import BucketPart
from agent.data.mover.mover import MOVER_DEATHS, Mover
from muster.domain.data.buckets.bucket_url import BucketUrl
from muster.domain.data.buckets.listing import StoredObject
from muster.domain.jobs.failure import ExecutionError
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError
from muster.transfer.store_access import StoreAccess
from tests.object_store import BUCKET, ObjectStore, object_store

LARGE = bytes(range(256)) * 80_000
"""More than two parts."""


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


def opened(store: ObjectStore, key_id: str = "somebody", key: str = "something") -> StoreAccess:
    return StoreAccess(endpoint=store.endpoint, key_id=key_id, key=key, secret="store", patience=20)


def named(key: str, bucket: str = BUCKET) -> BucketUrl:
    return BucketUrl(bucket=bucket, key=key)


def unheard(there: int) -> None:
    del there


async def looked_at(mover: Mover, store: ObjectStore, key: str) -> StoredObject:
    [found] = (await mover.listed(named(key), opened(store))).objects
    return found


async def test_objects_are_found_by_name_and_arrive_whole(store: ObjectStore, tmp_path: Path) -> None:
    store.put("data/train 1.tar", LARGE)
    for key in ("data/train 2.tar", "data/sub/ü#%20&.tar", "data/empty.tar", "other/x.tar"):
        store.put(key, b"" if "empty" in key else key.encode())
    for marker in ("data/sub/", "data/nothing/"):
        store.put(marker)
    mover, heard = Mover(), list[int]()
    async with mover.needed():
        listing = await mover.listed(named("data/**/*.tar"), opened(store))
        assert [(each.key, each.size) for each in listing.objects] == [
            ("data/empty.tar", 0),
            ("data/sub/ü#%20&.tar", 20),
            ("data/train 1.tar", len(LARGE)),
            ("data/train 2.tar", 16),
        ]
        assert {each.key for each in (await mover.listed(named("data/"), opened(store))).objects} == {
            each.key for each in listing.objects
        }
        for number, each in enumerate(listing.objects):
            part = tmp_path / str(number)
            digest = await mover.fetched(BUCKET, each, opened(store), part, heard.append)
            assert digest == sha256(part.read_bytes()).hexdigest()
            assert part.stat().st_size == each.size
        assert (tmp_path / "1").read_bytes() == "data/sub/ü#%20&.tar".encode()
        assert max(heard) == len(LARGE)
        program = psutil.Process(mover.pid)
        assert program.rlimit(psutil.RLIMIT_CORE) == (0, 0)
        assert not [name for name in program.environ() if name.startswith("AWS")]
        assert b"something" not in b" ".join(map(str.encode, program.cmdline()))
    assert mover.pid is None
    assert not program.is_running()


async def test_parts_of_objects_are_read_one_after_the_other(store: ObjectStore, tmp_path: Path) -> None:
    store.put("large", LARGE)
    store.put("small", b"0123456789")
    mover, heard, into = Mover(), list[int](), tmp_path / "piece"
    into.write_bytes(b"what was here before, and longer")
    async with mover.needed():
        small, large = [await looked_at(mover, store, key) for key in ("small", "large")]
        await mover.read(BUCKET, [BucketPart(small, 8, 10), BucketPart(large, 1, 3)], opened(store), into, heard.append)
        assert (into.read_bytes(), heard) == (b"89" + LARGE[1:3], [2, 4])
        await mover.read(BUCKET, [BucketPart(large, 0, large.size)], opened(store), into, heard.append)
        assert into.read_bytes() == LARGE
        with pytest.raises(BucketRefusedError, match="has changed since this job began"):
            await mover.read(BUCKET, [BucketPart(replace(small, version='"1"'), 0, 1)], opened(store), into, unheard)
        with pytest.raises(OSError, match="No such file"):
            await mover.read(BUCKET, [BucketPart(small, 0, 1)], opened(store), tmp_path / "none", unheard)


async def test_a_mover_that_is_killed_is_started_again_and_goes_on(store: ObjectStore, tmp_path: Path) -> None:
    store.put("large", LARGE)
    mover, place = Mover(pause=0), tmp_path / "part"
    killed = False

    def heard(there: int) -> None:
        nonlocal killed
        if there and not killed:
            killed = True
            assert mover.pid is not None
            os.kill(mover.pid, signal.SIGKILL)

    async with mover.needed():
        found = await looked_at(mover, store, "large")
        digest = await mover.fetched(BUCKET, found, opened(store), place, heard)
    assert killed
    assert digest == sha256(LARGE).hexdigest()
    assert place.read_bytes() == LARGE


async def test_a_mover_that_never_answers_is_not_started_for_ever() -> None:
    mover = Mover([sys.executable, "-c", "raise SystemExit(3)"], pause=0)
    async with mover.needed():
        with pytest.raises(ExecutionError, match=f"ended {MOVER_DEATHS} times in a row: exit code 3"):
            await mover.listed(named("a"), StoreAccess())


async def test_what_is_there_of_the_same_version_is_not_fetched_again(store: ObjectStore, tmp_path: Path) -> None:
    store.put("large", LARGE)
    mover, place = Mover(), tmp_path / "part"
    async with mover.needed():
        found = await looked_at(mover, store, "large")
        part = ArrivingInput(place)
        part.begin_anew(found.version)
        part.write(LARGE[:12_000_000])
        part.close()
        heard: list[int] = []
        assert await mover.fetched(BUCKET, found, opened(store), place, heard.append) == sha256(LARGE).hexdigest()
        assert heard[0] == 12_000_000
        store.put("large", b"another one")
        again = await looked_at(mover, store, "large")
        part = ArrivingInput(place)
        part.close()
        assert await mover.fetched(BUCKET, again, opened(store), place, unheard) == sha256(b"another one").hexdigest()
        assert place.read_bytes() == b"another one"


@pytest.mark.parametrize(
    ("access", "bucket", "key", "sentence"),
    [
        (opened, BUCKET, "none", "there is no object s3://acme/none"),
        (opened, BUCKET, "data/x*", "there is no object s3://acme/data/x\\*; there are objects such as data/a"),
        (opened, "nobody", "a", "there is no such bucket: s3://nobody/a"),
        (
            lambda _: StoreAccess(endpoint="quark", secret="store"),
            BUCKET,
            "a",
            "'store' has an endpoint that is no URL",
        ),
        (
            lambda it: StoreAccess(endpoint=it.endpoint, ca="quark", secret="store"),
            BUCKET,
            "a",
            "'store' cannot be used",
        ),
        (
            lambda _: StoreAccess(endpoint="http://169.254.169.254", secret="store"),
            BUCKET,
            "a",
            "leads to 169.254.169.254, an address of the link itself",
        ),
        (lambda it: StoreAccess(endpoint=it.endpoint), BUCKET, "data/a", "s3://acme/data/a is not open to everybody"),
    ],
)
async def test_what_cannot_be_had_says_why(
    store: ObjectStore, access: Callable[[ObjectStore], StoreAccess], bucket: str, key: str, sentence: str
) -> None:
    store.put("data/a", b"a")
    mover = Mover()
    async with mover.needed():
        with pytest.raises(BucketRefusedError, match=sentence):
            await mover.listed(named(key, bucket), access(store))


async def test_a_wrong_secret_and_a_changed_object_are_refused_and_a_silent_store_is_away(
    store: ObjectStore, tmp_path: Path
) -> None:
    store.put("a", b"first")
    mover = Mover()
    async with mover.needed():
        found = await looked_at(mover, store, "a")
        store.put("a", b"other")
        with pytest.raises(BucketRefusedError, match="s3://acme/a has changed since this job began"):
            await mover.fetched(BUCKET, found, opened(store), tmp_path / "part", unheard)
        key_id, key = store.shut()
        with pytest.raises(BucketRefusedError, match=r"refuses the secret 'store' \(SignatureDoesNotMatch\)"):
            await mover.listed(named("a"), opened(store, key_id, "wrong"))
        with pytest.raises(BucketRefusedError, match=r"refuses the secret 'store' \(InvalidAccessKeyId\)"):
            await mover.listed(named("*"), opened(store))
        assert (await mover.listed(named("*"), opened(store, key_id, key))).size == 5
        with pytest.raises(BucketAwayError, match="s3://acme/a cannot be reached"):
            await mover.listed(named("a"), StoreAccess(endpoint="http://127.0.0.1:9", secret="store"))


async def test_files_become_objects_whole_or_not_at_all(store: ObjectStore, tmp_path: Path) -> None:
    mover = Mover()
    (tmp_path / "small").write_bytes(b"words")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "large").write_bytes(LARGE)
    found = read_left_files(tmp_path, None, 2**40)
    async with mover.needed():
        for each in found.tree.entries:
            await mover.stored(named(f"runs/{each.path}"), opened(store), found.files[each.content], each)
        assert [store.get(f"runs/{name}") for name in ("small", "empty", "large")] == [b"words", b"", LARGE]
        for name, content in (("small", b"other"), ("large", b"x" * len(LARGE))):
            (tmp_path / name).write_bytes(content)
        for each in (each for each in found.tree.entries if each.size):
            with pytest.raises(OSError, match="changes while it is sent"):
                await mover.stored(named(f"more/{each.path}"), opened(store), found.files[each.content], each)
        assert {key for key in store.objects() if key.startswith("more/")} == set()
        key_id, _ = store.shut()
        [small] = [each for each in found.tree.entries if each.path == "small"]
        (tmp_path / "small").write_bytes(b"words")
        with pytest.raises(BucketRefusedError, match="s3://acme/more refuses the secret 'store'"):
            await mover.stored(named("more"), opened(store, key_id, "wrong"), found.files[small.content], small)


async def test_a_caller_who_leaves_lets_go_of_the_file(store: ObjectStore, tmp_path: Path) -> None:
    store.put("large", LARGE)
    mover, place = Mover(), tmp_path / "part"
    came = asyncio.Event()
    async with mover.needed():
        found = await looked_at(mover, store, "large")
        fetch = asyncio.create_task(mover.fetched(BUCKET, found, opened(store), place, lambda _: came.set()))
        await came.wait()
        fetch.cancel()
        await asyncio.wait([fetch])
        async with asyncio.timeout(20):
            while True:
                try:
                    digest = await mover.fetched(BUCKET, found, opened(store), place, unheard)
                except BucketAwayError:  # the first one has not let go yet
                    continue
                break
    assert digest == sha256(LARGE).hexdigest()
