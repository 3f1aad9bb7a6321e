"""What callers may do with bundles; no transport is involved."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coordinator.service.bundles import BundleOperations, Piece
from coordinator.store.bundles import BundleStore
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError
from muster.domain.fleet.access import Access
from tests.small_bundles import make_bundle
from tests.unit.coordinator.service.callers import Trusted, of_all

ADMIN, OPERATOR = of_all(Access.ADMIN), of_all(Access.OPERATOR, "op")


class Sender:
    """Sends a file in two pieces once it is told to, and counts how often that was."""

    def __init__(self, file: Path) -> None:
        self.told = 0
        self._file = file

    async def ready(self) -> None:
        self.told += 1

    async def pieces(self) -> AsyncIterator[Piece]:
        content = self._file.read_bytes()
        yield self._file.name, content[:1000]
        yield "", content[1000:]


def bundles(trusted: Trusted, directory: Path) -> BundleOperations:
    return BundleOperations(trusted.operations, BundleStore(directory / "kept", left_free=0))


async def test_a_bundle_is_kept_listed_given_out_and_removed(tmp_path: Path) -> None:
    trusted, sender = Trusted(), Sender(make_bundle(tmp_path))
    operations = bundles(trusted, tmp_path)

    kept = await operations.put(ADMIN, sender.ready, sender.pieces())
    listed, signers = await operations.list(OPERATOR)
    async with operations.get(OPERATOR, "") as (found, pieces):
        content = b"".join([piece async for piece in pieces])
    await operations.remove(ADMIN, kept.name)

    assert ([kept], [], kept) == (list(listed), list(signers), found)
    assert content == (tmp_path / kept.name).read_bytes()
    assert (await operations.list(OPERATOR))[0] == ()
    assert await trusted.told() == [
        ("root", "bundles.put", kept.name, "ok"),
        ("root", "bundles.remove", kept.name, "ok"),
    ]


async def test_nobody_is_told_to_send_who_may_not(tmp_path: Path) -> None:
    trusted, sender = Trusted(), Sender(make_bundle(tmp_path))

    with pytest.raises(PermissionDeniedError, match="needs admin access to every project"):
        await bundles(trusted, tmp_path).put(OPERATOR, sender.ready, sender.pieces())

    assert sender.told == 0
    assert await trusted.told() == [("op", "bundles.put", "", "needs admin (everywhere)")]


async def test_one_bundle_arrives_at_a_time(tmp_path: Path) -> None:
    first, second = Sender(make_bundle(tmp_path)), Sender(make_bundle(tmp_path, "2.0"))
    operations = bundles(Trusted(), tmp_path)

    async def meanwhile() -> AsyncIterator[Piece]:
        async for piece in first.pieces():
            yield piece
            with pytest.raises(ConflictError, match="another bundle is being uploaded"):
                await operations.put(ADMIN, second.ready, second.pieces())

    kept = await operations.put(ADMIN, first.ready, meanwhile())

    assert kept.version == "1.0"


async def test_what_has_no_pieces_is_no_bundle(tmp_path: Path) -> None:
    trusted = Trusted()

    async def nothing() -> AsyncIterator[Piece]:
        for piece in tuple[Piece, ...]():
            yield piece

    with pytest.raises(InvalidJobError):
        await bundles(trusted, tmp_path).put(ADMIN, Sender(tmp_path).ready, nothing())

    assert await trusted.told() == [("root", "bundles.put", "", "invalid_argument")]
