"""The web server of the benchmarks gives what a node needs to share a download, and counts it."""

import asyncio
from pathlib import Path

from bench.data.origin import origin
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
