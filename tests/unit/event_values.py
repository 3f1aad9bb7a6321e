"""Any event of a job, a node or the fleet, for hypothesis."""

from hypothesis import strategies as st

from muster.domain import event
from muster.domain.notifications.happening import EventPlace, Happening, ToldJob
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

_numbers = st.integers(0, 2**63 - 1)
event_places = st.builds(EventPlace, jobs=_numbers, stories=_numbers)
_told_jobs = st.builds(
    ToldJob, id=job_ids, name=texts, project=texts, owner=texts, labels=st.dictionaries(texts, texts, max_size=3)
)
happenings = st.one_of(
    st.builds(Happening, event=job_events, place=event_places, fleet=texts, job=_told_jobs),
    st.builds(Happening, event=node_events | fleet_events, place=event_places, fleet=texts, job=st.none()),
)
