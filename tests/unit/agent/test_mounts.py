"""Lines of mountinfo."""

from pathlib import Path

from agent.mounts import KernelMount, mounts_in

TEXT = """\
24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
31 24 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:9 shared:3 - cgroup cgroup rw,cpu,cpuacct
no line of it
40 24 0:30 / /dev/shm rw -
"""


def test_each_mount_has_its_file_system_and_its_place() -> None:
    disk, group = mounts_in(TEXT)

    assert disk == KernelMount("8:1", "/", Path("/"), "ext4", frozenset({"rw", "errors=remount-ro"}))
    assert group == KernelMount(
        "0:27", "/docker/abc", Path("/sys/fs/cgroup/cpu,cpuacct"), "cgroup", frozenset({"rw", "cpu", "cpuacct"})
    )
