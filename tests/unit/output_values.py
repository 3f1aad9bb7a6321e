"""Any outputs of executions."""

from hypothesis import strategies as st

from muster.domain.data import outputs as left
from tests.unit.plain_values import labels, moments, optional, texts, tuples_of

digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
execution_outputs = st.builds(
    left.ExecutionOutputs,
    stage=st.sampled_from(left.OutputsStage),
    tree=st.just("") | digests,
    size=st.integers(0, left.LARGEST_OUTPUTS),
    files=st.integers(0, left.MOST_OUTPUTS),
    bytes=st.integers(0, left.LARGEST_OUTPUTS),
    left_out=st.integers(0, left.LARGEST_OUTPUTS),
    why=texts,
    at=optional(moments),
)
job_outputs = st.builds(
    left.JobOutputs,
    job=labels,
    job_name=labels,
    attempt=st.integers(1, 1000),
    size=st.integers(1, 1000),
    depot=st.sampled_from(["", ":7463", "depot.example.org:7463"]),
    ranks=tuples_of(
        st.builds(left.RankOutputs, rank=st.integers(0, 999), role=labels, outputs=execution_outputs, ticket=labels)
    ),
)
