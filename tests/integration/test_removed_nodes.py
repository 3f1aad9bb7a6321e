"""A node that will not come back is given up by an operator."""

from pathlib import Path

import pytest

from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import RestartPolicy
from tests.integration.fleet import executions, running_fleet
from tests.integration.jobs import shell


async def test_a_job_goes_on_elsewhere_when_its_node_is_removed_and_the_node_may_join_again(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.client.jobs.submit(shell("exec sleep 60", restarts=RestartPolicy(infrastructure=1)))
        [first] = executions(await fleet.until_states(job.id, State.RUNNING))
        node = str(first.node)
        [other] = {"a", "b"} - {node}
        with pytest.raises(ConflictError, match=f"node {node} is connected; stop its agent first"):
            await fleet.client.nodes.remove(node)

        await fleet.stop_agent(node)
        await fleet.journal.heard("node disconnected", node=node)
        removed = await fleet.client.nodes.remove(node)
        assert (removed.name, removed.executions) == (node, (first.id,))
        again = await fleet.until(
            job.id,
            lambda view: len(view.attempts) == 2 and view.phase is JobPhase.RUNNING,
        )
        assert executions(again)[0].node == other
        failure = again.attempts[0].failure
        assert str(failure) == f"rank 0 on {node}: its node was removed by an operator"
        assert [each.name for each in await fleet.client.nodes.list()] == [other]

        await fleet.start_agent(node)
        await fleet.connected(node, 2)
        assert [each.name for each in await fleet.client.nodes.list()] == ["a", "b"]
        await fleet.client.jobs.stop(job.id)
        await fleet.client.jobs.wait(job.id)


async def test_a_node_that_nobody_knows_cannot_be_removed(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        with pytest.raises(UnknownNameError, match="there is no node 'nowhere'; `muster nodes` lists them"):
            await fleet.client.nodes.remove("nowhere")
