"""Any checkpoints and code of jobs, and orders to stop."""

from datetime import timedelta

from hypothesis import strategies as st

from muster.domain.data import checkpoint as saved
from muster.domain.data.code import JobCode
from muster.domain.data.outputs import LARGEST_OUTPUTS, MOST_OUTPUTS
from muster.domain.data.tree import LARGEST_TREE_FORM
from muster.domain.jobs.stopping.notice import StopOrder, StopReason
from tests.unit.output_values import digests
from tests.unit.plain_values import labels, spans, texts

codes = st.builds(JobCode, tree=digests, size=st.integers(0, LARGEST_TREE_FORM))
stop_orders = st.builds(StopOrder, reason=st.sampled_from(StopReason), grace=spans)
sizes = st.integers(1, LARGEST_OUTPUTS)
checkpoints = st.builds(
    saved.JobCheckpoint,
    path=st.none() | labels.map("/{}".format),
    ranks=st.sampled_from(saved.CheckpointRanks),
    done=st.sampled_from(["", ".metadata", "**/done"]),
    settle=st.integers(1, 86_400).map(lambda seconds: timedelta(seconds=seconds)),
    keep=st.integers(1, saved.MOST_CHECKPOINTS_KEPT),
)
parts = st.builds(
    saved.StoredPart,
    name=labels,
    number=st.integers(1, saved.MOST_PARTS),
    tree=digests,
    size=sizes,
    files=st.integers(1, MOST_OUTPUTS),
    bytes=st.integers(0, LARGEST_OUTPUTS),
)
told = st.builds(
    saved.ToldCheckpoints,
    parts=st.lists(parts, max_size=saved.PARTS_TOLD, unique_by=lambda part: part.number).map(
        lambda several: tuple(sorted(several, key=lambda part: part.number))
    ),
    storing=st.booleans(),
    trouble=texts,
)
to_restore = st.builds(
    saved.CheckpointToRestore,
    attempt=st.integers(1, 1000),
    name=labels,
    trees=st.lists(st.builds(saved.NamedTree, tree=digests, size=sizes), max_size=2).map(tuple),
)


@st.composite
def valid_checkpoints(draw: st.DrawFn, *, contained: bool) -> saved.JobCheckpoint | None:
    """What a role saves, at a place of its own."""
    if draw(st.booleans()):
        return None
    return saved.JobCheckpoint(
        path="/saved" if contained and draw(st.booleans()) else None,
        ranks=draw(st.sampled_from(saved.CheckpointRanks)),
        done=draw(st.sampled_from(["", ".metadata", "**/done", "*.json"])),
        settle=timedelta(seconds=draw(st.integers(1, 10_000))),
        keep=draw(st.integers(1, saved.MOST_CHECKPOINTS_KEPT)),
    )
