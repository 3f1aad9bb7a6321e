"""Samples as callers may see them, without a transport."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

import pytest

from coordinator.engine.engine import Engine
from coordinator.service.following.samples import SampleOperations, SeenSample
from coordinator.service.watching.newest_samples import NewestSamples
from muster.domain.errors import InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.gangs.plan import Stage
from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, NodeSample, Sample, UnreadSample
from tests.builders import World, inventory, spec
from tests.unit.coordinator.service.callers import Trusted, of_all, person
from tests.unit.coordinator.service.committed_engine import CommittedEngine

ADMIN, NOBODY = of_all(Access.ADMIN), person("nobody")
RED = person("red", red=Access.VIEWER)
HOST = HostUse(cpus=3, memory=2**30, memory_total=2**33)


class Fleet(NamedTuple):
    """Jobs of two projects on one node, and a node on which nothing runs."""

    w: World
    engine: CommittedEngine
    newest: NewestSamples
    samples: SampleOperations
    red: JobId
    blue: JobId
    told: dict[bytes, Sample]

    def tell(self, node: str) -> None:
        """Have a node tell what all that it has, and runs, uses."""
        name = NodeId(node)
        members = [each for each in self.w.cluster.executions.values() if each.node == name]
        gpus = [gpu.uuid for gpu in self.w.cluster.nodes[name].inventory.gpus]
        sample = Sample(
            at=datetime(2026, 11, 26, 9, tzinfo=UTC),
            span=timedelta(seconds=10),
            host=HOST,
            gpus=[(gpu, GpuUse(busy=0.5)) for gpu in gpus],
            executions=[(each.id, ExecutionUse(cpus=1.5)) for each in members],
        )
        data = f"{node} {len(self.told)}".encode()
        self.told[data] = sample
        self.newest.put(name, data)


def fleet() -> Fleet:
    w = World(projects=("default", "red", "blue"))
    for node in ("a", "b"):
        w.connect(node, inventory(node, 4))
    red = w.running(spec(2, 1, project="red", name="train"))
    blue = w.running(spec(1, 1, project="blue"))
    engine, newest, told = CommittedEngine(w), NewestSamples(), dict[bytes, Sample]()

    def read(data: bytes) -> Sample:
        if data not in told:
            raise InvalidJobError("no sample")
        return told[data]

    def executions(data: bytes) -> Sequence[ExecutionId]:
        return [each for each, _ in read(data).executions]

    samples = SampleOperations(Trusted().operations, cast("Engine", engine), newest, read, executions, pace=0)
    return Fleet(w, engine, newest, samples, red, blue, told)


async def only(batches: AsyncGenerator[Sequence[SeenSample], None]) -> Sequence[SeenSample]:
    """The one batch that there is."""
    found = [batch async for batch in batches]
    assert len(found) == 1
    return found[0]


async def read(batches: AsyncGenerator[Sequence[SeenSample], None]) -> dict[NodeId, Sample]:
    """The samples of the one batch, all of which were read, by node."""
    return {each.node: each.sample for each in await only(batches) if isinstance(each, NodeSample)}


def gpus_of(f: Fleet, job: JobId) -> set[GpuUuid]:
    return {gpu for each in f.w.cluster.executions.values() if each.job == job for gpu in each.gpus}


async def test_of_a_job_the_samples_of_its_nodes_are_told_with_what_is_its_own() -> None:
    f = fleet()
    f.tell("a")
    f.tell("b")
    [(node, sample)] = (await read(f.samples.of_job(RED, "train", follow=False))).items()

    assert (node, sample.host) == ("a", HOST)
    assert [f.w.cluster.executions[each].job for each, _ in sample.executions] == [f.red, f.red]
    assert {gpu for gpu, _ in sample.gpus} == gpus_of(f, f.red)


async def test_of_nodes_executions_are_told_whose_projects_the_caller_sees() -> None:
    f = fleet()
    f.tell("a")
    f.tell("b")
    seen = await read(f.samples.of_nodes(RED, (), follow=False))

    assert set(seen) == {"a", "b"}
    assert {f.w.cluster.executions[each].job for each, _ in seen[NodeId("a")].executions} == {f.red}
    assert len(seen[NodeId("a")].gpus) == 4


async def test_who_sees_all_projects_is_told_a_sample_as_it_came() -> None:
    f = fleet()
    f.tell("a")
    f.tell("b")
    [of_a] = await only(f.samples.of_nodes(ADMIN, (NodeId("a"),), follow=False))
    assert of_a == UnreadSample(NodeId("a"), b"a 0")
    assert {f.w.cluster.executions[each].job for each, _ in f.told[b"a 0"].executions} == {f.red, f.blue}


async def test_executions_that_a_node_has_made_up_are_told_to_nobody() -> None:
    f = fleet()
    f.tell("a")
    made_up = (ExecutionId("none-1-0"), ExecutionUse(cpus=9))
    f.told[b"lies"] = replace(f.told[b"a 0"], executions=[*f.told[b"a 0"].executions, made_up])
    f.newest.put(NodeId("a"), b"lies")
    assert await read(f.samples.of_nodes(ADMIN, (), follow=False)) == {"a": f.told[b"a 0"]}


async def test_who_may_not_look_hears_of_nothing() -> None:
    f = fleet()
    with pytest.raises(UnknownNameError):
        await only(f.samples.of_job(RED, f.blue, follow=False))
    with pytest.raises(PermissionDeniedError):
        await only(f.samples.of_nodes(NOBODY, (), follow=False))
    with pytest.raises(UnknownNameError, match="nowhere"):
        await only(f.samples.of_nodes(ADMIN, (NodeId("nowhere"),), follow=False))


async def test_bytes_that_are_no_sample_are_left_out() -> None:
    f = fleet()
    f.newest.put(NodeId("a"), b"of a node that lies")
    f.tell("b")

    assert [each.node for each in await only(f.samples.of_nodes(ADMIN, (), follow=False))] == ["b"]


async def test_a_follower_is_told_what_comes_until_the_job_has_ended() -> None:
    f = fleet()
    batches = []
    async with aclosing(f.samples.of_job(RED, f.red, follow=True)) as told:
        batches.append([node for node, _ in await anext(told)])
        f.tell("a")
        batches.append([node for node, _ in await anext(told)])
        f.tell("b")  # where nothing of it runs
        f.tell("a")
        batches.append([node for node, _ in await anext(told)])
        f.w.tell_all(f.red, Stage.EXITED, exit=Exit(code=0))
        f.engine.signals.fire(f.red)
        batches += [[node for node, _ in batch] async for batch in told]

    assert batches == [[], ["a"], ["a"]]
