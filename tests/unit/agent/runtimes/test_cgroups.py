"""Which cgroups an agent finds, in the words of the kernel."""

from pathlib import Path

import pytest

from agent.runtimes.kernel.cgroups import Hierarchy, hierarchies

SECOND = "41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
UNIT = "/system.slice/muster-agent.service"


def test_the_unit_of_systemd_is_found_in_the_second_version() -> None:
    own = Path(f"/sys/fs/cgroup{UNIT}/agent")
    [found] = hierarchies(SECOND, f"0::{UNIT}/agent\n")
    assert found == Hierarchy(own=own, root=Path("/sys/fs/cgroup"), controllers=frozenset(), unified=True)
    assert (found.base, found.may_hand_out) == (own.parent, True)


@pytest.mark.parametrize(("path", "hands_out"), [(UNIT, False), ("/user.slice/session-1.scope", False), ("/", True)])
def test_where_the_agent_itself_is_limits_cannot_begin_but_at_the_root(path: str, *, hands_out: bool) -> None:
    [found] = hierarchies(SECOND, f"0::{path}\n")
    assert (found.base, found.may_hand_out) == (found.own, hands_out)


def test_of_the_first_version_only_what_limits_is_of_use() -> None:
    found = hierarchies(HYBRID, "9:devices:/\n4:memory:/docker/abc/inner\n2:cpu,cpuacct:/x\n0::/\n")
    assert [(str(each.own), sorted(each.controllers), each.unified) for each in found] == [
        ("/sys/fs/cgroup/cpu,cpuacct/x", ["cpu"], False),
        ("/sys/fs/cgroup/memory/inner", ["memory"], False),
        ("/sys/fs/cgroup/unified", [], True),
    ]


@pytest.mark.parametrize(("mounts", "memberships"), [("", "0::/\n"), (SECOND, ""), (SECOND, "0::/../elsewhere\n")])
def test_what_cannot_be_found_is_not_there(mounts: str, memberships: str) -> None:
    assert hierarchies(mounts, memberships) == ()
