"""What the kernel says of the whole node."""

from pathlib import Path

import pytest

from agent.telemetry.host import HostCounters, HostCounts

STAT = "cpu  1000 20 300 9000 400 5 15 10 77 88\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n"
MEMINFO = "MemTotal:       16000000 kB\nMemFree:         1000 kB\nMemAvailable:    4000000 kB\nHugePages_Total:   0\n"
DISKSTATS = """\
   7       0 loop0 9 9 9 9 9 9 9 9 0 9 9
   8       0 sda 10 0 100 5 20 0 200 6 0 7 8
   8       1 sda1 9 0 90 5 19 0 190 6 0 7 8
 259       0 nvme0n1 1 0 1000 5 2 0 2000 6 0 7 8
 259       1 nvme0n1p1 1 0 999 5 2 0 1999 6 0 7 8
 259       2 nvme1n1 1 0 10000 5 2 0 20000 6 0 7 8
 253       0 dm-0 1 0 5000 5 2 0 5000 6 0 7 8
"""
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0
  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
   ib0:   50 1 0 0 0 0 0 0   70 1 0 0 0 0 0 0
"""


def pressure(total: int) -> str:
    return f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "meminfo").write_text(MEMINFO)
    (tmp_path / "diskstats").write_text(DISKSTATS)
    (tmp_path / "net" / "dev").write_text(NET_DEV)
    return tmp_path


def test_the_counts_are_those_of_the_kernel(proc: Path) -> None:
    (proc / "pressure").mkdir()
    for number, name in enumerate(("cpu", "memory", "io"), 1):
        (proc / "pressure" / name).write_text(pressure(number * 1_500_000))

    assert HostCounters(proc, ticks=100).read() == HostCounts(
        cpu_busy=13.5,
        memory_used=12_000_000 * 1024,
        memory_total=16_000_000 * 1024,
        read_bytes=(100 + 1000 + 10_000) * 512,
        written_bytes=(200 + 2000 + 20_000) * 512,
        received_bytes=1050,
        sent_bytes=2070,
        stalled=(1.5, 3.0, 4.5),
    )


def test_what_a_kernel_does_not_tell_is_not_known(proc: Path) -> None:
    (proc / "diskstats").unlink()
    (proc / "net" / "dev").unlink()

    counts = HostCounters(proc, ticks=100).read()

    assert (counts.read_bytes, counts.written_bytes, counts.received_bytes, counts.sent_bytes) == (None,) * 4
    assert counts.stalled == (None, None, None)


def test_each_reading_is_a_new_one(proc: Path) -> None:
    counters = HostCounters(proc, ticks=100)
    before = counters.read()
    (proc / "stat").write_text(STAT.replace("1000 20", "1200 20"))
    after = counters.read()
    counters.close()
    counters.close()

    assert after.cpu_busy - before.cpu_busy == 2.0


def test_this_machine_tells_what_it_has() -> None:
    counters = HostCounters()
    counts = counters.read()
    counters.close()

    assert counts.cpu_busy > 0
    assert 0 < counts.memory_used < counts.memory_total
