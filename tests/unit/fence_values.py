"""Hypothesis strategies for what keeps attempts apart."""

from hypothesis import strategies as st

from muster.domain.gangs import fence
from muster.domain.jobs import disconnect
from tests.unit.plain_values import node_ids, spans, texts, tuples_of

fences = st.builds(
    fence.Fence,
    lost_after=spans,
    on_disconnect=st.sampled_from(disconnect.OnDisconnect),
    key=st.binary(max_size=32),
    witnesses=tuples_of(st.builds(fence.Witness, node=node_ids, address=texts), by="node"),
)
