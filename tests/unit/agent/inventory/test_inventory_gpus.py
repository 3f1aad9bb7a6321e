"""Which GPUs are fit for use, and GPUs that are not there."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.gpus.health import CRITICAL_XIDS, XIDS
from agent.gpus.nvml.program import sysfs_numa_node
from agent.gpus.open import NvmlSource, judge, open_source
from agent.gpus.simulated import MODELS, InvalidSimulationError, SimulatedSource
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.node import Gpu, GpuProcess
from muster.domain.ids import GpuUuid, NodeId

IDLE = Gpu(uuid=GpuUuid("GPU-1"), index=0, model="H100", memory=1)
BUSY = replace(IDLE, processes=(GpuProcess(pid=4242),))
DOCUMENT = Path(__file__).parents[4] / "docs" / "gpus.md"


def test_a_gpu_on_which_a_stranger_computes_is_unusable() -> None:
    assert judge([BUSY], set()) == (replace(BUSY, problems=("in use by process 4242, which Muster did not start",)),)


def test_several_strangers_are_all_named() -> None:
    crowded = replace(IDLE, processes=(GpuProcess(pid=7), GpuProcess(pid=8)))
    assert judge([crowded], set())[0].problems == ("in use by processes 7, 8, which Muster did not start",)


def test_processes_on_a_gpu_that_was_given_to_an_execution_are_its_own() -> None:
    assert judge([BUSY], {BUSY.uuid}) == (BUSY,)


def test_an_idle_gpu_is_left_as_it_is() -> None:
    assert judge([IDLE], set()) == (IDLE,)


def test_a_stranger_is_one_more_problem_of_a_gpu_that_has_some() -> None:
    sick = replace(BUSY, problems=("Xid 48: double bit ECC error",))
    assert judge([sick], set())[0].problems == (
        "Xid 48: double bit ECC error",
        "in use by process 4242, which Muster did not start",
    )


def test_every_xid_is_in_the_document_as_the_agent_takes_it() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert {int(xid): (words, taken) for xid, words, taken in rows} == {
        xid: (words, "the GPU is unusable" if xid in CRITICAL_XIDS else "reported only") for xid, words in XIDS.items()
    }


def test_every_model_that_can_be_simulated_is_in_the_document() -> None:
    assert ", ".join(MODELS) in DOCUMENT.read_text()


async def test_simulated_uuids_come_from_the_name_of_the_node() -> None:
    first, again, other = [
        [gpu.uuid for gpu in (await SimulatedSource("2xA100", NodeId(name)).read()).gpus] for name in ("a", "a", "b")
    ]
    assert first == again
    assert not set(first) & set(other)


async def test_models_without_nvlink_have_no_peers() -> None:
    gpus = (await SimulatedSource("2xT4", NodeId("a")).read()).gpus
    assert [(gpu.model, gpu.memory, gpu.nvlink_peers) for gpu in gpus] == [("Tesla T4", 15 << 30, ())] * 2


@pytest.mark.parametrize("spec", ["", "8", "H100", "0xH100", "65xH100", "8 x H100", "-1xH100"])
def test_a_simulation_that_cannot_be_read_is_refused(spec: str) -> None:
    with pytest.raises(InvalidSimulationError, match="are written like 8xH100, from 1 to 64, not") as raised:
        SimulatedSource(spec, NodeId("a"))
    assert repr(spec) in str(raised.value)


def test_an_unknown_model_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(
        InvalidSimulationError, match="no GPU model 'RX580' can be simulated; choose from T4, V100, A10"
    ):
        SimulatedSource("8xRX580", NodeId("a"))


async def test_simulated_gpus_can_be_divided_into_mig_devices_beside_whole_ones() -> None:
    gpus = (await SimulatedSource("2xH100,1xH100/3g.40gb/1g.10gb", NodeId("a")).read()).gpus

    assert [(gpu.index, gpu.mig, gpu.mig_enabled, gpu.memory // 10**9) for gpu in gpus] == [
        (0, None, False, 85),
        (1, None, False, 85),
        (2, "3g.40gb", True, 40),
        (2, "1g.10gb", True, 10),
    ]
    assert [gpu.uuid.partition("-")[0] for gpu in gpus] == ["GPU", "GPU", "MIG", "MIG"]
    assert len({gpu.uuid for gpu in gpus}) == 4
    assert [len(gpu.nvlink_peers) for gpu in gpus] == [1, 1, 0, 0]


async def test_each_of_several_divided_gpus_has_devices_of_its_own() -> None:
    gpus = (await SimulatedSource("2xA100/1g.10gb/1g.10gb", NodeId("a")).read()).gpus

    assert [gpu.index for gpu in gpus] == [0, 0, 1, 1]
    assert len({gpu.uuid for gpu in gpus}) == 4


async def test_it_is_not_known_how_busy_a_simulated_mig_device_is() -> None:
    source = SimulatedSource("1xH100,1xH100/3g.40gb", NodeId("a"))

    whole, device = (await source.read()).gpus
    used = await source.use()
    assert used[whole.uuid].busy == 0
    assert used[device.uuid].busy is None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("1xL4/1g.10gb", "NVIDIA L4 cannot be divided; A100, H100, H200, B200 can"),
        ("1xH100/small", "'small' is no MIG profile; they are written like 1g.10gb"),
        ("1xH100/4g.40gb/4g.40gb", "the devices have 8 compute slices, a GPU has 7"),
        ("1xH100/3g.40gb/3g.71gb", "the devices have 111 GB of memory, NVIDIA H100 80GB HBM3 has 85"),
        ("60xH100,5xH100", "written like 8xH100, from 1 to 64"),
        ("2xH100,", "with commas between them"),
        ("1xH100/", "divided ones like 2xH100/3g.40gb/1g.10gb"),
    ],
)
def test_a_division_that_no_driver_could_make_is_refused(spec: str, words: str) -> None:
    with pytest.raises(InvalidSimulationError, match=re.escape(words)):
        SimulatedSource(spec, NodeId("a"))


def test_the_operator_chooses_the_source() -> None:
    assert isinstance(open_source("nvml", NodeId("a")), NvmlSource)
    assert isinstance(open_source("fake:8xH100", NodeId("a")), SimulatedSource)


@pytest.mark.parametrize("provider", ["", "rocm", "fake"])
def test_an_unknown_source_is_refused(provider: str) -> None:
    with pytest.raises((UnknownNameError, InvalidSimulationError), match="8xH100"):
        open_source(provider, NodeId("a"))


@pytest.mark.parametrize(("written", "node"), [("1\n", 1), ("0\n", 0), ("-1\n", None), ("", None)])
def test_the_kernels_numa_node_is_read_where_there_is_one(tmp_path: Path, written: str, node: int | None) -> None:
    (tmp_path / "0000:18:00.0").mkdir()
    (tmp_path / "0000:18:00.0" / "numa_node").write_text(written)
    assert sysfs_numa_node("0000:18:00.0", tmp_path) == node


def test_a_pci_device_that_the_kernel_does_not_list_has_no_numa_node(tmp_path: Path) -> None:
    assert sysfs_numa_node("0000:18:00.0", tmp_path) is None
