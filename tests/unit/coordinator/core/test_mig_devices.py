"""MIG devices: a kind of their own, and no whole GPUs."""

from coordinator.core.placement.placement import NoFit, Placement, place
from tests.builders import available, capacity, gpu, mig_devices, spec

DIVIDED = capacity("a", gpus=mig_devices("a", "1g.10gb", "1g.10gb", "3g.40gb"))


def test_a_job_that_asks_for_a_gpu_never_gets_a_mig_device() -> None:
    assert isinstance(place(spec(1, 1), available(DIVIDED)), NoFit)

    mixed = capacity("a", gpus=(*mig_devices("a", "7g.80gb"), gpu("a", 1)))
    fit = place(spec(1, 1), available(mixed))
    assert isinstance(fit, Placement)
    assert [seat.gpus for seat in fit.seats] == [("GPU-a-1",)]
    assert isinstance(place(spec(1, 2), available(mixed)), NoFit)
