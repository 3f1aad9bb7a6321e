"""Users and rights of containers: nothing beyond a plain user's rights, unless their role asks for it."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.containers.spec import EXECUTION_LABEL
from agent.core.launching.job_user import NOBODY
from muster.domain.gangs.log import Stream
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import InlineFile, Mount, Network, Role, Security
from tests.contract.docker_place import DockerPlace
from tests.contract.docker_trials import assigned, prepared, refusal, script
from tests.docker_daemon import containers, import_busybox, inspected

pytestmark = pytest.mark.docker

RIGHTS = "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status"
NONE = "0" * 16
OF_ROOT = "00000000000004fb"
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE."""
FILTER = "2"
"""Docker's own profile for system calls is on."""


@pytest.fixture
def place(tmp_path: Path, docker_socket: Path) -> DockerPlace:
    return DockerPlace(tmp_path, docker_socket)


async def printed(place: DockerPlace, directory: Path, role: Role) -> list[str]:
    """What the containers of a role print, which end well."""
    async with place.runtime() as runtime, prepared(runtime, directory, assigned(role)) as it:
        assert await it.run() == Exit(code=0), it.printed(Stream.STDERR)
        return [line.decode() for line in it.printed()]


async def rights(place: DockerPlace, directory: Path, role: Role) -> dict[str, str]:
    """What the kernel says of the rights of user code."""
    lines = await printed(place, directory, replace(role, command=("sh", "-c", RIGHTS)))
    return {name.rstrip(":"): value for name, value in map(str.split, lines)}


async def test_user_code_has_no_rights_by_default(place: DockerPlace, tmp_path: Path) -> None:
    assert await rights(place, tmp_path, script("")) == {
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), NONE),
        "NoNewPrivs": "1",
        "Seccomp": FILTER,
    }


async def test_a_role_that_names_no_user_runs_as_that_of_the_agent(place: DockerPlace, tmp_path: Path) -> None:
    text = "id -u; id -g; id -G; echo $HOME $USER; touch ~/kept /muster/outputs/kept"
    role = script(f"{text}; touch /muster/config/x || touch /bin/x || touch /muster/x || echo no further")
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"65534", b"65534", b"65534", b"/muster/home muster", b"no further"]
        for kept in (it.directory.outputs / "kept", it.directory.home / "kept"):
            assert (kept.stat().st_uid, kept.stat().st_gid) == (65534, 65534)


async def test_on_a_bridge_it_runs_as_the_same_user(place: DockerPlace, tmp_path: Path) -> None:
    assignment = assigned(script("id -u; ls -ld /muster/home | cut -c1-10"), network=Network.BRIDGE)
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assignment) as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"65534", b"drwxrwx---"]


@pytest.mark.parametrize(("user", "group"), [("1000", "1000"), ("4711", "4711"), ("4711:12", "12")])
async def test_a_user_by_number_has_one_group_and_a_home(
    place: DockerPlace, tmp_path: Path, user: str, group: str
) -> None:
    role = script("id -u; id -g; id -G; touch ~/x /muster/outputs/x", user=user)
    assert await printed(place, tmp_path, role) == [user.partition(":")[0], group, group]
    assert (await rights(place, tmp_path / "again", role))["CapBnd"] == NONE


async def test_the_user_of_the_image_is_for_roles_that_ask_for_it(place: DockerPlace, tmp_path: Path) -> None:
    image = "muster-test/as-app:1"
    import_busybox(place.socket, image, {"USER": "app"})
    role = script("id -un; touch /muster/outputs/x; echo $HOME", image=image)
    asked = replace(role, security=Security(image_user=True))
    assert (await printed(place, tmp_path / "1", asked))[0] == "app"
    assert (await printed(place, tmp_path / "2", role))[0] != "app"


async def test_root_of_a_container_has_what_root_needs_there(place: DockerPlace, tmp_path: Path) -> None:
    role = script("", security=Security(image_user=True))
    found = await rights(place, tmp_path / "1", role)
    assert (found["CapEff"], found["CapBnd"], found["NoNewPrivs"]) == (OF_ROOT, OF_ROOT, "1")
    text = "id -u; touch /x; chown app /x; kill -0 1; su -s /bin/sh app -c 'id -un' 2>&1 || true"
    assert (await printed(place, tmp_path / "2", replace(role, command=("sh", "-c", text))))[0] == "0"
    assert (await rights(place, tmp_path / "3", script("", user="0:0")))["CapEff"] == OF_ROOT


async def test_a_capability_is_added_for_root(place: DockerPlace, tmp_path: Path) -> None:
    asked = Security(image_user=True, capabilities=("SYS_PTRACE",))
    found = await rights(place, tmp_path, script("", security=asked))
    assert int(found["CapEff"], 16) == int(OF_ROOT, 16) | 1 << 19


async def test_programs_may_gain_privileges_where_the_role_asks_for_it(place: DockerPlace, tmp_path: Path) -> None:
    assert (await rights(place, tmp_path, script("", security=Security(gain_privileges=True))))["NoNewPrivs"] == "0"


async def test_the_privileged_have_everything_or_are_refused_before_user_code_runs(
    place: DockerPlace, tmp_path: Path
) -> None:
    """Where root of the machine lacks a right itself, as in many virtual machines, no engine can give it."""
    role = script("", security=Security(privileged=True, image_user=True))
    if "CapBnd:\t000001ffffffffff" not in Path("/proc/self/status").read_text():  # noqa: ASYNC240 - in memory
        with pytest.raises(ExecutionError, match=r"unable to apply caps: operation not permitted"):
            await rights(place, tmp_path, role)
        return
    found = await rights(place, tmp_path, role)
    assert int(found["CapEff"], 16) & 1 << 21  # SYS_ADMIN
    assert found["Seccomp"] == "0"


@pytest.mark.parametrize(("asked", "limit"), [(None, "32768"), (64, "64"), (100_000, "100000")])
async def test_processes_are_limited(place: DockerPlace, tmp_path: Path, asked: int | None, limit: str) -> None:
    role = script("true", security=Security(pids=asked))
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        await it.run()
        [container] = containers(place.socket, f"{EXECUTION_LABEL}={it.sandbox.execution}")
        assert str(inspected(place.socket, container["Id"])["HostConfig"]["PidsLimit"]) == limit


async def test_a_fork_bomb_ends_in_its_container(place: DockerPlace, tmp_path: Path) -> None:
    role = script("for i in $(seq 50); do sleep 60 & done; wait", security=Security(pids=16))
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        assert (await it.run()).code != 0
        assert any(b"fork" in line for line in it.printed(Stream.STDERR))


async def test_files_of_the_job_belong_to_its_user(place: DockerPlace, tmp_path: Path) -> None:
    files = (InlineFile(path="/tmp/note", content=b"x\n"),)
    assert await printed(place, tmp_path, script("echo y >> /tmp/note; cat /tmp/note", files=files)) == ["x", "y"]


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/data", "/data/deep/made"),
        ("/data", "//data/made"),
        ("/data", "/link/made"),
        ("/data", "/data"),
        ("/data", "/data/deep"),
        ("/data/below", "/data"),
        ("/data/below", "/link/below/made"),
        ("/link/below", "/data/below/made"),
    ],
)
async def test_files_do_not_touch_what_the_node_lends(
    place: DockerPlace, tmp_path: Path, target: str, path: str
) -> None:
    """The engine writes them as root, and takes away what is in their place; user code may less there."""
    lent = tmp_path / "lent"
    (lent / "deep").mkdir(parents=True)
    (lent / "deep" / "roots").touch(mode=0o600)
    image = "muster-test/linked:1"
    import_busybox(place.socket, image, links={"link": "/data", "elsewhere": "/tmp"})
    files = (InlineFile(path="/elsewhere/fine", content=b""), InlineFile(path=path, content=b"x"))
    mounts = (Mount(source=str(lent), target=target, read_only=False),)
    async with place.runtime(mount_roots=[lent]) as runtime:
        with pytest.raises(ExecutionError, match=f"files: {path} would lie in the mount {target}"):
            async with prepared(runtime, tmp_path, assigned(script("", image=image, files=files, mounts=mounts))) as it:
                await it.arm()
    assert sorted(str(each.relative_to(lent)) for each in lent.rglob("*")) == ["deep", "deep/roots"]


async def test_what_leads_to_something_else_of_the_engine_is_no_image(place: DockerPlace, tmp_path: Path) -> None:
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(script("true"))) as it:
        await it.arm()
        role = replace(Role(), image=f"../containers/muster-{it.sandbox.execution}")
        error = await refusal(place, tmp_path, assigned(role))
        assert (error.kind, str(error)) == (FailureKind.IMAGE, f"{role.image!r} is not the name of an image")


async def test_files_beside_a_mount_are_written(place: DockerPlace, tmp_path: Path) -> None:
    lent = tmp_path / "lent"
    lent.mkdir()
    files = (InlineFile(path="/etc/made", content=b"x\n"), InlineFile(path="/data2/made", content=b"y\n"))
    role = script("cat /etc/made /data2/made", files=files, mounts=(Mount(source=str(lent), target="/data"),))
    async with place.runtime(mount_roots=[lent]) as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        assert await it.run() == Exit(code=0), it.printed(Stream.STDERR)
        assert it.printed() == [b"x", b"y"]


async def test_a_container_sees_no_process_of_the_node(place: DockerPlace, tmp_path: Path) -> None:
    text = f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()} 2>&1 | grep -c 'No such process'; ls /dev/shm /run /var"
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(script(text))) as it:
        await it.run()
        count, missing, *_ = it.printed()
        assert int(count) < 10
        assert missing == b"1"


async def test_no_device_is_there_beside_those_of_every_container(place: DockerPlace, tmp_path: Path) -> None:
    assert await printed(place, tmp_path, script("find /dev -type b; mknod /tmp/d b 8 0 || echo none")) == ["none"]


async def test_a_link_below_a_mount_root_is_not_followed(place: DockerPlace, tmp_path: Path) -> None:
    root = tmp_path / "data"
    (root / "mine").mkdir(parents=True)
    (root / "others").mkdir()
    (root / "mine" / "way").symlink_to(root / "others")
    assignment = assigned(script("true", mounts=(Mount(source=str(root / "mine" / "way"), target="/in"),)))
    refused = await refusal(place, tmp_path, assignment, mount_roots=[root])
    assert refused.kind is FailureKind.INVALID_OPTION
    assert "is a symbolic link" in str(refused)


@pytest.mark.parametrize("source", ["", "agent", "agent/trust", "agent/executions"])
async def test_the_state_of_the_agent_cannot_be_mounted(place: DockerPlace, tmp_path: Path, source: str) -> None:
    (tmp_path / "agent" / "trust").mkdir(parents=True)
    (tmp_path / "agent" / "executions").mkdir()
    assignment = assigned(script("true", mounts=(Mount(source=str(tmp_path / source), target="/in"),)))
    refused = await refusal(place, tmp_path, assignment, mount_roots=[tmp_path], private=[tmp_path / "agent"])
    assert "only the agent, the engine or the node itself may see" in str(refused)


@pytest.mark.parametrize("source", ["/proc", "/sys/kernel", "/dev", "socket"])
async def test_the_engine_and_the_node_itself_cannot_be_mounted(
    place: DockerPlace, tmp_path: Path, source: str
) -> None:
    wanted = str(place.socket) if source == "socket" else source
    assignment = assigned(script("true", mounts=(Mount(source=wanted, target="/in"),)))
    refused = await refusal(place, tmp_path, assignment, mount_roots=[Path("/")])
    assert "only the agent, the engine or the node itself may see" in str(refused)


async def test_another_container_on_the_network_of_the_node_shares_no_memory(
    place: DockerPlace, tmp_path: Path
) -> None:
    async with place.runtime() as runtime:
        writer, reader = script("echo secret > /dev/shm/x; sleep 60"), script("ls /dev/shm; ls /muster")
        async with prepared(runtime, tmp_path, assigned(writer)) as first:
            await first.release()
            async with prepared(runtime, tmp_path, assigned(reader)) as second:
                assert await second.run() == Exit(code=0)
                assert second.printed() == [b"config", b"first", b"home", b"outputs", b"status"]


async def test_the_agent_keeps_what_it_gave_to_a_job(place: DockerPlace, tmp_path: Path) -> None:
    async with place.runtime(job_user=None) as runtime, prepared(runtime, tmp_path, assigned(script("id -u"))) as it:
        await it.run()
        assert it.printed() == [b"0"]
        assert it.directory.outputs.stat().st_mode & 0o7777 == 0o1777
    async with place.runtime(job_user=NOBODY) as runtime, prepared(runtime, tmp_path, assigned(script("true"))) as it:
        assert it.directory.outputs.stat().st_mode & 0o7777 == 0o770
        assert it.directory.outputs.stat().st_uid == NOBODY.uid


async def test_an_abstract_socket_of_the_node_tells_who_comes(place: DockerPlace, tmp_path: Path) -> None:
    """Whoever is on the node's network reaches such sockets, so that what listens there must look at who comes."""
    name = f"\0muster-test-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        listener.setblocking(False)
        visible = await printed(place, tmp_path, script(f"grep -c {name[1:]} /proc/net/unix"))
        assert visible == ["1"]
