"""What executions and nodes use, from the kernel's counts to whoever asks."""

from contextlib import aclosing
from pathlib import Path

from muster.domain.ids import NodeId
from muster.domain.jobs.lifecycle import State
from muster.domain.telemetry.sample import ExecutionUse, Sample
from tests.integration.fleet import Fleet, running_fleet
from tests.integration.jobs import shell

SPINS = "while :; do :; done"


async def first_use(fleet: Fleet, job: str) -> tuple[NodeId, Sample, ExecutionUse]:
    """The first sample of a job that tells of an execution's CPUs."""
    async with aclosing(fleet.client.telemetry.follow_job(job)) as batches:
        async for batch in batches:
            for node, sample in batch:
                for _, use in sample.executions:
                    if use.cpus is not None:
                        return node, sample, use
    raise AssertionError("the job has ended, and nobody has told what it used")


async def test_a_job_that_spins_is_seen_to_use_cpus(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.client.jobs.submit(shell(SPINS))
        await fleet.until_states(job.id, State.RUNNING)
        node, sample, use = await first_use(fleet, job.id)
        [execution] = (await fleet.client.jobs.get(job.id)).attempts[-1].executions
        newest = await fleet.client.telemetry.of_job(job)
        of_all = await fleet.client.telemetry.of_nodes()
        await fleet.client.jobs.stop(job.id)

    assert node == execution.node
    assert [name for name, _ in sample.executions] == [execution.id]
    assert use.cpus is not None
    assert use.cpus > 0
    assert use.memory is not None
    assert use.processes is not None
    assert use.processes >= 1
    assert 0 < sample.host.memory <= sample.host.memory_total
    assert [each.node for each in newest] == [execution.node]
    assert execution.node in {each.node for each in of_all}
