"""What must hold of the capacities of nodes after every step; each check is a sentence."""

from dataclasses import replace

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.node_capacity import total_capacity
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.portion import Portion
from tests.eviction_invariants import claimed_gpus
from tests.portion_invariants import nodes_that_share_are_known, shared_gpus_have_what_is_left


def every_node_is_in_the_bin_of_what_it_has(capacities: Capacities) -> None:
    """Each node lies where a search for what it has looks for it."""
    found: list[NodeId] = []
    for node_class in capacities.classes():
        for each in (each for level in node_class.levels.values() for each in level.bins.values()):
            assert each.keys == sorted(each.keys), "nodes of a bin are not in order"
            for _, node in each.keys:
                capacity = capacities.of(node)
                assert len(capacity.gpus) == each.gpus, f"{node} is in the bin of another number of GPUs"
                assert each.cpu_millis.least <= max(0, capacity.cpu_millis) <= each.cpu_millis.most, f"CPUs of {node}"
                assert each.memory.least <= max(0, capacity.memory) <= each.memory.most, f"memory of {node}"
                found.append(node)
    nodes_that_share_are_known(capacities, capacities.sharing.holding(Portion(1)))
    placeable = sorted(capacity.node for capacity in capacities if capacity.problem is None)
    assert sorted(found) == placeable, "the bins do not hold each node once that something can be placed on"


def the_capacity_is_what_is_left(cluster: Cluster, node: NodeId) -> None:
    """Nobody has more than what is not used, and nobody has what somebody claims."""
    everything = total_capacity(cluster.nodes[node], cluster.records.pools.values())
    used, free = cluster.load.used(node), cluster.load.free.of(node)
    claimed = claimed_gpus(cluster, node)
    taken = {*used.gpus, *used.portions, *(claimed or ())}
    assert [gpu.uuid for gpu in free.gpus] == [
        gpu.uuid for gpu in everything.gpus if gpu.usable and gpu.uuid not in taken
    ], f"free GPUs of {node}"
    cpu_millis, memory = everything.cpu_millis - used.cpu_millis, everything.memory - used.memory
    problem = cluster.placeable(node)
    if claimed is None:
        shared_gpus_have_what_is_left(node, everything.gpus, free, used.portions)
        assert (free.cpu_millis, free.memory) == (cpu_millis, memory), f"free capacity of {node}"
        assert free.disk == everything.disk_left - used.disk, f"free disk of {node}"
        assert free.ports == set(used.ports), f"taken ports of {node}"
        assert free.idle == (not used.executions), f"{node}: whether it is idle"
        assert used.exclusive or free.problem == problem, f"{node}: why nothing can be placed on it"
    else:
        assert free.cpu_millis <= cpu_millis, f"free CPUs of {node}"
        assert free.memory <= memory, f"free memory of {node}"
        assert free.disk <= everything.disk_left - used.disk, f"free disk of {node}"
        assert free.ports >= set(used.ports), f"taken ports of {node}"
        assert not free.idle, f"{node} is offered whole though somebody claims some of it"
        assert problem is None or free.problem is not None, f"{node}: why nothing can be placed on it"
    assert not used.exclusive or free.problem is not None, f"{node} takes something beside a job that excludes others"
    usable = tuple(gpu for gpu in everything.gpus if gpu.usable)
    assert cluster.load.empty.of(node) == replace(
        everything, gpus=usable, disk=everything.disk_left, problem=problem
    ), f"{node} if it were empty"
