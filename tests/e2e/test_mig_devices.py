"""MIG devices of the fake NVML library: each is given to one container, by its UUID, and counts its slices."""

from collections.abc import Mapping

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.seen_gpus import gpus_of, shows_gpus, visible
from tests.e2e.waiting import until
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml

pytestmark = [pytest.mark.fleet, pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)]
DIVIDED: Mapping[str, str | int] = {
    "gpu0.mig": 1,
    "gpu0.mig_devices": 3,
    "gpu0.mig_profiles": "3g.40gb,1g.10gb,1g.10gb",
}
SLICE, HALF = 143, 429
"""What devices of one and of three slices count, in thousandths of a GPU."""


def test_containers_are_given_mig_devices_by_their_uuids_and_each_counts_its_slices(muster: Deployment) -> None:
    drivers = [FakeNvml(muster.directory / f"nvml{number}", gpus=2, node=number) for number in (1, 2)]
    for node, driver in zip(muster.fleet.nodes, drivers, strict=False):
        driver.set(DIVIDED)
        muster.start_agent(node, env=driver.environ)
    for told in muster.await_nodes(2):
        assert [gpu["mig"] for gpu in told["inventory"]["gpus"]] == ["3g.40gb", "1g.10gb", "1g.10gb", None]
    seen = muster.shared("seen")

    small = muster.submit(shows_gpus("small", seen, workers=3, gpus=1, mig="1g.10gb"))
    large = muster.submit(shows_gpus("large", seen, workers=2, gpus=1, mig="3g.40gb"))
    whole = muster.submit(shows_gpus("whole", seen, workers=2, gpus=1))
    muster.await_states(small, ["running"] * 3)
    muster.await_states(large, ["running"] * 2)
    muster.await_states(whole, ["running"] * 2)

    given = {name: uuids for job in (small, large, whole) for name, uuids in gpus_of(muster, job).items()}
    assert until(lambda: visible(seen, len(given)), within=10, what="the containers to say what they see") == given
    assert all(len(uuids) == 1 for uuids in given.values())
    devices = {name: uuids[0] for name, uuids in given.items()}
    of_one_slice = {driver.slice_uuid(0, place) for driver in drivers for place in (1, 2)}
    of_small = [uuid for name, uuid in devices.items() if name.startswith("small-")]
    assert len(set(of_small)) == 3
    assert of_one_slice.issuperset(of_small)
    of_large = {uuid for name, uuid in devices.items() if name.startswith("large-")}
    assert of_large == {driver.slice_uuid(0, 0) for driver in drivers}
    assert {uuid for name, uuid in devices.items() if name.startswith("whole-")} == {each.uuid(1) for each in drivers}
    assert held(muster) == 3 * SLICE + 2 * HALF + 2 * 1000

    fifth = muster.submit(shows_gpus("fifth", seen, workers=2, gpus=1, mig="1g.10gb"))
    why = muster.ask("why", fifth)
    assert why["phase"] == "queued"
    assert any("1 MIG device 1g.10gb" in refusal["reason"] for refusal in why["refusals"])

    (seen / "end-small").touch()
    muster.await_states(fifth, ["running"] * 2)
    of_fifth = gpus_of(muster, fifth).values()
    assert all(len(uuids) == 1 for uuids in of_fifth)
    assert of_one_slice.issuperset(uuid for uuids in of_fifth for uuid in uuids)
    assert held(muster) == 2 * SLICE + 2 * HALF + 2 * 1000


def held(muster: Deployment) -> int:
    """What the jobs of the only project hold of GPUs, in thousandths."""
    (unit,) = muster.ask("quota", "show")
    return sum(int(pool["held"][0]) for pool in unit["pools"])
