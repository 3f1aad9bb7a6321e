"""A fixed port is had by one execution of a node: its gang is spread out, and the next job waits for it."""

from pathlib import Path

from muster.domain.jobs.lifecycle import JobPhase, State
from tests.integration.fleet import executions, python, running_fleet
from tests.integration.jobs import command, shell

PORT = 29_631
LISTEN = """
import os, socket, time
server = socket.create_server((os.environ["MUSTER_ADDRESS"], int(os.environ["MUSTER_PORT_HTTP"])))
print(server.getsockname()[1], flush=True)
time.sleep(60)
"""


async def test_a_gang_with_a_fixed_port_has_a_node_for_each_and_the_next_job_waits_and_says_why(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        gang = await fleet.client.jobs.submit(command(*python(LISTEN), workers=2, ports={"http": PORT}))
        running = await fleet.until_states(gang.id, State.RUNNING, State.RUNNING)
        assert [execution.node for execution in executions(running)] == ["a", "b"]
        assert [line.text.decode() for line in await fleet.printed(gang.id, 2)] == [str(PORT)] * 2

        second = await fleet.client.jobs.submit(shell("true", ports={"http": PORT}))
        why = await fleet.client.jobs.why(second.id)
        assert why.phase is JobPhase.QUEUED
        assert {refusal.reason for refusal in why.refusals} == {f"needs port {PORT}, which another execution there has"}

        await fleet.client.jobs.stop(gang.id)
        assert (await fleet.client.jobs.wait(second.id)).phase is JobPhase.SUCCEEDED


async def test_a_fixed_master_is_the_port_of_rank_0_so_that_the_others_may_be_beside_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(shell("echo $MASTER_PORT", 3, ports={"master": PORT}))
        assert (job.phase, {execution.node for execution in executions(job)}) == (JobPhase.SUCCEEDED, {"a"})
        assert sorted(await fleet.texts(job.id, follow=True)) == [f"{rank} {PORT}" for rank in range(3)]
