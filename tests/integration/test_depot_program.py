"""The depot as a program: it comes to the coordinator, serves who was let in by that, and may be away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coordinator.clock import wall_time
from coordinator.companions.depot_desk import DepotDesk
from coordinator.companions.socket import serving_companion
from coordinator.depot.messages import DEPOT_DESK_TALK
from coordinator.store.directory import StateDirectory
from coordinator.trust.authority import FleetAuthority
from muster.client.client import Client
from muster.domain.errors import UnavailableError
from muster.rpc.channel import NOTHING, Credentials, open_channel
from muster.transfer.depot_client import DEPOT_CHANNEL_OPTIONS, DepotClient
from muster.transfer.folder import Folder, read_folder
from muster.trust.certificates import make_authority
from muster.trust.tickets import TICKET_SECRET_BYTES
from tests.integration.depots import depot, uploaded
from tests.integration.programs import coordinator_program
from tests.integration.relays import RESTARTED_AT, until

LIMIT = 60.0
SECRET = bytes(TICKET_SECRET_BYTES)


@asynccontextmanager
async def desk_in(directory: Path) -> AsyncIterator[DepotDesk]:
    """A desk that is served; no depot yet."""
    desk = DepotDesk(SECRET, f"{RESTARTED_AT}:0", None)
    async with serving_companion(desk, DEPOT_DESK_TALK, directory), asyncio.timeout(LIMIT):
        yield desk


def folder_in(directory: Path) -> Folder:
    directory.mkdir()
    (directory / "train.py").write_text("print('hello')")
    return read_folder(directory, now_ns=0)


async def sent(desk: DepotDesk, folder: Folder, credentials: Credentials = NOTHING) -> int:
    """How much of a folder was new to the depot that is there."""
    await until(lambda: desk.address is not None)
    address = f"{RESTARTED_AT}{desk.address}"
    ticket = desk.put_ticket(project="vision", account="anna", room=1 << 20, limit=1 << 20, now=wall_time())
    async with open_channel(address, credentials, DEPOT_CHANNEL_OPTIONS) as channel:
        return (await DepotClient(channel, ticket, address).send(folder)).new


async def test_a_depot_that_was_killed_serves_at_the_same_address_and_has_all_that_it_had(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "code")
    async with desk_in(tmp_path) as desk:
        async with depot(tmp_path) as program:
            assert await sent(desk, folder) == 2
            before = desk.address
            program.kill()
            await program.wait()
        await until(lambda: desk.address is None)
        async with depot(tmp_path):
            assert await sent(desk, folder) == 0
            assert desk.address == before


async def test_a_coordinator_that_comes_anew_finds_its_depot(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "code")
    async with depot(tmp_path):
        async with desk_in(tmp_path) as desk:
            assert await sent(desk, folder) == 2
            before = desk.address
        async with desk_in(tmp_path) as desk:
            assert await sent(desk, folder) == 0
            assert desk.address == before


async def test_a_depot_serves_with_the_certificate_of_the_fleet(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "code")
    now = wall_time()
    authority, other = (FleetAuthority(make_authority(now), [RESTARTED_AT], now) for _ in range(2))
    desk = DepotDesk(SECRET, f"{RESTARTED_AT}:0", lambda: authority.server)
    async with serving_companion(desk, DEPOT_DESK_TALK, tmp_path), depot(tmp_path), asyncio.timeout(LIMIT):
        assert await sent(desk, folder, Credentials(authority=authority.trusted)) == 2
        with pytest.raises(UnavailableError):
            await sent(desk, folder, Credentials(authority=other.trusted))


async def test_a_client_is_told_what_to_do_where_there_is_no_depot(tmp_path: Path) -> None:
    folder_in(tmp_path / "code")
    async with coordinator_program(tmp_path) as served, asyncio.timeout(LIMIT):
        credentials = Credentials(token=served.login.token)
        async with Client(served.login.address, credentials) as client:
            with pytest.raises(UnavailableError, match="start muster-depot on its machine"):
                await client.data.upload(tmp_path / "code")
            async with depot(StateDirectory(tmp_path / "coordinator").path):
                await served.says(b"depot is there")
                await uploaded(client, tmp_path / "code")


async def test_a_directory_that_cannot_be_used_ends_the_depot_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with depot(tmp_path, "--depot-dir", str(tmp_path / "file" / "objects")) as program:
        assert await program.wait() != 0
    assert "name another one with --depot-dir" in (tmp_path / "depot.log").read_text()
