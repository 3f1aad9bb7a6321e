"""What a node says of attachments is in its record, as its agent was last started."""

from pathlib import Path

from muster.client.endpoint import Login
from muster.domain.attachments.allowed import refusal_of_node
from muster.domain.ids import NodeId
from tests.integration.fleet import SECRET, Fleet, running_fleet
from tests.integration.programs import agent

ALONE = NodeId("alone")


async def refusal(fleet: Fleet) -> str | None:
    node = await fleet.engine.query(lambda cluster, _: cluster.nodes[ALONE])
    return refusal_of_node(node.name, node.features)


async def test_an_agent_takes_attachments_or_not_as_it_was_last_started(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        login = Login(address=fleet.address, token=SECRET)
        token = tmp_path / "coordinator" / "local-token"
        token.parent.mkdir(exist_ok=True)
        token.write_text(SECRET)
        token.chmod(0o600)

        async with agent(tmp_path, login, "--no-attach"):
            await fleet.connected("alone")
            assert await refusal(fleet) == (
                "alone takes no attachments (its agent was started with --no-attach, or is older)"
            )
        async with agent(tmp_path, login):
            await fleet.connected("alone", 2)
            assert await refusal(fleet) is None
        await fleet.restart_coordinator()
        assert await refusal(fleet) is None
