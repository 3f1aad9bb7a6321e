"""Hypothesis strategies for samples that lose nothing on their way: numbers in the units in which they travel."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.coordinator_figures import COMMIT_BOUNDS, CoordinatorFigures
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, NodeSample, Sample
from tests.unit.plain_values import node_ids, optional

_thousandths = st.integers(0, 10**6).map(lambda number: number / 1000)
_mib = st.integers(0, 2**30).map(lambda number: number << 20)
_kib = st.integers(0, 2**30).map(lambda number: float(number << 10))
_small = st.integers(0, 10**6)
_gpu_uses = st.builds(
    GpuUse,
    busy=optional(_thousandths),
    busy_most=optional(_thousandths),
    memory=optional(_mib),
    watts=optional(_small.map(float)),
    celsius=optional(_small),
    clock_mhz=optional(_small),
    throttled=st.booleans(),
)
_execution_uses = st.builds(
    ExecutionUse,
    cpus=optional(_thousandths),
    cpus_most=optional(_thousandths),
    memory=optional(_mib),
    read_rate=optional(_kib),
    write_rate=optional(_kib),
    processes=optional(_small),
)
_hosts = st.builds(
    HostUse,
    cpus=_thousandths,
    memory=_mib,
    memory_total=_mib,
    read_rate=optional(_kib),
    write_rate=optional(_kib),
    receive_rate=optional(_kib),
    send_rate=optional(_kib),
    stalled=st.tuples(optional(_thousandths), optional(_thousandths), optional(_thousandths)),
)
_names = node_ids


def _named(kind: type[str], uses: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.dictionaries(_names.map(kind), uses, max_size=4).map(lambda each: tuple(each.items()))


samples = st.builds(
    Sample,
    at=st.integers(0, 2**41).map(lambda ms: datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)),
    span=st.integers(0, 10**6).map(lambda ms: timedelta(milliseconds=ms)),
    host=_hosts,
    gpus=_named(GpuUuid, _gpu_uses),
    executions=_named(ExecutionId, _execution_uses),
    left_out=_small,
)
node_samples = st.builds(NodeSample, node_ids, samples)
_counts = st.integers(0, 2**50)
coordinator_figures = st.builds(
    CoordinatorFigures,
    began=st.integers(0, 2**41).map(lambda ms: datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)),
    turns=_counts,
    commits=st.tuples(*[_counts] * (len(COMMIT_BOUNDS) + 1)),
    commit_seconds=_thousandths,
    waiting=_counts,
    streams=_counts,
    memory=_counts,
    cpu_seconds=_thousandths,
)
