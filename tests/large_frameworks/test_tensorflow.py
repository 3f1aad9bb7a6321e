"""TensorFlow finds its cluster by TF_CONFIG, with nothing said but the framework and the roles."""

from pathlib import Path

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.frameworks.environments import interpreter
from tests.frameworks.recipes import recipe
from tests.integration.fleet import running_fleet
from tests.integration.jobs import command

PROGRAMS = Path(__file__).with_name("programs")


async def test_workers_compute_together(tmp_path: Path) -> None:
    words = (str(interpreter("tensorflow")), str(PROGRAMS / "tensorflow_sum.py"))
    async with running_fleet(tmp_path, "a", "b") as fleet:
        ended = await fleet.run(command(*words, workers=2, framework=Framework(name=FrameworkName.TENSORFLOW)))
        printed = await fleet.texts(ended.id, follow=True)
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    assert {f"{rank} worker {rank} of 2, sum 3" for rank in range(2)} <= set(printed)


async def test_a_variable_lives_on_the_parameter_server_which_is_stopped_in_the_end(tmp_path: Path) -> None:
    spec = recipe("TensorFlow", "python train.py", f"{interpreter('tensorflow')} {PROGRAMS / 'tensorflow_servers.py'}")
    async with running_fleet(tmp_path, "a", "b") as fleet:
        ended = await fleet.run(spec)
        printed = await fleet.texts(ended.id, follow=True)
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    assert "0 chief counted 8 on /job:ps/replica:0/task:0/device:CPU:0" in printed
    assert {"1 worker 0 serves", "2 ps 0 serves"} <= set(printed)
    states = [execution.state for execution in ended.attempts[-1].executions]
    assert states == [State.SUCCEEDED, State.STOPPED, State.STOPPED]
