"""Hypothesis strategies for what a job says of the nodes that it wants, and of what its containers may."""

from hypothesis import strategies as st

from muster.domain.jobs import job
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, LabelOperator, PreferredTerm
from muster.domain.jobs.placing.portion import GpuShare
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.placing.topology import Topology
from tests.unit.plain_values import counts, optional, sizes, texts, tuples_of

gpu_shares = st.builds(GpuShare, thousandths=st.integers(1, 1000), memory=sizes)
tolerations = st.builds(
    Toleration,
    key=texts,
    operator=st.sampled_from(TolerationOperator),
    value=texts,
    effect=optional(st.sampled_from(TaintEffect)),
    seconds=optional(counts),
)
expressions = st.builds(LabelExpression, key=texts, operator=st.sampled_from(LabelOperator), values=tuples_of(texts))
affinities = st.builds(
    Affinity,
    required=tuples_of(tuples_of(expressions)),
    preferred=tuples_of(st.builds(PreferredTerm, weight=counts, all=tuples_of(expressions))),
)
topologies = st.builds(Topology, required=optional(texts), preferred=optional(texts))

capabilities = st.lists(st.sampled_from(sorted(job.CAPABILITIES)), max_size=3, unique=True).map(tuple)
pids = optional(st.integers(1, job.MOST_PIDS))
