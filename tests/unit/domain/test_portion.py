"""Portions of GPUs: what each is of a GPU, and how many of them one holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.jobs.job import Resources
from muster.domain.jobs.placing.portion import GpuShare, Portion

GIB = 2**30
portions = st.builds(Portion, st.integers(10, 999), st.just(0)) | st.builds(
    Portion, st.just(1000), st.integers(2**28, 2**38)
)
sizes = st.integers(2**28, 2**39)


@pytest.mark.parametrize(
    ("portion", "share", "fitting"),
    [
        (Portion(500), GpuShare(500, 40 * GIB), 2),
        (Portion(333), GpuShare(333, 80 * GIB * 333 // 1000), 3),
        (Portion(501), GpuShare(501, 80 * GIB * 501 // 1000), 1),
        (Portion(1000, 20 * GIB), GpuShare(250, 20 * GIB), 4),
        (Portion(1000, 27 * GIB), GpuShare(338, 27 * GIB), 2),
        (Portion(1000, 80 * GIB), GpuShare(1000, 80 * GIB), 1),
        (Portion(1000, 81 * GIB), GpuShare(1001, 81 * GIB), 0),
    ],
)
def test_a_portion_is_a_part_of_the_thousandths_and_of_the_memory(
    portion: Portion, share: GpuShare, fitting: int
) -> None:
    assert portion.of(80 * GIB) == share
    assert portion.fitting(80 * GIB) == fitting


@given(portions, sizes)
def test_so_many_go_together_and_no_more(portion: Portion, memory: int) -> None:
    share, count = portion.of(memory), portion.fitting(memory)

    assert count * share.thousandths <= 1000
    assert count * share.memory <= memory
    assert (count + 1) * share.thousandths > 1000 or (count + 1) * share.memory > memory


def test_a_gpu_whose_memory_nobody_knows_holds_no_memory() -> None:
    assert Portion(1000, GIB).fitting(0) == 0


def test_resources_ask_for_whole_gpus_unless_they_say_a_portion() -> None:
    assert Resources(gpus=1).portion is None
    assert Resources(gpus=1, mig="1g.10gb").portion is None
    assert Resources(gpus=1, gpu_portion=1000).portion is None
    assert Resources(gpus=1, gpu_portion=500).portion == Portion(500)
    assert Resources(gpus=1, gpu_memory=GIB).portion == Portion(1000, GIB)
    assert Resources(gpus=1, gpu_memory=GIB, gpu_counted=13).portion == Portion(13, GIB)
