"""Hypothesis strategies for nodes, what they have, and how people see them."""

from hypothesis import strategies as st

from muster.domain.fleet import node, window
from muster.domain.jobs import job
from tests.unit.placing_values import gpu_shares
from tests.unit.plain_values import (
    addresses,
    counts,
    execution_ids,
    filled,
    gpu_uuids,
    labels,
    labels_map,
    moments,
    node_ids,
    optional,
    sizes,
    spans,
    texts,
    tuples_of,
)

gpus = st.builds(
    node.Gpu,
    uuid=gpu_uuids,
    index=counts,
    model=texts,
    memory=sizes,
    compute_capability=optional(filled),
    pci_bus_id=optional(filled),
    numa_node=optional(st.integers(-1, 1000)),
    nvlink_peers=tuples_of(gpu_uuids),
    mig_enabled=optional(st.booleans()),
    problems=tuples_of(texts),
    processes=tuples_of(st.builds(node.GpuProcess, pid=counts, memory=optional(sizes))),
)
runtime_offers = st.builds(
    node.RuntimeOffer,
    kind=st.sampled_from(job.RuntimeKind),
    version=texts,
    gpus=st.booleans(),
    problem=optional(filled),
)
inventories = st.builds(
    node.Inventory,
    cpus=st.integers(1, 2**31 - 1),
    memory=sizes,
    disk_total=sizes,
    disk_free=sizes,
    kernel=texts,
    os=texts,
    architecture=texts,
    addresses=tuples_of(addresses),
    gpus=tuples_of(gpus, by="uuid"),
    gpu_driver=optional(filled),
    cuda=optional(filled),
    gpu_problem=optional(filled),
    runtimes=tuples_of(runtime_offers, by="kind"),
    labels=labels_map,
)
node_views = st.builds(
    node.NodeView,
    name=node_ids,
    state=st.sampled_from(node.NodeState),
    address=addresses,
    inventory=inventories,
    executions=tuples_of(execution_ids),
    gpus_taken=tuples_of(gpu_uuids),
    gpus_shared=st.dictionaries(gpu_uuids, gpu_shares, max_size=3),
    cpu_millis_taken=counts,
    memory_taken=sizes,
    agent_version=texts,
    last_seen_at=optional(moments),
    joined_at=optional(moments),
    pool=st.just("") | labels,
)
windows = st.builds(
    window.Window,
    name=labels,
    begins=moments,
    ends=moments,
    nodes=tuples_of(node_ids),
    labels=labels_map,
    project=st.just("") | labels,
    reason=texts,
    notice=spans,
    mode=st.sampled_from(window.WindowMode),
)
