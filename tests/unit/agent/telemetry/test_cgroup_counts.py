"""What the kernel says of a cgroup, with both versions."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.telemetry.cgroups import CgroupCounters, CgroupCounts, mounted_trees

MIB = 1 << 20
SECOND_FILES = {
    "cgroup.controllers": "cpu memory io pids",
    "cpu.stat": "usage_usec 2500000\nuser_usec 1\nsystem_usec 2\n",
    "memory.current": f"{10 * MIB}\n",
    "memory.stat": f"anon 5\ninactive_file {3 * MIB}\n",
    "io.stat": "8:0 rbytes=100 wbytes=200 rios=1 wios=2 dbytes=0 dios=0\n259:0 rbytes=10 wbytes=20 rios=1 wios=1\n",
    "pids.current": "7\n",
}
FIRST_FILES = {
    "cpu,cpuacct": {"cpuacct.usage": "2500000000\n"},
    "memory": {"memory.usage_in_bytes": f"{10 * MIB}\n", "memory.stat": f"cache 1\ntotal_inactive_file {3 * MIB}\n"},
    "blkio": {
        "blkio.throttle.io_service_bytes": "8:0 Read 100\n8:0 Write 200\n8:0 Total 300\n8:16 Read 10\n"
        "8:16 Write 20\n8:16 Total 30\nTotal 330\n"
    },
    "pids": {"pids.current": "7\n"},
}
COUNTED = CgroupCounts(cpu_seconds=2.5, memory=7 * MIB, read_bytes=110, written_bytes=220, processes=7)


def write(directory: Path, files: Mapping[str, str]) -> None:
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / name).write_text(text)


def second(root: Path, inside: str = "/") -> str:
    return f"30 24 0:26 {inside} {root} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"


def first(root: Path, controllers: str, inside: str = "/") -> str:
    return f"31 24 0:27 {inside} {root} rw,nosuid shared:9 - cgroup cgroup rw,{controllers}\n"


def test_the_second_version_has_all_in_one_tree(tmp_path: Path) -> None:
    write(tmp_path / "docker" / "abc", SECOND_FILES)
    counters = CgroupCounters(mounted_trees(second(tmp_path)), "0::/docker/abc\n")

    assert counters.read() == COUNTED


def test_the_first_version_has_a_tree_for_each_controller(tmp_path: Path) -> None:
    mounts = "24 1 8:1 / / rw - ext4 /dev/sda rw\n"
    for controllers, files in FIRST_FILES.items():
        write(tmp_path / controllers / "docker" / "abc", files)
        mounts += first(tmp_path / controllers, controllers)
    membership = "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n2:blkio:/docker/abc\n1:pids:/docker/abc\n0::/\n"

    assert CgroupCounters(mounted_trees(mounts), membership).read() == COUNTED


def test_on_a_host_with_both_the_first_version_counts(tmp_path: Path) -> None:
    write(tmp_path / "unified" / "abc", {})
    write(tmp_path / "memory" / "abc", FIRST_FILES["memory"])
    mounts = second(tmp_path / "unified") + first(tmp_path / "memory", "memory")

    assert CgroupCounters(mounted_trees(mounts), "2:memory:/abc\n0::/abc\n").read() == CgroupCounts(memory=7 * MIB)


def test_a_tree_of_which_a_part_is_mounted_begins_there(tmp_path: Path) -> None:
    write(tmp_path / "abc", SECOND_FILES)
    trees = mounted_trees(second(tmp_path, "/outer"))

    assert CgroupCounters(trees, "0::/outer/abc\n").read() == COUNTED
    assert CgroupCounters(trees, "0::/outermost/abc\n").read() == CgroupCounts()
    assert CgroupCounters(trees, "0::/other\n").read() == CgroupCounts()


@pytest.mark.parametrize("membership", ["", "nonsense", "0::/../abc\n", "0::/gone\n"])
def test_what_is_not_there_is_not_known(tmp_path: Path, membership: str) -> None:
    write(tmp_path / "abc", SECOND_FILES)

    assert CgroupCounters(mounted_trees(second(tmp_path)), membership).read() == CgroupCounts()


def test_a_process_of_this_machine_has_counts_or_none() -> None:
    trees = mounted_trees(Path("/proc/self/mountinfo").read_text())
    counts = CgroupCounters(trees, Path(f"/proc/{os.getpid()}/cgroup").read_text()).read()

    assert counts.cpu_seconds is None or counts.cpu_seconds >= 0
    assert counts.memory is None or counts.memory >= 0
