"""Strategies for the feed, as it goes over the wire."""

from hypothesis import strategies as st

from muster.domain.feed import FeedBatch, FeedKey, FeedPart, FeedPlace
from tests.unit import node_values, quota_values, trust_values, wire_values
from tests.unit.plain_values import node_ids, texts

_revisions = st.integers(0, 2**63 - 1)
_named_parts = (FeedPart.JOBS, FeedPart.NODES, FeedPart.PROJECTS)

feed_places = st.builds(FeedPlace, instance=texts, revision=_revisions)
_gone = st.lists(st.builds(FeedKey, st.sampled_from(_named_parts), node_ids), max_size=4).map(
    lambda keys: tuple(sorted(keys, key=lambda key: _named_parts.index(key.part)))
)
feed_batches = st.builds(
    FeedBatch,
    place=feed_places,
    anew=st.booleans(),
    caught_up=st.booleans(),
    complete_from=_revisions,
    jobs=st.lists(wire_values.job_views, max_size=1).map(tuple),
    nodes=st.lists(node_values.node_views, max_size=1).map(tuple),
    projects=st.lists(trust_values.projects, max_size=1).map(tuple),
    gone=_gone,
    queue=st.none() | st.lists(quota_values.lines, max_size=2).map(tuple),
)
