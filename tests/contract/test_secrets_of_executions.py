"""Secrets reach user code in every runtime, and nothing else."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.executions.layout import ExecutionDirectory
from agent.runtimes.docker.sandbox import DockerSandbox
from agent.secrets.directories import NoMemoryDirectoryError, SecretDirectories, memory_directory
from muster.domain.gangs.log import Stream
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import Role
from muster.domain.jobs.secret_use import SECRETS_DIRECTORY
from tests.contract.runtimes import GRACE, Place, Trial, assignment_for, shell
from tests.contract.secret_places import (
    HANDOVER,
    KEY,
    TOKEN,
    ContainersWithSecrets,
    ProcessesWithSecrets,
    digest,
    having,
    programs_with,
    root_of,
    with_secrets,
)
from tests.docker_daemon import containers, import_busybox, inspected


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[SecretDirectories]:
    try:
        root = memory_directory(None, os.environ) / tmp_path.name
    except NoMemoryDirectoryError as error:
        pytest.skip(str(error))
    yield SecretDirectories(root)
    if root.exists():
        root.rmdir()  # every test clears what it made


@pytest.fixture
def docker(tmp_path: Path, docker_socket: Path, directories: SecretDirectories) -> ContainersWithSecrets:
    return ContainersWithSecrets(tmp_path, docker_socket, directories)


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def place(request: pytest.FixtureRequest, tmp_path: Path, directories: SecretDirectories) -> Place:
    if request.param == "docker":
        return ContainersWithSecrets(tmp_path, request.getfixturevalue("docker_socket"), directories)
    return ProcessesWithSecrets(tmp_path, directories)


async def let_go(it: Trial) -> None:
    """Let go as an agent does that ends."""
    assert isinstance(it.sandbox, DockerSandbox)
    await it.sandbox.let_go()


def script(text: str) -> Role:
    return Role(command=shell(text))


async def test_user_code_finds_exactly_the_values(place: Place, tmp_path: Path) -> None:
    text = (
        'for value in "$TOKEN" "$GREETING"; do printf "%s\\n" "$value" | sha256sum; done; cd "$MUSTER_SECRETS_DIR"; '
        "for each in */*; do echo $each; sha256sum < $each; stat -c %a $each; done"
    )
    async with with_secrets(place, tmp_path, script(text)) as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [
            digest(TOKEN + b"\n"),
            digest("größer  als\n$HOME\n".encode()),
            *(b"deploy/key", digest(KEY), b"400"),
            *(b"deploy/tok.en", digest(TOKEN), b"400"),
        ]


async def test_what_is_printed_is_masked_in_both_streams_and_across_long_lines(place: Place, tmp_path: Path) -> None:
    text = (
        'echo "a $TOKEN b"; cat "$MUSTER_SECRETS_DIR/deploy/key" >&2; '
        "head -c 16380 /dev/zero | tr '\\000' x; printf %s \"$TOKEN\"; head -c 20000 /dev/zero | tr '\\000' y; echo; "
        'printf %s "$TOKEN"'
    )
    async with with_secrets(place, tmp_path, script(text)) as it:
        await it.run()
        assert it.printed() == [b"a *** b", b"x" * 16380 + b"***" + b"y" * 20000, b"***"]
        assert it.printed(Stream.STDERR) == [b"***"] * 4
        assert it.spool.tail(1) == ("***",)
        assert having(tmp_path, [TOKEN]) == []


async def test_nothing_of_it_is_on_disk_in_arguments_or_in_the_environment_of_others(
    place: Place, tmp_path: Path
) -> None:
    async with with_secrets(place, tmp_path, script("echo ready; sleep 1000")) as it:
        await it.release()
        await it.says(b"ready")
        assert having(tmp_path, [TOKEN, KEY]) == []
        assert programs_with("cmdline", TOKEN) == set()
        # Busybox runs `sleep` as /proc/self/exe, which is called `exe` until it names itself.
        assert programs_with("environ", TOKEN) <= {"sh", "sleep", "exe"}, "user code alone"
        await it.sandbox.remove()
        assert having(tmp_path, [TOKEN, KEY]) == []


async def test_arming_again_replaces_the_secrets(place: Place, tmp_path: Path) -> None:
    async with with_secrets(place, tmp_path, script("echo $TOKEN | sha256sum")) as it:
        await it.arm()
        it.launch = replace(it.launch, secrets=replace(HANDOVER, env={"TOKEN": b"another"}))
        await it.run()
        assert it.printed() == [digest(b"another\n")]


async def test_a_variable_of_the_job_gives_way_to_the_secret(place: Place, tmp_path: Path) -> None:
    role = Role(command=shell("env | grep -c ^TOKEN=; echo $TOKEN | sha256sum"), env={"TOKEN": "of the job file"})
    async with with_secrets(place, tmp_path, role) as it:
        await it.run()
        assert it.printed() == [b"1", digest(TOKEN + b"\n")]


async def test_a_program_that_is_stopped_hears_of_it(place: Place, tmp_path: Path) -> None:
    text = "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    async with with_secrets(place, tmp_path, script(text)) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(GRACE)
        assert await it.end() == Exit(code=7)
        assert it.printed() == [b"ready", b"saved"]


@pytest.mark.parametrize("program", ["no-such-program", "/no/such/file"])
async def test_a_missing_program_is_missed_when_arming(place: Place, tmp_path: Path, program: str) -> None:
    async with with_secrets(place, tmp_path, Role(command=(program,))) as it:
        with pytest.raises(ExecutionError, match=program) as caught:
            await it.arm()
        assert caught.value.kind is FailureKind.COMMAND_NOT_FOUND


@pytest.mark.docker
async def test_docker_neither_shows_nor_stores_a_value(docker: ContainersWithSecrets, tmp_path: Path) -> None:
    async with with_secrets(docker, tmp_path, script("echo ready; sleep 1000")) as it:
        await it.release()
        await it.says(b"ready")
        [container] = containers(docker.socket, f"muster.execution={it.sandbox.execution}")
        shown = inspected(docker.socket, container["Id"])
        assert TOKEN.decode() not in f"{shown}{container}"
        assert (root_of(docker.socket) / container["Id"] / "config.v2.json").exists()
        assert having(root_of(docker.socket), [TOKEN, KEY]) == []
        mounts = {each["Destination"]: each["RW"] for each in shown["Mounts"]}
        assert mounts[f"{SECRETS_DIRECTORY}/deploy"] is False


@pytest.mark.docker
async def test_what_user_code_printed_is_gone_with_its_container(docker: ContainersWithSecrets, tmp_path: Path) -> None:
    async with with_secrets(docker, tmp_path, script('echo "$TOKEN"')) as it:
        await it.run()
        assert it.printed() == [b"***"]
        await it.sandbox.remove()
        assert having(root_of(docker.socket), [TOKEN]) == []


@pytest.mark.docker
@pytest.mark.parametrize("user", [None, "app", "1000", "app:0", "0"])
async def test_the_user_of_a_container_owns_its_files(
    docker: ContainersWithSecrets, tmp_path: Path, user: str | None
) -> None:
    text = f"cd {SECRETS_DIRECTORY}/deploy; stat -c '%a %u' key; cat key > /dev/null && id -u; touch x || true"
    async with with_secrets(docker, tmp_path, replace(script(text), user=user)) as it:
        await it.run()
        [owner, reader] = it.printed()
        assert owner == b"400 " + reader
        assert it.printed(Stream.STDERR) == [b"touch: x: Read-only file system"]


@pytest.mark.docker
async def test_an_entrypoint_of_the_image_gets_the_variables(docker: ContainersWithSecrets, tmp_path: Path) -> None:
    docker.image = "muster-test/entry:1"
    changes = {"ENTRYPOINT": '["sh", "-c"]', "CMD": '["echo $TOKEN | sha256sum"]', "ENV": "PATH=/bin TOKEN=image"}
    import_busybox(docker.socket, docker.image, changes)
    async with with_secrets(docker, tmp_path, Role()) as it:
        await it.run()
        assert it.printed() == [digest(TOKEN + b"\n")]


@pytest.mark.docker
@pytest.mark.parametrize("known", [True, False])
async def test_after_a_restart_of_the_agent_masks_hold(
    docker: ContainersWithSecrets, tmp_path: Path, *, known: bool
) -> None:
    """Where the values are gone, say after a restart of the node, nothing that was printed is shown."""
    go = "/muster/outputs/go"
    text = f'echo first "$TOKEN"; while [ ! -e {go} ]; do sleep 0.02; done; echo then "$TOKEN"'
    async with with_secrets(docker, tmp_path, script(text)) as it:
        await it.release()
        await it.says(b"first ***")
        if not known:
            docker.directories.clear(it.sandbox.execution)
        await let_go(it)
        async with docker.runtime() as successor:
            [(sandbox, spool, started)] = await successor.recover(tmp_path / "executions")
            assert started
            (it.directory.outputs / "go").touch()
            after = Trial(sandbox, spool, ExecutionDirectory(tmp_path / "executions", sandbox.execution), it.launch)
            await after.end()
            printed = after.printed()
            spool.close()
        assert (b"then ***" if known else b"***") in printed
        assert not [line for line in printed if TOKEN in line]


@pytest.mark.docker
async def test_a_restart_in_the_middle_of_a_long_line_neither_shows_nor_loses_a_byte(
    docker: ContainersWithSecrets, tmp_path: Path
) -> None:
    """The first piece of the line ends within the value; the rest comes when another agent reads."""
    go = "/muster/outputs/go"
    filler = "head -c 16380 /dev/zero | tr '\\000' x"
    text = f'{filler}; printf "%s" "$TOKEN"; while [ ! -e {go} ]; do sleep 0.02; done; echo " end"; echo next'
    async with with_secrets(docker, tmp_path, script(f"echo begin; {text}")) as it:
        await it.release()
        await it.says(b"begin")
        await let_go(it)
        async with docker.runtime() as successor:
            [(sandbox, spool, _)] = await successor.recover(tmp_path / "executions")
            (it.directory.outputs / "go").touch()
            after = Trial(sandbox, spool, it.directory, it.launch)
            await after.end()
            assert after.printed() == [b"begin", b"x" * 16380 + b"*** end", b"next"]
            spool.close()


def test_a_directory_on_a_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoMemoryDirectoryError, match="not in memory; --secrets-dir names a directory on a tmpfs"):
        memory_directory(tmp_path / "secrets", {})


def test_what_belongs_to_no_execution_is_swept(directories: SecretDirectories) -> None:
    first, second = (assignment_for(Role()).execution for _ in range(2))
    for execution in (first, second):
        directories.make(execution, HANDOVER)
        directories.fill(execution, HANDOVER, os.geteuid())
    directories.sweep({second})
    mask = directories.mask(second)
    assert directories.mask(first) is None
    assert mask is not None
    assert mask.masked(b"a " + TOKEN) == b"a ***"
    assert directories.files(second).parent.stat().st_mode & 0o777 == 0o700
    directories.sweep(())
