"""What Docker is asked to create."""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from agent.core.containers.faults import fault, pull_fault
from agent.core.containers.spec import (
    ContainerPart,
    ContainerSite,
    Image,
    arguments,
    candidates,
    container_name,
    holder_body,
    hosts_file,
    inline_paths,
    needs_rehearsal,
    rehearsal_body,
    search_path,
    user_body,
    workdir,
)
from agent.core.launching.job_user import NOBODY, JobUser, user_of
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import GpuUuid, JobId, execution_id
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.job import InlineFile, Mount, Network, Resources, Role, Security, Ulimit

SITE = ContainerSite(
    identity="node-a",
    cpus=8,
    init=True,
    config=PurePosixPath("/executions/j-1-2/config"),
    inputs=PurePosixPath("/executions/j-1-2/inputs"),
    outputs=PurePosixPath("/executions/j-1-2/outputs"),
    status=PurePosixPath("/executions/j-1-2/status"),
    user=NOBODY,
    home=PurePosixPath("/executions/j-1-2/home"),
)
BY_IMAGE = replace(SITE, user=None, home=None)
IMAGE = Image(id="sha256:abc", entrypoint=("/entry",), command=("serve",), env={"PATH": "/opt/bin"}, workdir="/srv")
OWN_ENV = ["HOME=/muster/home", "USER=muster", "LOGNAME=muster"]
JOB = JobId("j")
LAUNCH = Launch(env={"RANK": "2"}, host_names={"worker-0": "10.0.0.1", "worker-1": "fd00::2"})


def assignment(role: Role, *gpus: str, network: Network = Network.HOST) -> Assignment:
    return Assignment(
        execution=execution_id(JOB, 1, 2),
        job=JOB,
        job_name="train",
        attempt=1,
        rank=2,
        world_size=4,
        local_rank=0,
        local_world_size=1,
        node_rank=2,
        node_count=4,
        role=role,
        network=network,
        gpus=tuple(map(GpuUuid, gpus)),
    )


def body(role: Role, *gpus: str, launch: Launch = LAUNCH, site: ContainerSite = SITE) -> dict[str, Any]:
    return user_body(assignment(role, *gpus), site, IMAGE, launch, holder=None, hosts=None)


def test_the_whole_body_of_a_plain_execution() -> None:
    assert body(Role(image="img", command=("train",))) == {
        "Image": "sha256:abc",
        "Cmd": ["train"],
        "User": "65534:65534",
        "Env": [*OWN_ENV, "RANK=2", "NVIDIA_VISIBLE_DEVICES=void"],
        "Labels": {
            "muster.execution": "j-1-2",
            "muster.job": "j",
            "muster.attempt": "1",
            "muster.rank": "2",
            "muster.image": "img",
            "muster.agent": "node-a",
            "muster.part": "user",
        },
        "StopTimeout": 10,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "host",
            "ExtraHosts": ["worker-0:10.0.0.1", "worker-1:fd00::2"],
            "CapDrop": ["ALL"],
            "CapAdd": [],
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": 32768,
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "Init": True,
            "LogConfig": {"Type": "local", "Config": {"max-size": "100m", "max-file": "3", "compress": "false"}},
            "RestartPolicy": {"Name": "no"},
            "CpuShares": 1024,
            "Ulimits": [],
            "Mounts": [
                {"Type": "bind", "Source": "/executions/j-1-2/config", "Target": "/muster/config", "ReadOnly": True},
                {"Type": "bind", "Source": "/executions/j-1-2/outputs", "Target": "/muster/outputs", "ReadOnly": False},
                {"Type": "bind", "Source": "/executions/j-1-2/status", "Target": "/muster/status", "ReadOnly": False},
                {"Type": "bind", "Source": "/executions/j-1-2/home", "Target": "/muster/home", "ReadOnly": False},
            ],
        },
    }


def test_the_program_in_front_of_user_code_is_there_in_place_of_dockers() -> None:
    made = body(Role(image="img"), site=replace(SITE, first=PurePosixPath("/executions/j-1-2/first")))
    assert made["HostConfig"]["Init"] is False
    assert made["HostConfig"]["Mounts"][-1] == {
        "Type": "bind",
        "Source": "/executions/j-1-2/first",
        "Target": "/muster/first",
        "ReadOnly": False,
    }


def test_the_body_of_an_execution_with_everything() -> None:
    role = Role(
        entrypoint=("python",),
        command=("-u", "train.py"),
        workdir="/code",
        user="1000:1000",
        resources=Resources(gpus=2, cpu_millis=4500, memory=1 << 30, shm=1 << 28),
        mounts=(Mount(source="/data", target="/data"),),
        ulimits=(Ulimit(name="memlock", soft=-1, hard=-1),),
    )
    made = body(role, "GPU-a", "GPU-b", site=replace(SITE, user=JobUser(uid=1000, gid=1000), home=None))
    assert (made["Entrypoint"], made["Cmd"]) == (["python"], ["-u", "train.py"])
    assert (made["WorkingDir"], made["User"]) == ("/code", "1000:1000")
    assert made["Env"] == ["RANK=2", "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b"]
    limits = made["HostConfig"]
    assert limits["DeviceRequests"] == [
        {"Driver": "nvidia", "DeviceIDs": ["GPU-a", "GPU-b"], "Capabilities": [["gpu", "utility", "compute"]]}
    ]
    assert (limits["Memory"], limits["MemorySwap"], limits["ShmSize"]) == (1 << 30, 1 << 30, 1 << 28)
    assert (limits["CpuShares"], "NanoCpus" in limits) == (4608, False)
    assert limits["Ulimits"] == [{"Name": "memlock", "Soft": -1, "Hard": -1}]
    assert limits["Mounts"][3] == {"Type": "bind", "Source": "/data", "Target": "/data", "ReadOnly": True}


def test_no_container_is_privileged() -> None:
    for made in (body(Role()), holder_body(assignment(Role()), SITE, "holder", ())):
        assert "Privileged" not in made["HostConfig"]  # type: ignore[operator]  # a mapping, as Docker wants it


def test_whoever_may_be_root_has_what_root_needs_in_a_container() -> None:
    ours = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"]
    root = replace(SITE, user=JobUser(uid=0, gid=0), home=None)
    for site, user in ((BY_IMAGE, None), (BY_IMAGE, "app"), (root, "0")):
        assert body(Role(user=user), site=site)["HostConfig"]["CapAdd"] == ours
    assert body(Role(user="0"), site=root)["User"] == "0:0"
    assert body(Role(user="app"), site=BY_IMAGE)["User"] == "app"
    assert "User" not in body(Role(), site=BY_IMAGE)


def test_what_a_role_asks_for_is_added_and_nothing_else() -> None:
    asked = Security(capabilities=("SYS_PTRACE", "CHOWN"), gain_privileges=True, pids=7, privileged=True)
    plain, more = (body(Role(security=each))["HostConfig"] for each in (Security(), asked))
    assert {key: more[key] for key in more if more[key] != plain.get(key)} == {
        "CapAdd": ["CHOWN", "SYS_PTRACE"],
        "SecurityOpt": [],
        "PidsLimit": 7,
        "Privileged": True,
    }


def test_nothing_of_the_node_is_shared_but_its_network() -> None:
    limits = body(Role())["HostConfig"]
    assert limits["IpcMode"] == limits["CgroupnsMode"] == "private"
    shared = {"PidMode", "UTSMode", "UsernsMode", "Devices", "DeviceCgroupRules", "GroupAdd", "VolumesFrom", "Binds"}
    assert shared.isdisjoint(limits)
    assert {"MaskedPaths", "ReadonlyPaths"}.isdisjoint(limits)  # then Docker's own lists hold


def test_the_home_of_a_user_by_number_is_a_directory_of_its_own_unless_the_job_says_otherwise() -> None:
    assert body(Role(), launch=Launch(env={"HOME": "/code"}))["Env"][0] == "HOME=/code"
    assert not any(each.startswith("HOME=") for each in body(Role(), site=BY_IMAGE)["Env"])


@pytest.mark.parametrize(
    ("role", "user"),
    [
        (Role(), NOBODY),
        (Role(user="1000"), JobUser(uid=1000, gid=1000)),
        (Role(user="1000:100"), JobUser(uid=1000, gid=100)),
        (Role(user="app"), None),
        (Role(security=Security(image_user=True)), None),
    ],
)
def test_a_role_that_names_no_user_runs_as_that_of_the_agent(role: Role, user: JobUser | None) -> None:
    assert user_of(role, NOBODY) == user


def test_gpus_that_were_not_given_cannot_be_asked_for() -> None:
    launch = Launch(env={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert body(Role(), launch=launch)["Env"] == [*OWN_ENV, "NVIDIA_VISIBLE_DEVICES=void"]
    assert body(Role(), "GPU-a", launch=launch)["Env"] == [*OWN_ENV, "NVIDIA_VISIBLE_DEVICES=GPU-a"]


def test_what_is_reserved_is_no_limit_but_for_memory_and_no_limit_is_above_what_the_node_has() -> None:
    asked = Resources(cpu_millis=500, cpu_limit=64_000, memory=1 << 30, memory_limit=1 << 31)
    limits, without = (body(Role(resources=each))["HostConfig"] for each in (asked, replace(asked, memory_limit=0)))
    assert (limits["CpuShares"], limits["NanoCpus"]) == (512, 8_000_000_000)
    assert (limits["Memory"], limits["MemorySwap"], "Memory" in without) == (1 << 31, 1 << 31, False)


def test_an_empty_entrypoint_takes_the_images_away() -> None:
    assert body(Role(entrypoint=()))["Entrypoint"] == [""]
    assert "Entrypoint" not in body(Role())


def test_in_the_network_of_a_holder_names_come_from_a_file() -> None:
    made = user_body(
        assignment(Role()), SITE, IMAGE, LAUNCH, holder="h1", hosts=PurePosixPath("/executions/j-1-2/hosts")
    )
    limits: Any = made["HostConfig"]
    assert limits["NetworkMode"] == "container:h1"
    assert "ExtraHosts" not in limits
    assert limits["Mounts"][-1] == {
        "Type": "bind",
        "Source": "/executions/j-1-2/hosts",
        "Target": "/etc/hosts",
        "ReadOnly": True,
    }


def test_the_holder_has_ports_and_host_name_and_no_rights() -> None:
    leases = (
        PortLease(name="master", host_port=20001, container_port=29500),
        PortLease(name="web", host_port=20002, container_port=80),
    )
    made: Any = holder_body(assignment(Role(), network=Network.BRIDGE), SITE, "muster/holder:1", leases)
    assert made["Hostname"] == "rank-2"
    assert made["HostConfig"]["PortBindings"] == {
        "29500/tcp": [{"HostIp": "0.0.0.0", "HostPort": "20001"}],
        "80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "20002"}],
    }
    assert made["ExposedPorts"] == {"29500/tcp": {}, "80/tcp": {}}
    assert made["HostConfig"]["CapDrop"] == ["ALL"]
    assert made["Labels"]["muster.part"] == "holder"


def test_the_hosts_file_puts_members_before_the_container_itself() -> None:
    assert hosts_file(assignment(Role()), LAUNCH, "172.17.0.2").decode().splitlines() == [
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        "10.0.0.1\tworker-0",
        "fd00::2\tworker-1",
        "172.17.0.2\trank-2",
    ]


def test_a_rehearsal_differs_only_in_what_runs() -> None:
    role = Role(command=("train",), user="app", resources=Resources(gpus=1))
    real = body(role, "GPU-a", launch=Launch(env={}))
    tried = rehearsal_body(assignment(role, "GPU-a"), SITE, IMAGE)
    assert {key for key in real | tried if real.get(key) != tried.get(key)} == {"Entrypoint", "Cmd", "Labels"}


@pytest.mark.parametrize(
    ("role", "needed"),
    [
        (Role(), False),
        (Role(user="1000"), False),
        (Role(user="1000:1000"), False),
        (Role(user="app"), True),
        (Role(security=Security(privileged=True)), True),
        (Role(security=Security(capabilities=("SYS_ADMIN",))), True),
        (Role(security=Security(gain_privileges=True, image_user=True, pids=9)), False),
        (Role(user="1000:video"), True),
        (Role(resources=Resources(gpus=1)), True),
        (Role(ulimits=(Ulimit(name="nofile", soft=1, hard=1),)), True),
    ],
)
def test_only_what_docker_checks_late_is_rehearsed(role: Role, needed: bool) -> None:
    assert needs_rehearsal(role) is needed


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (Role(), ("/entry", "serve")),
        (Role(command=("train", "-v")), ("/entry", "train", "-v")),
        (Role(entrypoint=("sh",)), ("sh",)),
        (Role(entrypoint=("sh",), command=("-c", "x")), ("sh", "-c", "x")),
        (Role(entrypoint=(), command=("train",)), ("train",)),
        (Role(entrypoint=()), ()),
    ],
)
def test_what_runs_follows_dockers_rules(role: Role, expected: tuple[str, ...]) -> None:
    assert arguments(role, IMAGE) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("train", ("/usr/bin/train", "/srv/tools/train", "/srv/train")),
        ("/bin/sh", ("/bin/sh",)),
        ("./run.sh", ("/srv/run.sh",)),
        ("../x/run", ("/x/run",)),
    ],
)
def test_programs_are_looked_for_as_the_kernel_would(program: str, expected: tuple[str, ...]) -> None:
    assert candidates(program, "/srv", "/usr/bin:tools:") == expected


def test_the_search_path_is_that_of_the_job_then_of_the_image_then_dockers() -> None:
    assert search_path(IMAGE, Launch(env={"PATH": "/job"})) == "/job"
    assert search_path(IMAGE, Launch(env={})) == "/opt/bin"
    assert search_path(replace(IMAGE, env={}), Launch(env={})).startswith("/usr/local/sbin:")


@pytest.mark.parametrize(("env", "path"), [({}, "/opt/bin"), ({"PATH": "/job"}, "/job")])
def test_programs_that_a_dialect_brings_come_first_in_the_search_path(env: dict[str, str], path: str) -> None:
    launch = Launch(env=env, programs={"scontrol": b""})
    assert f"PATH=/muster/config/bin:{path}" in body(Role(image="i"), launch=launch)["Env"]


def test_the_working_directory_is_that_of_the_job_then_of_the_image() -> None:
    assert workdir(Role(workdir="/code"), IMAGE) == "/code"
    assert workdir(Role(), IMAGE) == "/srv"
    assert workdir(Role(), replace(IMAGE, workdir="")) == "/"


def test_inline_files_are_below_the_working_directory_unless_absolute() -> None:
    near, far = InlineFile(path="a/b.py", content=b"1"), InlineFile(path="/etc/app.conf", content=b"2")
    assert inline_paths(Role(files=(near, far)), IMAGE) == {"/srv/a/b.py": near, "/etc/app.conf": far}


def test_with_the_dialect_valohai_the_directories_are_there_under_its_names_too() -> None:
    inside = Mount(source="/data", target="/valohai/inputs/images")
    spoken = replace(assignment(Role(image="i", mounts=(inside,))), dialects=(Dialect.VALOHAI,))
    limits: Any = user_body(spoken, SITE, IMAGE, LAUNCH, holder=None, hosts=None)["HostConfig"]
    assert [(each["Source"], each["Target"], each["ReadOnly"]) for each in limits["Mounts"][3:7]] == [
        ("/data", "/valohai/inputs/images", True),
        ("/executions/j-1-2/config", "/valohai/config", True),
        ("/executions/j-1-2/inputs", "/valohai/inputs", False),
        ("/executions/j-1-2/outputs", "/valohai/outputs", False),
    ]


def test_a_mount_in_place_of_valohais_inputs_is_all_that_is_there() -> None:
    spoken = replace(
        assignment(Role(image="i", mounts=(Mount(source="/data", target="/valohai/inputs/"),))),
        dialects=(Dialect.VALOHAI,),
    )
    limits: Any = user_body(spoken, SITE, IMAGE, LAUNCH, holder=None, hosts=None)["HostConfig"]
    inputs = [each["Source"] for each in limits["Mounts"] if each["Target"].startswith("/valohai/inputs")]
    assert inputs == ["/data"]


def test_names_of_containers_tell_their_part() -> None:
    id_ = execution_id(JOB, 1, 2)
    assert [container_name(id_, part) for part in ContainerPart] == [
        "muster-j-1-2",
        "muster-j-1-2-holder",
        "muster-j-1-2-rehearsal",
    ]


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (500, "mkdir /var/lib/docker/overlay2/x: no space left on device", FailureKind.DISK_FULL),
        (500, "Bind for 0.0.0.0:8080 failed: port is already allocated", FailureKind.PORT_TAKEN),
        (500, "listen tcp4 0.0.0.0:80: bind: address already in use", FailureKind.PORT_TAKEN),
        (500, 'could not select device driver "nvidia" with capabilities: [[gpu]]', FailureKind.GPU),
        (500, "nvidia-container-cli: device error: GPU-x: unknown device: unknown", FailureKind.GPU),
        (500, "unable to find user foo: no matching entries in passwd file", FailureKind.INVALID_OPTION),
        (500, "error setting rlimit type 8: operation not permitted: unknown", FailureKind.INVALID_OPTION),
        (400, 'exec: "nosuch": executable file not found in $PATH: unknown', FailureKind.COMMAND_NOT_FOUND),
        (400, 'exec: "/x": stat /x: no such file or directory: unknown', FailureKind.COMMAND_NOT_FOUND),
        (400, "Minimum memory limit allowed is 6MB", FailureKind.INVALID_OPTION),
        (404, "No such image: x:latest", FailureKind.IMAGE),
        (500, "containerd: container did not start before the specified timeout", FailureKind.RUNTIME),
    ],
)
def test_what_docker_refuses_is_named_for_the_user(status: int, message: str, kind: FailureKind) -> None:
    found = fault(status, message)
    assert found.kind is kind
    assert message in str(found)


def test_a_failed_pull_says_what_the_registry_said() -> None:
    assert (
        str(pull_fault("x:1", "manifest for x:1\nnot found"))
        == "image x:1 cannot be pulled: manifest for x:1 not found"
    )
    assert pull_fault("x:1", "write: no space left on device").kind is FailureKind.DISK_FULL
