"""Any outputs of executions."""

from hypothesis import strategies as st

from muster.domain.data import outputs as left
from muster.domain.data.output_terms import LiveOutputs, OutputTerms, StoredAfter
from muster.domain.data.sharing.swarm_pass import SwarmMember, SwarmPass
from muster.domain.data.upload import DepotPass
from tests.unit.plain_values import labels, moments, optional, spans, texts, tuples_of

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
    retries=st.integers(0, 1000),
)
swarm_passes = st.one_of(
    st.just(SwarmPass()),
    st.builds(
        SwarmPass,
        key=st.binary(min_size=32, max_size=32),
        members=st.lists(
            st.builds(SwarmMember, node=st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True), address=st.just("h:1")),
            min_size=1,
            max_size=4,
        ).map(tuple),
    ),
)
output_terms = st.builds(
    OutputTerms,
    after=st.sampled_from(StoredAfter),
    only=st.lists(st.sampled_from(["**/*.pt", "plots/", "a?"]), max_size=3).map(tuple),
    limit=st.none() | st.integers(0, 2**63 - 1),
    keep=st.none() | spans,
    to=st.sampled_from(["", "s3://acme", "s3://acme/runs"]),
    secret=st.sampled_from(["", "store"]),
    live=st.none() | st.sampled_from(LiveOutputs),
)
output_passes = st.just(left.OutputsPass(depot=None)) | st.builds(
    left.OutputsPass,
    depot=st.builds(DepotPass, depot=labels, ticket=labels, allowed=st.integers(1, left.LARGEST_OUTPUTS)),
    terms=output_terms,
    opens=st.dictionaries(st.sampled_from(["endpoint", "access-key-id"]), st.binary(max_size=8)),
)
job_outputs = st.builds(
    left.JobOutputs,
    job=labels,
    job_name=labels,
    attempt=st.integers(1, 1000),
    size=st.integers(1, 1000),
    depot=st.sampled_from(["", ":7463", "depot.example.org:7463"]),
    ranks=tuples_of(
        st.builds(
            left.RankOutputs,
            rank=st.integers(0, 999),
            role=labels,
            outputs=execution_outputs,
            ticket=labels,
            store=st.sampled_from(["", "s3://acme/runs/train-j7k2/1/0"]),
        )
    ),
)
output_retries = st.builds(
    left.OutputsRetry,
    job=labels,
    job_name=labels,
    attempt=st.integers(1, 1000),
    ranks=st.lists(st.integers(0, 999), unique=True, max_size=4).map(tuple),
    refused=tuples_of(st.builds(left.RankNotRetried, rank=st.integers(0, 999), why=texts)),
)
