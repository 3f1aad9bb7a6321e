"""What of a job its project is not opened for."""

from dataclasses import replace

import pytest

from coordinator.trust.permissions import changes, closed, require_open
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import OPEN, Permissions
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.domain.jobs.job import DEFAULT_PIDS, JobSpec, Mount, Role, Security, Ulimit

NOTHING = Permissions()

OPTIONS = (
    "leave it out, or ask an admin for "
    "`muster projects allow vision --any-user --capability SYS_ADMIN --capability BPF`"
)


def job(*roles: Role) -> JobSpec:
    return JobSpec(name="train", roles=roles, project="vision")


def keys(role: Role, permissions: Permissions = NOTHING) -> list[str]:
    return [each.key for each in closed(job(role), permissions)]


def test_a_job_that_asks_for_nothing_needs_no_opening() -> None:
    assert closed(job(Role(image="img"), Role(name="b", command=("true",))), NOTHING) == ()


@pytest.mark.parametrize("user", ["1000", "1000:1000", "65534:100"])
def test_users_by_number_need_no_opening(user: str) -> None:
    assert keys(Role(image="img", user=user)) == []


@pytest.mark.parametrize("user", ["0", "0:1000", "1000:0", "00", "root", "app", "1000:video", "4294967295"])
def test_root_and_users_by_name_need_any_user(user: str) -> None:
    assert keys(Role(image="img", user=user)) == ["user"]
    assert keys(Role(image="img", user=user), Permissions(any_user=True)) == []


@pytest.mark.parametrize(
    ("asked", "key", "permissions"),
    [
        (Security(image_user=True), "security.image_user", Permissions(any_user=True)),
        (Security(privileged=True), "security.privileged", Permissions(privileged=True)),
        (Security(gain_privileges=True), "security.gain_privileges", Permissions(gain_privileges=True)),
        (
            Security(capabilities=("SYS_PTRACE",)),
            "security.capabilities",
            Permissions(capabilities=frozenset({"SYS_PTRACE"})),
        ),
        (Security(pids=DEFAULT_PIDS + 1), "security.pids", Permissions(pids=DEFAULT_PIDS + 1)),
    ],
)
def test_each_wish_needs_its_own_opening(asked: Security, key: str, permissions: Permissions) -> None:
    role = Role(image="img", security=asked)
    assert keys(role) == [key]
    assert keys(role, permissions) == []
    assert keys(role, OPEN) == []
    others = replace(OPEN, **{name: getattr(NOTHING, name) for name in vars_of(permissions)})
    assert keys(role, others) == [key]


def vars_of(permissions: Permissions) -> list[str]:
    """The fields in which permissions differ from those that open nothing."""
    return [name for name in Permissions.__dataclass_fields__ if getattr(permissions, name) != getattr(NOTHING, name)]


@pytest.mark.parametrize(
    ("limit", "opened"), [("memlock", True), ("nofile", True), ("nproc", True), ("rtprio", False), ("nice", False)]
)
def test_limits_need_no_opening_but_for_priorities(limit: str, opened: bool) -> None:
    role = Role(image="img", ulimits=(Ulimit(name=limit, soft=0, hard=-1),))
    assert keys(role) == ([] if opened else ["ulimits"])
    assert keys(role, Permissions(capabilities=frozenset({"SYS_NICE"}))) == []
    assert keys(replace(role, ulimits=(Ulimit(name=limit, soft=0, hard=0),))) == []


def test_fewer_processes_than_the_default_need_no_opening() -> None:
    assert keys(Role(image="img", security=Security(pids=1))) == []


@pytest.mark.parametrize(
    ("source", "opened"),
    [
        ("/data", True),
        ("/data/set", True),
        ("/data/", True),
        ("/data/../etc", False),
        ("/database", False),
        ("/", False),
    ],
)
def test_mounts_come_from_below_a_host_path(source: str, opened: bool) -> None:
    role = Role(image="img", mounts=(Mount(source=source, target="/in"),))
    assert keys(role) == ["mounts"]
    assert (keys(role, Permissions(host_paths=("/srv", "/data"))) == []) is opened
    assert keys(role, OPEN) == []


def test_the_refusal_names_every_role_and_key_and_how_to_open_the_project() -> None:
    first = Role(name="a", image="img", user="root")
    second = Role(name="b", image="img", security=Security(capabilities=("SYS_ADMIN", "BPF")))
    with pytest.raises(PermissionDeniedError) as refused:
        require_open(job(first, second), NOTHING)
    assert str(refused.value).splitlines() == [
        "project vision is not opened for what the job asks for:",
        "  role a, user: root, which is no number, and may be root in the image (--any-user)",
        "  role b, security.capabilities: SYS_ADMIN (--capability SYS_ADMIN)",
        "  role b, security.capabilities: BPF (--capability BPF)",
        OPTIONS,
    ]


def test_changes_of_permissions_are_told_in_words() -> None:
    before = Permissions(capabilities=frozenset({"BPF", "CHOWN"}), host_paths=("/a",), privileged=True)
    after = Permissions(capabilities=frozenset({"BPF", "KILL"}), host_paths=("/a", "/b"), any_user=True, pids=99)
    assert changes(before, after) == "+KILL, -CHOWN, +/b, -privileged, +any-user, pids default -> 99"
    assert changes(after, after) == "nothing"


def test_changes_of_who_may_attach_are_told_in_words() -> None:
    before = Permissions(attach=AttachPermission(commands=False))
    after = Permissions(attach=AttachPermission(who=Attachers.MEMBERS, connections=False, files=False))
    assert changes(before, after) == "attach owner -> members, +commands, -connections, -files"
    assert changes(after, after) == "nothing"
