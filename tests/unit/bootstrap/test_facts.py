"""What the probe prints becomes facts."""

import shutil
import subprocess

import pytest

from muster.bootstrap.inspect.facts import Docker, Installed, Python, parse
from muster.bootstrap.inspect.probe import Question, script
from muster.domain.errors import MusterError

SAID = """\
clock=1000.5
uid=0
hostname=gpu7.example.org
architecture=x86_64
glibc=2.35
systemd=249
python=/usr/bin/python3 3.10.12 venv
python=/usr/bin/python3.11 3.11.4 bare
docker=27.1.0
docker_live_restore=true
docker_cgroup_driver=systemd
docker_cgroup_version=2
docker_runtimes=nvidia runc
pci_gpus=2
gpu=570.86, NVIDIA H100
gpu=570.86, NVIDIA H100
state_free_kib=1024
ephemeral=32768 60999
reach_7460=open
reach_7461=closed
mtu=9000
muster=0.4.0
agent_unit=active
config_name=gpu7
joined=yes
done=yes
"""


def test_facts_are_what_the_probe_said() -> None:
    facts = parse(SAID, asked_at=1000.0, answered_at=1001.0)
    assert facts.hostname == "gpu7"
    assert facts.glibc == (2, 35)
    assert facts.pythons == (
        Python(path="/usr/bin/python3.11", version=(3, 11, 4), venv=False),
        Python(path="/usr/bin/python3", version=(3, 10, 12), venv=True),
    )
    assert facts.docker == Docker(
        version="27.1.0", live_restore=True, cgroup_driver="systemd", cgroup_version="2", runtimes=("nvidia", "runc")
    )
    assert (facts.gpus, facts.gpu_driver) == (("NVIDIA H100", "NVIDIA H100"), "570.86")
    assert facts.state_free == 1 << 20
    assert facts.ephemeral == (32768, 60999)
    assert facts.reachable == {7460: True, 7461: False}
    assert facts.muster == Installed(version="0.4.0", unit="active", name="gpu7", joined=True)


def test_what_was_not_said_is_not_known() -> None:
    facts = parse("hostname=a\ndone=yes\n", asked_at=0, answered_at=1)
    assert (facts.glibc, facts.docker, facts.clock, facts.memory, facts.reachable) == (None, None, None, None, None)


@pytest.mark.parametrize(
    ("clock", "ahead"), [("1000.5", 0.0), ("1003.0", 2.0), ("990.0", -10.0), ("1000", 0.0), ("no", None)]
)
def test_a_clock_is_only_wrong_by_what_the_questions_time_does_not_explain(clock: str, ahead: float | None) -> None:
    text = SAID.replace("clock=1000.5", f"clock={clock}")
    assert parse(text, asked_at=1000.0, answered_at=1001.0).clock == ahead


@pytest.mark.parametrize("text", ["", "hostname=a\n", "done=yes\n", "sh: syntax error\n"])
def test_half_an_answer_is_none(text: str) -> None:
    with pytest.raises(MusterError, match="POSIX"):
        parse(text, asked_at=0, answered_at=1)


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "busybox"])
def test_every_shell_understands_the_probe(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
    question = Question(coordinator="[fd00::1]:7460", address="it's eth0")
    done = subprocess.run(command, input=script(question), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_both_doors_of_the_coordinator_are_tried_where_they_are_known() -> None:
    assert "ports='7460 9000'" in script(Question(coordinator="gpu:7460", agents_port=9000))
    assert "ports=7460" in script(Question(coordinator="gpu:7460"))


def test_nothing_that_a_question_holds_is_run() -> None:
    question = Question(coordinator="$(reboot):7460", address="'; touch /x; '")
    text = script(question)
    assert "coordinator='$(reboot)'" in text
    assert "wanted=''\"'\"'; touch /x; '\"'\"''" in text
