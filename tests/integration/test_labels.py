"""Labels by which jobs choose nodes, and who can give a node such a label."""

import asyncio
import itertools
from pathlib import Path

import pytest

from muster import wire
from muster.client.client import Client
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.fleet.node import Inventory
from muster.rpc.channel import open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from tests.integration.fleet import running_fleet
from tests.integration.jobs import shell
from tests.integration.secured import joined, joining, muster, secured, until_ready
from tests.integration.strangers import hello


async def suits(client: Client, **labels: str) -> bool:
    """Whether there is a node for a job with these labels; a slash is written as two underscores."""
    wanted = {name.replace("__", "/"): value for name, value in labels.items()}
    try:
        await client.jobs.submit(shell("true", node_labels=wanted), dry_run=True)
    except ConflictError:
        return False
    return True


async def test_a_node_does_not_talk_itself_into_a_pool(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.join_token()
        async with joining(fleet, "a", token, "--label", "pool=secure", "--label", "local/disk=nvme"):
            await until_ready(admin, "a")
            assert not await suits(admin, pool="secure")
            assert await suits(admin, local__pool="secure", local__disk="nvme")


async def test_a_later_inventory_brings_no_labels_either(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        shown = await joined(fleet, "a", labels={"rack": "7"})
        async with open_channel(fleet.doors.agents, shown) as channel:
            call = agents_pb2_grpc.AgentServiceStub(channel).Connect()
            await call.write(hello("a"))
            await call.read()
            said = Inventory(cpus=2, memory=1 << 30, labels={"pool": "secure", "rack": "8"})
            await call.write(pb.AgentMessage(inventory=wire.inventory_to_wire(said)))
            async with asyncio.timeout(10):
                for number in itertools.count(1):  # a change of the inventory is not answered
                    await call.write(pb.AgentMessage(heartbeat=pb.Heartbeat(sequence=number)))
                    await call.read()
                    (node,) = await admin.nodes.list()
                    if node.inventory.cpus == said.cpus:
                        break
        assert node.inventory.labels == {"rack": "7", "local/pool": "secure", "local/rack": "8"}


async def test_an_operator_labels_a_node_and_jobs_find_it_at_once_and_after_it_came_back(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.join_token(labels={"rack": "7"})
        async with joining(fleet, "a", token, "--label", "rack=8"):
            await until_ready(admin, "a")
            assert not await suits(admin, pool="secure")
            labels, changed = await admin.nodes.label("a", {"pool": "secure"}, ["rack"])
            assert (labels, changed) == ({"pool": "secure"}, True)
            assert await admin.nodes.label("a", {"pool": "secure"}) == ({"pool": "secure"}, False)
            assert await suits(admin, pool="secure")
            assert not await suits(admin, rack="7")
        async with joining(fleet, "a", "", "--label", "rack=8"):
            await until_ready(admin, "a")
            (node,) = await admin.nodes.list()
            assert node.inventory.labels == {"pool": "secure", "local/rack": "8"}
        (entry,) = [each for each in await admin.audit.list() if each.what == "nodes.label" and "rack-" in each.result]
        assert (entry.who, entry.target, entry.result) == ("admin", "a", "ok, pool=secure rack-")


async def test_the_command_line_gives_and_takes_labels(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        await joined(fleet, "a", labels={"rack": "7"})
        words = ("nodes", "label", "a", "pool=x", "rack-")
        told = [(await muster(fleet, fleet.admin_token, *words)).stdout for _ in range(2)]
        assert told == ["a: pool=x\n", "a: pool=x (as before)\n"]
        wrong = await muster(fleet, fleet.admin_token, "nodes", "label", "a", "pool")
        assert (wrong.exit_code != 0, "neither a label" in wrong.stderr) == (True, True)


async def test_only_operators_label_and_nobody_in_the_name_of_an_agent(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await joined(fleet, "a")
        member = await fleet.user("m", {"default": Access.ADMIN})
        operator = await fleet.user("o", {EVERYWHERE: Access.OPERATOR})
        async with fleet.client(member) as client:
            with pytest.raises(PermissionDeniedError):
                await client.nodes.label("a", {"pool": "secure"})
        async with fleet.client(operator) as client:
            assert (await client.nodes.label("a", {"pool": "secure"}))[0] == {"pool": "secure"}
            with pytest.raises(UnknownNameError, match="no enrolled node 'b'"):
                await client.nodes.label("b", {"pool": "secure"})
        for name in ("local/pool", "-x", ""):
            with pytest.raises(InvalidJobError):
                await admin.nodes.label("a", {name: "y"})
            with pytest.raises(InvalidJobError):
                await admin.join_tokens.create(labels={name: "y"})


async def test_nodes_of_this_machine_have_the_labels_with_which_they_were_started(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        assert await suits(fleet.client, name="a")
        with pytest.raises(ConflictError, match="muster up"):
            await fleet.client.nodes.label("a", {"name": "b"})
