"""The kind of file system is read from what the kernel says of its mounts."""

from pathlib import Path

from bench.disk import file_system, mounted


def test_a_line_tells_device_and_kind_however_many_optional_fields_it_has() -> None:
    assert mounted("36 35 98:0 / /mnt2 rw,noatime master:1 shared:2 - ext4 /dev/root rw") == ("98:0", "ext4")
    assert mounted("22 1 254:0 / / rw - xfs /dev/vda rw,seclabel") == ("254:0", "xfs")


def test_memory_is_told_from_disks() -> None:
    assert file_system(Path("/dev/shm")) == "tmpfs"
