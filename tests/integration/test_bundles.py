"""Bundles that a coordinator keeps and gives out, over its own TLS."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpc.aio import AioRpcError

from coordinator.store.bundles import MOST_BUNDLES
from muster.bootstrap.installation.delivery import fetched
from muster.bundle.archive import verify_bundle
from muster.bundle.manifest import InvalidBundleError
from muster.client.client import Client
from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    MusterError,
    PermissionDeniedError,
    UnknownNameError,
)
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.status import error_from
from muster.rpc.v1 import bundles_pb2 as pb
from muster.rpc.v1.bundles_pb2_grpc import BundleServiceStub
from muster.trust.signing import key_fingerprint, new_signing_key, public_half
from tests.integration.secured import Secured, secured
from tests.small_bundles import make_bundle


async def test_a_bundle_comes_back_as_it_was_uploaded(tmp_path: Path) -> None:
    file = make_bundle(tmp_path, "1.0", {"install.sh": b"#!/bin/sh\n", "wheels/a-1.0-py3-none-any.whl": bytes(3 << 20)})
    told: list[int] = []
    (tmp_path / "here").mkdir()
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:
        kept = await client.bundles.upload(file, tell=told.append)
        fetched, path = await client.bundles.download(tmp_path / "here")
        assert await client.bundles.list() == (kept,) == (fetched,)

    assert kept.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (kept.name, kept.version, kept.platforms, kept.size) == (
        "muster-1.0-cp311-x86_64.tar",
        "1.0",
        ("cp311-x86_64",),
        file.stat().st_size,
    )
    assert path == tmp_path / "here" / file.name
    assert path.read_bytes() == file.read_bytes()
    assert told[-1] == file.stat().st_size
    assert verify_bundle(path).version == "1.0"


async def test_the_newest_version_is_given_out_and_the_oldest_makes_room(tmp_path: Path) -> None:
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:
        for minor in (*range(2, MOST_BUNDLES + 3), 1):
            await client.bundles.upload(make_bundle(tmp_path, f"1.{minor}"))
        kept = [bundle.version for bundle in await client.bundles.list()]
        newest, _ = await client.bundles.download(tmp_path)
    assert kept == [f"1.{minor}" for minor in range(MOST_BUNDLES + 2, 2, -1)]
    assert newest.version == f"1.{MOST_BUNDLES + 2}"
    assert len(list((tmp_path / "state" / "bundles").iterdir())) == MOST_BUNDLES


async def test_a_bundle_is_fetched_by_its_version_or_its_name(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:
        for version in ("1.0", "2.0"):
            await client.bundles.upload(make_bundle(tmp_path, version))
        found = [
            (await fetched(client, here, wanted)).manifest.version
            for wanted in ("", "1.0", "muster-1.0-cp311-x86_64.tar", "2.0")
        ]
        with pytest.raises(UnknownNameError, match=r"keeps no bundle '3\.0'; `muster bundles list`"):
            await fetched(client, here, "3.0")
    assert found == ["2.0", "1.0", "1.0", "2.0"]


async def test_one_of_the_same_name_takes_its_place(tmp_path: Path) -> None:
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:
        await client.bundles.upload(make_bundle(tmp_path, "1.0"), "muster.tar")
        await client.bundles.upload(make_bundle(tmp_path, "2.0"), "muster.tar")
        assert [(bundle.name, bundle.version) for bundle in await client.bundles.list()] == [("muster.tar", "2.0")]
        await client.bundles.remove("muster.tar")
        assert await client.bundles.list() == ()
        with pytest.raises(UnknownNameError, match="the coordinator has no bundle; `muster bundles upload FILE`"):
            await client.bundles.download(tmp_path)
        with pytest.raises(UnknownNameError, match=r"no bundle 'muster\.tar'"):
            await client.bundles.remove("muster.tar")


@pytest.mark.parametrize("name", ["../state.tar", "a/b.tar", ".hidden.tar", "muster.zip", "", "x" * 200 + ".tar"])
async def test_a_bundle_has_a_name_that_leads_nowhere(tmp_path: Path, name: str) -> None:
    file = make_bundle(tmp_path)
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:

        async def pieces() -> AsyncIterator[pb.PutBundlePiece]:
            yield pb.PutBundlePiece(name=name, data=file.read_bytes())

        with pytest.raises(InvalidJobError, match="a bundle cannot be called"):
            await client.bundles.upload(file, name) if name else await _put(client.address, fleet, pieces())


async def _put(address: str, fleet: Secured, pieces: AsyncIterator[pb.PutBundlePiece]) -> None:
    """Upload a bundle like a client that is not ours."""
    shown = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
    async with open_channel(address, shown) as channel:
        try:
            await BundleServiceStub(channel).Put(pieces, metadata=shown.metadata)
        except AioRpcError as error:
            raise error_from(error.code(), error.details() or "", address=address) from error


async def test_what_is_no_bundle_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "some.tar"
    changed = make_bundle(tmp_path).read_bytes().replace(b"#!/bin/sh", b"#!/bin/xx")
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:
        for content in (b"no tar at all" * 100, changed, changed[:1000], b""):
            file.write_bytes(content)
            with pytest.raises(MusterError):
                await client.bundles.upload(file)
        assert await client.bundles.list() == ()
    assert list((tmp_path / "state" / "bundles").iterdir()) == []


async def test_a_bundle_that_is_too_large_is_refused_while_it_arrives(tmp_path: Path) -> None:
    file = make_bundle(tmp_path, "1.0", {"install.sh": b"", "wheels/a-1.0-py3-none-any.whl": bytes(5 << 20)})
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:
        with pytest.raises(ExhaustedError, match="a bundle may have 4 MiB"):
            await client.bundles.upload(file)
    assert list((tmp_path / "state" / "bundles").iterdir()) == []


async def test_an_upload_that_breaks_off_leaves_nothing_and_blocks_nobody(tmp_path: Path) -> None:
    file = make_bundle(tmp_path)
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:
        async with _another_upload(fleet, client, file):
            pass
        while not await _is_taken(client, file):  # until the coordinator has heard that the other one is gone
            pass
        assert [bundle.name for bundle in await client.bundles.list()] == [file.name]
    assert len(list((tmp_path / "state" / "bundles").iterdir())) == 1


async def test_of_an_upload_that_is_refused_nothing_is_sent(tmp_path: Path) -> None:
    file = make_bundle(tmp_path)
    sent: list[int] = []
    async with secured(tmp_path / "state") as fleet, fleet.client() as client, _another_upload(fleet, client, file):
        for _ in range(100):
            with pytest.raises(ConflictError, match="another bundle is being uploaded"):
                await client.bundles.upload(file, tell=sent.append)
    assert sent == []


@asynccontextmanager
async def _another_upload(fleet: Secured, client: Client, file: Path) -> AsyncIterator[None]:
    """Somebody else's, which has begun and breaks off when the block is left."""
    begun, gone_on = asyncio.Event(), asyncio.Event()

    async def pieces() -> AsyncIterator[pb.PutBundlePiece]:
        yield pb.PutBundlePiece(name="first.tar", data=b"some")
        begun.set()
        await gone_on.wait()

    async def put() -> None:
        while True:
            try:
                return await _put(client.address, fleet, pieces())
            except ConflictError:  # one of ours, by which we looked whether this one is there, came before it
                continue

    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(put(), name="first")
        await begun.wait()
        while await _is_taken(client, file):  # until the first piece of the other one is there
            pass
        yield
        first.cancel()


async def _is_taken(client: Client, file: Path) -> bool:
    try:
        await client.bundles.upload(file)
    except ConflictError:
        return False
    return True


async def test_a_coordinator_that_believes_a_key_keeps_only_what_it_has_signed(tmp_path: Path) -> None:
    key, other = tmp_path / "release.key", tmp_path / "other.key"
    for each in (key, other):
        each.write_bytes(new_signing_key())
    signer = key_fingerprint(public_half(key.read_bytes()))
    async with secured(tmp_path / "state", bundle_signers=frozenset({signer})) as fleet, fleet.client() as client:
        for file in (make_bundle(tmp_path), make_bundle(tmp_path, "2.0", key=other)):
            with pytest.raises(MusterError, match=f"has to be by {signer}"):
                await client.bundles.upload(file)
        assert await client.bundles.list() == ()
        kept = await client.bundles.upload(make_bundle(tmp_path, "3.0", key=key))
        assert await client.bundles.signers() == {signer}
        assert await client.bundles.list() == (kept,)
        assert kept.signer == signer
        (tmp_path / "here").mkdir()
        assert (await fetched(client, tmp_path / "here", signers={signer})).signer == signer
        with pytest.raises(InvalidBundleError, match="is signed by"):
            await fetched(client, tmp_path / "here", signers={"sha256:" + "0" * 64})


async def test_operators_fetch_admins_upload_members_do_neither(tmp_path: Path) -> None:
    file = make_bundle(tmp_path)
    async with secured(tmp_path / "state") as fleet:
        operator = await fleet.user("olga", {EVERYWHERE: Access.OPERATOR})
        member = await fleet.user("mia", {"vision": Access.ADMIN})
        async with fleet.client() as admin, fleet.client(operator) as olga, fleet.client(member) as mia:
            await admin.bundles.upload(file)
            _, path = await olga.bundles.download(tmp_path / "state")
            for refused in (olga.bundles.upload(file), olga.bundles.remove(file.name), mia.bundles.list()):
                with pytest.raises(PermissionDeniedError):
                    await refused
            with pytest.raises(PermissionDeniedError):
                await mia.bundles.download(tmp_path)
            done = {(entry.who, entry.what, entry.target, entry.result) for entry in await admin.audit.list()}
    assert path.read_bytes() == file.read_bytes()
    assert ("admin", "bundles.put", file.name, "ok") in done


async def test_what_was_changed_on_the_coordinators_disk_is_noticed_by_the_client(tmp_path: Path) -> None:
    file = make_bundle(tmp_path)
    async with secured(tmp_path / "state") as fleet, fleet.client() as client:
        await client.bundles.upload(file)
        (kept,) = (tmp_path / "state" / "bundles").iterdir()
        kept.write_bytes(kept.read_bytes().replace(b"#!/bin/sh", b"#!/bin/xx"))
        with pytest.raises(MusterError, match="has not arrived as it was sent"):
            await client.bundles.download(tmp_path / "state")
    assert not (tmp_path / "state" / file.name).exists()
    with pytest.raises(InvalidBundleError):
        verify_bundle(kept)
