"""Any event of a job, a node or the fleet, for hypothesis."""

from hypothesis import strategies as st

from muster.domain import event
from tests.unit.plain_values import job_ids, moments, node_ids, optional, ranks, texts, tuples_of

job_events = st.builds(
    event.JobEvent,
    job=job_ids,
    attempt=st.integers(1, 2**31 - 1),
    kind=st.sampled_from(event.JobEventKind),
    at=moments,
    text=texts,
    rank=optional(ranks),
    ranks=texts,
    nodes=tuples_of(node_ids),
    by=texts,
    cause=texts,
    number=st.integers(0, 2**63 - 1),
)
node_events = st.builds(
    event.NodeEvent,
    node=node_ids,
    kind=st.sampled_from(event.NodeEventKind),
    at=moments,
    text=texts,
    by=texts,
    cause=texts,
    number=st.integers(0, 2**63 - 1),
)
fleet_events = st.builds(
    event.FleetEvent,
    kind=st.sampled_from(event.FleetEventKind),
    at=moments,
    project=texts,
    text=texts,
    by=texts,
    cause=texts,
    number=st.integers(0, 2**63 - 1),
)
