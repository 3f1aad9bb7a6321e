"""Portions of GPUs of the fake NVML library: containers share a GPU, and who takes more memory than it was promised is
stopped where the pool says so.
"""

from typing import Any

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.fleet import Node
from tests.e2e.seen_gpus import gpus_of, shows_gpus, visible
from tests.e2e.waiting import until
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml

pytestmark = [pytest.mark.fleet, pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)]
HALF = 500
"""Thousandths of a GPU that each job asks for."""


def test_containers_share_a_gpu_and_who_takes_more_than_its_portion_is_stopped(muster: Deployment) -> None:
    node = muster.fleet.nodes[0]
    driver = FakeNvml(muster.directory / "nvml", gpus=1)
    muster.start_agent(node, env=driver.environ)
    [told] = muster.await_nodes(1)
    [gpu] = told["inventory"]["gpus"]
    assert muster.run("pools", "set", "default", "--enforce", "stop").code == 0
    seen = muster.shared("seen")

    good, greedy = (muster.submit(shows_gpus(name, seen, workers=1, **portion())) for name in ("good", "greedy"))
    for job in (good, greedy):
        muster.await_states(job, ["running"])
    both = {"good-0": [gpu["uuid"]], "greedy-0": [gpu["uuid"]]}
    assert until(lambda: visible(seen, 2), within=10, what="the containers to say what they see") == both
    assert gpus_of(muster, good) | gpus_of(muster, greedy) == both

    # No part of it is left, and an agent that begins anew knows that, too.
    muster.agents[node.name].kill()
    muster.start_agent(node, env=driver.environ)
    muster.await_nodes(1)
    third = muster.submit(shows_gpus("third", seen, workers=1, **portion()))
    [refusal] = muster.ask("why", third)["refusals"]
    assert (refusal["node"], "GPU" in refusal["reason"]) == (node.name, True)
    assert muster.states(good) == muster.states(greedy) == ["running"]

    # Each has memory, and one of them has more than half of it.
    driver.set({"gpu0.procs": f"{pid(node, good)}:{gpu['memory'] // 4},{pid(node, greedy)}:{gpu['memory'] * 3 // 4}"})
    ended = muster.ended(greedy)
    assert ended["failure"]["kind"] == "gpu_memory"
    assert f"of the memory of {gpu['uuid']}, and its portion is " in ended["failure"]["message"]
    assert muster.states(good) == ["running"]
    muster.await_states(third, ["running"])
    assert gpus_of(muster, third) == {"third-0": [gpu["uuid"]]}


def portion() -> dict[str, Any]:
    return {"gpus": 1, "gpu_portion": HALF / 1000}


def pid(node: Node, job: str) -> int:
    """The process id of the only container of a job, as the driver would tell it."""
    [container] = [each for each in node.engine.containers() if any(job in name for name in each["Names"])]
    return int(node.engine.inspect(container["Id"])["State"]["Pid"])
