"""GPUs of the fake NVML library: given to one job each, shown in its containers, and waited for."""

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.seen_gpus import gpus_of, shows_gpus, visible
from tests.e2e.waiting import until
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml

pytestmark = [pytest.mark.fleet, pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)]


def test_four_jobs_share_sixteen_gpus_and_a_fifth_waits(muster: Deployment) -> None:
    drivers = [FakeNvml(muster.directory / f"nvml{number}", gpus=8, node=number) for number in (1, 2)]
    for node, driver in zip(muster.fleet.nodes, drivers, strict=False):
        muster.start_agent(node, env=driver.environ)
    nodes = muster.await_nodes(2)
    assert [len(node["inventory"]["gpus"]) for node in nodes] == [8, 8]
    seen = muster.shared("seen")

    jobs = [muster.submit(shows_gpus(f"job{number}", seen, workers=2, gpus=2)) for number in range(1, 5)]
    for job in jobs:
        muster.await_states(job, ["running", "running"])
    given = {name: uuids for job in jobs for name, uuids in gpus_of(muster, job).items()}
    every_uuid = sorted(driver.uuid(index) for driver in drivers for index in range(8))
    assert sorted(uuid for uuids in given.values() for uuid in uuids) == every_uuid
    assert until(lambda: visible(seen, len(given)), within=10, what="the containers to say what they see") == given

    fifth = muster.submit(shows_gpus("job5", seen, workers=2, gpus=2))
    why = muster.ask("why", fifth)
    assert (why["phase"], why["queue_position"]) == ("queued", 1)
    assert {refusal["node"] for refusal in why["refusals"]} == {"node1", "node2"}
    assert all("GPU" in refusal["reason"] for refusal in why["refusals"])
    assert "GPU" in muster.run("why", fifth).out
    assert muster.ask("show", fifth)["phase"] == "queued"

    (seen / "end-job2").touch()
    muster.await_states(fifth, ["running", "running"])
    freed = {uuid for name, uuids in given.items() if name.startswith("job2-") for uuid in uuids}
    assert {uuid for uuids in gpus_of(muster, fifth).values() for uuid in uuids} == freed
