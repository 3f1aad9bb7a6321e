"""The programs as an operator starts them: how they end, and how they say what they cannot do."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import agent.settings
import coordinator.settings
from muster.client.client import Client
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc.channel import Credentials
from muster.trust.files import read_secret
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell
from tests.integration.programs import ROOT, runs

ENDS_WITHIN = 3.0
LIMIT = 30.0
COORDINATOR = ("coordinator", "--local", "--listen", "127.0.0.1:0")
PROCESSES = ("--processes", "--job-user", "none")
"""Options that run processes as the user of the tests: others do not get to the directories of tests."""
AGENT = (
    "agent",
    "--no-docker",
    "--gpu-provider",
    "fake:1xT4",
    "--ports",
    "30950-30999",
    "--coordinator",
    "127.0.0.1:1",
)


def shown(directory: Path) -> tuple[str, str]:
    """The options of an agent of `muster up`."""
    file = directory / "token"
    file.write_text(f"{SECRET}\n")
    return "--token-file", str(file)


@contextmanager
def started(program: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", program, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def await_ready(process: "subprocess.Popen[str]", words: str) -> str:
    """The line of its log that says so."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if words in line:
            return line
    raise AssertionError(f"it ended without saying {words!r}: {said}")


def refusal(program: str, *arguments: str) -> tuple[int, str]:
    """How a program ends that cannot do what it was told to, and what it says."""
    command = [sys.executable, "-m", program, *arguments]
    ended = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT)
    return ended.returncode, ended.stderr


def is_user_code(process: psutil.Process) -> bool:
    """Whether it is none of ours; one that has just ended is nobody's any more."""
    try:
        return process.cmdline()[:1] != [sys.executable]
    except psutil.NoSuchProcess:
        return False


def test_the_coordinator_ends_when_told_to(tmp_path: Path) -> None:
    with started(*COORDINATOR, "--state", str(tmp_path)) as process:
        await_ready(process, "coordinator serves")
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_WITHIN) == 0


def test_the_agent_ends_when_told_to_though_there_is_no_coordinator(tmp_path: Path) -> None:
    with started(*AGENT, *shown(tmp_path), "--state", str(tmp_path), "--local-nodes", "2") as process:
        await_ready(process, "agent runs")
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_WITHIN) == 0


async def test_an_agent_that_shall_stop_executions_at_its_end_leaves_none_behind(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        program = ("agent", "--no-docker", *PROCESSES, "--stop-on-exit", "--name", "n", "--address", "127.0.0.1")
        with started(
            *program, *shown(tmp_path), "--coordinator", fleet.address, "--state", str(tmp_path / "agent")
        ) as process:
            job = await fleet.client.jobs.submit(shell("sleep 60 & sleep 60", 2), queue_anyway=True)
            await fleet.until_states(job.id, State.RUNNING, State.RUNNING)
            children = psutil.Process(process.pid).children(recursive=True)
            children = [child for child in children if is_user_code(child)]
            assert len(children) >= 2
            process.terminate()
            assert process.wait(ENDS_WITHIN) == 0
            assert not any(runs(child) for child in children)


async def test_jobs_go_on_when_the_coordinator_is_killed_and_started_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    arguments = ("coordinator", "--local", "--listen", address, "--state", str(tmp_path / "state"))
    token = tmp_path / "state" / "local-token"
    with started(*arguments) as first:
        await_ready(first, "coordinator serves")
        program = (*AGENT[:-1], address, *PROCESSES, "--name", "n", "--address", "127.0.0.1")
        with started(*program, "--token-file", str(token), "--state", str(tmp_path / "agent")) as process:
            async with Client(address, Credentials(token=read_secret(token))) as client:
                job = await client.jobs.submit(
                    shell("for i in 1 2 3 4 5; do echo $i; sleep 0.2; done"), queue_anyway=True
                )
                log = client.jobs.logs(job.id, follow=True)
                assert (await anext(log)).text == b"1"
                first.kill()
                first.wait()
                with started(*arguments) as second:
                    await_ready(second, "coordinator serves")
                    assert [line.text async for line in log] == [b"2", b"3", b"4", b"5"]
                    assert (await client.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED
                    fleet = [event.kind async for event in client.fleet.events()]
                    assert fleet == ["project_added", "coordinator_started", "coordinator_started"]
                    second.terminate()
                    assert second.wait(ENDS_WITHIN) == 0
            process.terminate()
            assert process.wait(ENDS_WITHIN) == 0


def test_wrong_options_are_explained() -> None:
    for program in ("coordinator", "agent"):
        code, said = refusal(program, "--nonsense")
        assert (code, said.splitlines()[-1]) == (2, f"muster-{program}: error: unrecognized arguments: --nonsense")


@pytest.mark.parametrize(
    ("parse", "arguments", "reason"),
    [
        (coordinator.settings.parse, ("--listen", "nowhere"), "--listen nowhere is no address like 0.0.0.0:7460"),
        (
            coordinator.settings.parse,
            ("--local", "--init"),
            "--local has no door for agents of other machines and nobody to log in",
        ),
        (agent.settings.parse, ("--ports", "9-1"), "argument --ports: '9-1' is no range like 20000-29999"),
        (agent.settings.parse, ("--ports", "1-70000"), "argument --ports: '1-70000' is no range like 20000-29999"),
        (agent.settings.parse, ("--label", "rack"), "argument --label: 'rack' is no label like rack=a7"),
        (
            agent.settings.parse,
            ("--local-nodes", "2"),
            "--local-nodes needs the --token-file of `muster up`: several nodes cannot share a certificate",
        ),
        (
            agent.settings.parse,
            ("--join-file", "/no/token"),
            "cannot read the join token in /no/token: No such file or directory",
        ),
    ],
)
def test_options_that_do_not_fit_are_explained(
    parse: Callable[[tuple[str, ...], Mapping[str, str]], object],
    arguments: tuple[str, ...],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments, {})
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"error: {reason}")


@pytest.fixture
def taken() -> Iterator[str]:
    """An address on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def assert_one_line(ended: tuple[int, str], *words: str) -> None:
    """One line that says what is wrong; not a traceback."""
    code, said = ended
    lines = [line for line in said.splitlines() if line.startswith("muster-")]
    assert (code, len(lines), "Traceback" in said) == (1, 1, False), said
    for word in words:
        assert word in lines[0]


def test_the_coordinator_says_that_its_port_is_taken(tmp_path: Path, taken: str) -> None:
    ended = refusal("coordinator", "--state", str(tmp_path), "--listen", taken)
    assert_one_line(ended, f"muster-coordinator: cannot listen on {taken}: is something else listening there?")


def test_the_coordinator_refuses_to_listen_in_plain_text_to_others(tmp_path: Path) -> None:
    ended = refusal("coordinator", "--local", "--state", str(tmp_path), "--listen", "0.0.0.0:0")
    assert_one_line(ended, "will not speak unencrypted on 0.0.0.0:0", "without --local speaks TLS")


def test_the_coordinator_does_without_no_key_of_its_authority(tmp_path: Path) -> None:
    assert refusal("coordinator", "--state", str(tmp_path), "--init")[0] == 0
    key = tmp_path / "trust" / "authority.key"
    key.unlink()
    assert_one_line(
        refusal("coordinator", "--state", str(tmp_path), "--listen", "127.0.0.1:0"), "trust/authority.key is missing"
    )


def test_the_coordinator_says_why_it_cannot_use_its_state_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = refusal(*COORDINATOR, "--state", str(tmp_path / "file" / "below"))
    assert_one_line(ended, f"the state directory {tmp_path}/file/below cannot be used: Not a directory")


def test_the_agent_says_why_it_cannot_use_its_state_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = refusal(*AGENT, "--state", str(tmp_path / "file" / "below"))
    assert_one_line(ended, f"the state directory {tmp_path}/file/below cannot be used: Not a directory")


def test_the_agent_refuses_plain_text_to_other_machines(tmp_path: Path) -> None:
    arguments = ("--coordinator", "0.0.0.0:1", "--address", "127.0.0.1", "--state", str(tmp_path), *shown(tmp_path))
    assert_one_line(refusal("agent", "--no-docker", *arguments), "will not speak unencrypted to 0.0.0.0:1")


def test_the_agent_names_gpus_that_cannot_be_simulated(tmp_path: Path) -> None:
    ended = refusal("agent", "--no-docker", "--gpu-provider", "fake:8xZ9", "--state", str(tmp_path), *shown(tmp_path))
    assert_one_line(ended, "no GPU model 'Z9' can be simulated")


def test_the_agent_names_a_token_that_is_missing(tmp_path: Path) -> None:
    ended = refusal(*AGENT, "--address", "127.0.0.1", "--state", str(tmp_path), "--token-file", "/no/token")
    assert_one_line(ended, "/no/token", "No such file")


def test_the_agent_looks_at_its_directory_for_secrets_before_it_joins(tmp_path: Path) -> None:
    (tmp_path / "on-disk").mkdir()
    (tmp_path / "join").write_text("no token, which would be the next thing to be wrong")
    words = ("--secrets-dir", str(tmp_path / "on-disk"), "--join-file", str(tmp_path / "join"))
    ended = refusal("agent", "--no-docker", "--coordinator", "127.0.0.1:1", "--state", str(tmp_path / "state"), *words)
    assert_one_line(ended, f"{tmp_path}/on-disk", "memory")


def test_an_agent_that_has_not_joined_says_how_to(tmp_path: Path) -> None:
    ended = refusal(*AGENT, "--state", str(tmp_path), "--name", "n")
    assert_one_line(ended, "node n has not joined a fleet", "muster nodes token create")


def test_a_second_agent_on_a_state_directory_is_refused(tmp_path: Path) -> None:
    arguments = (*AGENT, "--state", str(tmp_path), *shown(tmp_path))
    with started(*arguments) as process:
        await_ready(process, "agent runs")
        assert_one_line(refusal(*arguments), f"another agent runs on {tmp_path}")
        process.terminate()
        assert process.wait(ENDS_WITHIN) == 0
