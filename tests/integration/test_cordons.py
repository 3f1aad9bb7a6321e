"""Nodes that an operator drains, with a coordinator, agents and processes that are real."""

from pathlib import Path

from muster.domain.jobs.lifecycle import JobPhase, State
from tests.integration.fleet import executions, running_fleet
from tests.integration.jobs import shell


async def test_a_job_begins_anew_elsewhere_when_its_node_is_drained_and_the_node_takes_jobs_again(
    tmp_path: Path,
) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.client.jobs.submit(shell("exec sleep 60"))
        [first] = executions(await fleet.until_states(job.id, State.RUNNING))
        node = str(first.node)
        [other] = {"a", "b"} - {node}

        cordoned = await fleet.client.nodes.cordon(node, reason="new memory", restart_jobs=True)
        assert cordoned.cordon is not None
        assert cordoned.cordon.reason == "new memory"
        again = await fleet.until(job.id, lambda view: len(view.attempts) == 2 and view.phase is JobPhase.RUNNING)
        assert executions(again)[0].node == other
        failure = again.attempts[0].failure
        assert str(failure) == f"rank 0 on {node}: its node is drained, so the job begins anew elsewhere"
        assert (await fleet.client.nodes.get(node)).executions == ()

        await fleet.client.nodes.cordon(other)
        waiting = await fleet.client.jobs.submit(shell("true"))
        assert (await fleet.client.jobs.why(waiting.id)).phase is JobPhase.QUEUED
        await fleet.client.nodes.uncordon(node)
        ended = await fleet.client.jobs.wait(waiting.id)
        assert executions(ended)[0].node == node
        await fleet.client.jobs.stop(job.id)
        await fleet.client.jobs.wait(job.id)

        story = [event async for event in fleet.client.nodes.events(node)]
        assert [event.kind for event in story] == ["joined", "cordoned", "draining", "drained", "uncordoned"]
        assert story[1].text == "new memory"
