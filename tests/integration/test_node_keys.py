"""What a node finds of its key and its certificate, whatever interrupted their change."""

import asyncio
from pathlib import Path

import grpc
import pytest

from agent.identity.enrolment import Enrolment
from muster.domain.errors import MusterError
from muster.domain.ids import NodeId
from muster.trust.certificates import matches_key, new_key
from muster.trust.files import write_private
from tests.integration.secured import Secured, connect, secured

A = NodeId("a")


async def joined_node(fleet: Secured) -> Enrolment:
    """A node that has joined, and keeps what it was given in the directory `a` of the fleet."""
    node = Enrolment(fleet.directory / "a", A, fleet.doors.clients)
    await node.ensure(await fleet.join_token())
    return node


async def restarted(fleet: Secured) -> Enrolment:
    """The same node after its agent was killed."""
    node = Enrolment(fleet.directory / "a", A, fleet.doors.clients)
    await node.ensure(None)
    return node


async def is_welcome(fleet: Secured, node: Enrolment) -> bool:
    return (await connect(fleet.doors.agents, node.credentials(), A))[0] is grpc.StatusCode.OK


def trust(fleet: Secured) -> Path:
    return fleet.directory / "a" / "trust"


async def test_each_renewal_leaves_one_key_and_it_lies_in_the_file_for_keys(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        node = await joined_node(fleet)
        first = node.credentials().key
        await node.renew_now()
        shown = node.credentials()
        assert (trust(fleet) / "key.pem").read_bytes() == shown.key != first
        assert "PRIVATE KEY" not in (trust(fleet) / "node.json").read_text()
        assert await is_welcome(fleet, await restarted(fleet))


async def test_a_renewal_that_stops_before_the_certificate_is_kept_leaves_the_former_key(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        node = await joined_node(fleet)
        former = node.credentials()
        (trust(fleet) / "node.json.new").mkdir()  # so that the next node.json cannot be written
        with pytest.raises(MusterError, match="cannot write"):
            await node.renew_now()
        assert (trust(fleet) / "key.pem").read_bytes() != former.key
        (trust(fleet) / "node.json.new").rmdir()

        node = await restarted(fleet)
        assert node.credentials() == former
        assert (trust(fleet) / "key.pem").read_bytes() == former.key
        assert await is_welcome(fleet, node)
        await node.renew_now()
        assert await is_welcome(fleet, node)


async def test_a_renewal_that_stops_after_the_certificate_is_kept_leaves_the_new_key(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        node = await joined_node(fleet)
        former = node.credentials().key
        await node.renew_now()
        shown = node.credentials()
        assert former is not None
        assert shown.key is not None
        await asyncio.to_thread(write_private, trust(fleet) / "key.pem", shown.key + former)

        node = await restarted(fleet)
        assert node.credentials() == shown
        assert (trust(fleet) / "key.pem").read_bytes() == shown.key
        assert await is_welcome(fleet, node)


async def test_a_node_whose_certificate_is_lost_joins_again_with_its_newest_key(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        newest = (await joined_node(fleet)).credentials().key
        assert newest is not None
        (trust(fleet) / "node.json").unlink()
        await asyncio.to_thread(write_private, trust(fleet) / "key.pem", newest + new_key())
        node = await joined_node(fleet)
        assert node.credentials().key == newest
        assert await is_welcome(fleet, node)


async def test_a_certificate_without_its_key_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        certificate = (await joined_node(fleet)).credentials().certificate
        other = new_key()
        assert certificate is not None
        assert not matches_key(certificate, other)
        await asyncio.to_thread(write_private, trust(fleet) / "key.pem", other)
        with pytest.raises(MusterError, match=r"no private key that belongs .*; remove .*node\.json and join anew"):
            await restarted(fleet)
        (trust(fleet) / "key.pem").unlink()
        with pytest.raises(MusterError, match=r"key\.pem cannot be read; remove .*node\.json and join anew"):
            await restarted(fleet)
