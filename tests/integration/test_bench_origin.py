"""The servers of the benchmarks give and take what nodes need, and count it."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

from bench.data.origin import origin
from bench.data.repositories import certificates, repository
from bench.data.stores import store
from muster.transfer.buckets import SENT_PART, BucketWriter, ObjectBucket
from muster.transfer.store_access import store_access
from muster.transfer.web_file import PartHere, WebFile

CONTENT = bytes(range(256)) * 4096


def read(url: str, here: PartHere) -> tuple[bool, bytes]:
    with WebFile(url, here) as file:
        found = b""
        while part := file.read():
            found += part
        return file.unchanged, found


async def test_parts_are_given_and_counted_and_a_version_that_is_there_costs_nothing(tmp_path: Path) -> None:
    async with origin(tmp_path, CONTENT, rate=1 << 30) as served:
        first, second = served.fresh(), served.fresh()
        assert first.url != second.url
        assert await asyncio.to_thread(read, first.url, PartHere()) == (False, CONTENT)
        part = PartHere(offset=1000, end=3000)
        assert await asyncio.to_thread(read, second.url, part) == (False, CONTENT[1000:3000])
        assert await served.given() == len(CONTENT) + 2000
        version = f'"{first.url.removeprefix(served.url)}"'
        assert await asyncio.to_thread(read, first.url, PartHere(whole=version)) == (True, b"")
        assert await served.given() == len(CONTENT) + 2000


async def pieces(length: int) -> AsyncIterator[bytes]:
    for _ in range(2):
        yield bytes(length)


async def test_the_store_takes_objects_at_once_and_in_parts(tmp_path: Path) -> None:
    async with store(tmp_path) as endpoint:
        values = {"endpoint": endpoint.encode(), "access-key-id": b"anybody", "secret-access-key": b"anything"}
        writer = BucketWriter(ObjectBucket(store_access("store", values, 20.0), "bench"))
        await writer.write("small", 2, pieces)
        await writer.write("large", 2 * SENT_PART, pieces)


async def test_fetches_of_a_commit_are_counted_and_questions_for_names_are_not(tmp_path: Path) -> None:
    authority = certificates(tmp_path)
    async with repository(tmp_path) as found:
        environment = {**os.environ, "GIT_SSL_CAINFO": str(authority), "HOME": str(tmp_path)}
        counts = [await found.fetches()]
        for words in (("ls-remote", found.url), ("clone", "--quiet", found.url, str(tmp_path / "clone"))):
            await asyncio.to_thread(subprocess.run, ["git", *words], check=True, env=environment, capture_output=True)
            counts.append(await found.fetches())
        assert counts == [0, 0, 1]
