"""Waiting for ports and GPUs: who, for whom, and how long."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from agent.executions.held_resources import HeldResources
from agent.executions.ports import PortLedger
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId, GpuUuid, JobId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Network, PortRequest
from tests.unit.agent.core.ledger_builders import assignment

ADDRESS = "127.7.7.8"
FIXED = 29_520
GPU, OTHER_GPU = GpuUuid("GPU-0"), GpuUuid("GPU-1")
LONG = 60.0


class Node:
    """What is held on a node, and what asks for them."""

    def __init__(self, patience: float = LONG) -> None:
        self.ports = PortLedger(23_600, 23_603, ADDRESS)
        self.assignments: dict[ExecutionId, Assignment] = {}
        self.held = HeldResources(self.ports, lambda execution: self.assignments[execution].gpus, patience)
        self.details: list[str] = []

    def assigned(
        self, name: str, port: int | None = None, gpu: GpuUuid | None = None, network: Network = Network.HOST
    ) -> Assignment:
        """An execution of a job of its own."""
        made = assignment(1, execution=ExecutionId(f"{name}-1-1"), job=JobId(name), network=network)
        requests = () if port is None else (PortRequest(name="data", port=port),)
        made = replace(made, role=replace(made.role, ports=requests), gpus=() if gpu is None else (gpu,))
        self.assignments[made.execution] = made
        return made

    async def lease(self, wanted: Assignment) -> tuple[PortLease, ...]:
        return await self.held.lease(wanted, self.details.append)

    def close(self) -> None:
        for execution in self.assignments:
            self.held.free(execution)


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.close()


@pytest.fixture
def impatient() -> Iterator[Node]:
    """A node at which nobody waits for long."""
    made = Node(patience=0)
    yield made
    made.close()


def of_port(node: Node, name: str) -> Assignment:
    return node.assigned(name, port=FIXED)


def of_gpu(node: Node, name: str) -> Assignment:
    return node.assigned(name, gpu=GPU)


@pytest.mark.parametrize("make", [of_port, of_gpu])
async def test_who_has_ended_is_waited_for_until_nothing_of_it_runs(
    node: Node, make: Callable[[Node, str], Assignment]
) -> None:
    first, second = make(node, "first"), make(node, "second")
    await node.lease(first)
    node.held.leave(first.execution, vacant=False)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(node.lease(second), name="second")
        while not node.details:  # noqa: ASYNC110 - nobody else tells
            await asyncio.sleep(0)
        assert not waiting.done()
        node.held.vacate(first.execution)
    assert node.details == ["waiting until nothing of execution first-1-1 runs any more, which has ended"]
    assert [lease.host_port for lease in waiting.result()] == [request.port for request in second.role.ports]


async def test_what_left_nothing_running_is_not_waited_for(impatient: Node) -> None:
    first, second = of_port(impatient, "first"), of_port(impatient, "second")
    await impatient.lease(first)
    impatient.held.leave(first.execution, vacant=True)
    await impatient.lease(second)
    assert impatient.details == []


async def test_who_lives_is_named_at_once(node: Node) -> None:
    first, second = of_port(node, "first"), of_port(node, "second")
    await node.lease(first)
    node.held.leave(of_gpu(node, "third").execution, vacant=False)
    with pytest.raises(ExecutionError, match=f"port {FIXED} is taken by execution first-1-1") as caught:
        await node.lease(second)
    assert (caught.value.kind, node.details) == (FailureKind.PORT_TAKEN, [])


async def test_those_who_need_something_else_do_not_wait(node: Node) -> None:
    first = node.assigned("first", FIXED, GPU)
    await node.lease(first)
    node.held.leave(first.execution, vacant=False)
    await node.lease(node.assigned("port", FIXED + 1))
    await node.lease(node.assigned("gpu", gpu=OTHER_GPU))
    await node.lease(node.assigned("bridge", FIXED, network=Network.BRIDGE))
    await node.lease(node.assigned("nothing"))
    assert node.details == []


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (of_port, FailureKind.PORT_TAKEN, f"port {FIXED} is taken by execution first-1-1"),
        (
            of_gpu,
            FailureKind.GPU,
            "GPU GPU-0 is taken by execution first-1-1, which has ended and left something running",
        ),
    ],
)
async def test_after_a_while_who_does_not_go_is_named(
    impatient: Node, make: Callable[[Node, str], Assignment], kind: FailureKind, message: str
) -> None:
    first, second = make(impatient, "first"), make(impatient, "second")
    await impatient.lease(first)
    impatient.held.leave(first.execution, vacant=False)
    with pytest.raises(ExecutionError) as caught:
        await impatient.lease(second)
    assert (caught.value.kind, str(caught.value)) == (kind, message)


async def test_of_two_who_wait_for_a_port_one_has_it(node: Node) -> None:
    first, second, third = [of_port(node, name) for name in ("first", "second", "third")]
    await node.lease(first)
    node.held.leave(first.execution, vacant=False)
    both = asyncio.gather(node.lease(second), node.lease(third), return_exceptions=True)
    while len(node.details) < 2:  # noqa: ASYNC110 - nobody else tells
        await asyncio.sleep(0)
    node.held.free(first.execution)
    leases, refusal = await both
    assert isinstance(leases, tuple)
    assert [lease.host_port for lease in leases] == [FIXED]
    assert str(refusal) == f"port {FIXED} is taken by execution second-1-1"


async def test_published_ports_stay_leased_until_all_is_cleared_away(node: Node) -> None:
    first = node.assigned("first", 80, network=Network.BRIDGE)
    [lease] = await node.lease(first)
    node.held.leave(first.execution, vacant=True)
    assert node.ports.owner(lease.host_port) == first.execution
    node.held.free(first.execution)
    assert node.ports.owner(lease.host_port) is None


async def test_adopted_ports_are_given_back_like_others(node: Node) -> None:
    lease = PortLease(name="data", host_port=FIXED, container_port=FIXED)
    for name, published in (("first", False), ("second", True)):
        execution = node.assigned(name).execution
        node.held.adopt(execution, (lease,), published=published)
        node.held.vacate(execution)
        assert (node.ports.owner(FIXED) == execution) is published
