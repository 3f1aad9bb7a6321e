"""Any checkpoints and code of jobs, and orders to stop."""

from datetime import timedelta

from hypothesis import strategies as st

from muster.domain.data import checkpoint as saved
from muster.domain.data.code import GitCode, JobCode
from muster.domain.data.outputs import LARGEST_OUTPUTS, MOST_OUTPUTS
from muster.domain.data.tree import LARGEST_TREE_FORM
from muster.domain.data.upload import DepotPass
from muster.domain.jobs.stopping.notice import StopOrder, StopReason
from tests.unit.output_values import digests
from tests.unit.plain_values import labels, moments, spans, texts, tuples_of

git_codes = st.builds(
    GitCode,
    url=labels.map("https://git.example.org/{}.git".format),
    ref=st.just("") | labels,
    commit=st.just("") | st.text("0123456789abcdef", min_size=40, max_size=40),
    path=st.just("") | labels,
    secret=st.just("") | labels,
    submodules=st.booleans(),
    lfs=st.booleans(),
)
repos = st.none() | st.builds(JobCode, git=git_codes)
codes = st.builds(
    JobCode,
    tree=digests,
    size=st.integers(0, LARGEST_TREE_FORM),
    git=st.none() | git_codes,
    writable=st.booleans(),
) | st.builds(JobCode, git=git_codes)
stop_orders = st.builds(StopOrder, reason=st.sampled_from(StopReason), grace=spans)
sizes = st.integers(1, LARGEST_OUTPUTS)
checkpoints = st.builds(
    saved.JobCheckpoint,
    path=st.none() | labels.map("/{}".format),
    ranks=st.sampled_from(saved.CheckpointRanks),
    done=st.sampled_from(["", ".metadata", "**/done"]),
    settle=st.integers(1, 86_400).map(lambda seconds: timedelta(seconds=seconds)),
    keep=st.integers(1, saved.MOST_CHECKPOINTS_KEPT),
    to=st.just("") | labels.map("s3://acme/{}".format),
    secret=st.just("") | labels,
)
passes = st.builds(
    saved.CheckpointPass,
    depot=st.builds(DepotPass, depot=labels, ticket=labels, allowed=st.integers(0, LARGEST_OUTPUTS)),
    place=st.none()
    | st.builds(
        saved.CheckpointPlace,
        to=labels.map("s3://acme/{}".format),
        secret=labels,
        opens=st.dictionaries(labels, st.binary(max_size=9), max_size=2),
        earlier=tuples_of(labels),
        kept=tuples_of(digests),
        told=st.integers(0, saved.MOST_PARTS),
    ),
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
ranks = st.integers(0, 999)
views = st.builds(
    saved.CheckpointView,
    attempt=st.integers(1, 1000),
    name=labels,
    at=moments,
    files=st.integers(0, MOST_OUTPUTS),
    bytes=st.integers(0, LARGEST_OUTPUTS),
    parts=st.integers(0, 1000),
    needed=st.integers(0, 1000),
    lacking=tuples_of(ranks),
    spoiled=tuples_of(ranks),
    pinned=st.booleans(),
    bad=st.booleans(),
    restored=st.booleans(),
)
job_checkpoints = st.builds(
    saved.JobCheckpoints,
    job=labels,
    job_name=labels,
    checkpoints=tuples_of(views),
    troubles=tuples_of(st.builds(saved.CheckpointTrouble, rank=ranks, why=texts)),
)
found_parts = st.builds(
    saved.CheckpointParts,
    job=labels,
    job_name=labels,
    checkpoint=views,
    depot=st.sampled_from(["", ":7463", "depot.example.org:7463"]),
    parts=tuples_of(
        st.builds(
            saved.CheckpointPartView,
            rank=ranks,
            files=st.integers(0, MOST_OUTPUTS),
            bytes=st.integers(0, LARGEST_OUTPUTS),
            tree=st.just("") | digests,
            size=st.integers(0, LARGEST_OUTPUTS),
            ticket=labels,
            store=st.just("") | labels.map("s3://acme/{}".format),
        )
    ),
)


@st.composite
def valid_checkpoints(draw: st.DrawFn, *, contained: bool) -> saved.JobCheckpoint | None:
    """What a role saves, at a place of its own."""
    if draw(st.booleans()):
        return None
    secret = draw(st.sampled_from(("", "store")))
    return saved.JobCheckpoint(
        to=secret and draw(st.sampled_from(("s3://acme", "s3://acme/saved/", "az://acme/a b"))),
        secret=secret,
        path="/saved" if contained and draw(st.booleans()) else None,
        ranks=draw(st.sampled_from(saved.CheckpointRanks)),
        done=draw(st.sampled_from(["", ".metadata", "**/done", "*.json"])),
        settle=timedelta(seconds=draw(st.integers(1, 10_000))),
        keep=draw(st.integers(1, saved.MOST_CHECKPOINTS_KEPT)),
    )
