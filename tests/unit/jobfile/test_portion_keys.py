"""Portions of GPUs in job files."""

from typing import Any

import pytest

from muster.domain.errors import InvalidJobError
from muster.domain.jobs.job import Resources
from muster.jobfile import job_from


def resources(**keys: Any) -> Resources:
    return job_from({"name": "a", "command": ["x"], "resources": keys}, "job").roles[0].resources


@pytest.mark.parametrize(
    ("keys", "portion", "memory", "gpus"),
    [
        ({"gpu_portion": 0.5}, 500, None, 1),
        ({"gpu_portion": "0.125", "gpus": 2}, 125, None, 2),
        ({"gpu_portion": 0.01}, 10, None, 1),
        ({"gpu_portion": 1, "gpus": 4}, 1000, None, 4),
        ({"gpu_memory": "20Gi"}, None, 20 * 2**30, 1),
        ({"gpu_memory": "8G", "gpus": 2}, None, 8 * 10**9, 2),
        ({"gpus": 2}, None, None, 2),
    ],
)
def test_a_portion_is_of_one_gpu_unless_more_are_named(
    keys: dict[str, Any], portion: int | None, memory: int | None, gpus: int
) -> None:
    found = resources(**keys)

    assert (found.gpu_portion, found.gpu_memory, found.gpus) == (portion, memory, gpus)


def test_a_whole_gpu_is_no_portion() -> None:
    assert resources(gpu_portion=1).portion is None


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"gpu_portion": 1.5}, 'from 0.01 to 1 such as 0.5.*`gpus` says how many GPUs; did you mean "gpus: 1"'),
        ({"gpu_portion": 0.005}, "must be a part of a GPU from 0.01 to 1"),
        ({"gpu_portion": 0.0005}, 'in thousandths at the finest, not "0.0005"'),
        ({"gpu_portion": "half"}, 'must be a part of a GPU from 0.01 to 1 .*, not "half"'),
        ({"gpu_portion": True}, "must be a part of a GPU from 0.01 to 1"),
        ({"gpu_portion": -0.5}, "must be above zero"),
        ({"gpu_portion": 0.5, "gpus": 0}, "gpus: is of how many GPUs it gets a part, so it must be at least 1"),
        ({"gpu_portion": 0.5, "mig": "1g.10gb"}, "gpu_portion: cannot be together with mig"),
        ({"gpu_portion": 0.5, "gpu_memory": "20Gi"}, "gpu_memory: cannot be together with gpu_portion"),
        ({"gpu_portion": 1, "gpu_memory": "20Gi"}, "gpu_memory: cannot be together with gpu_portion"),
        ({"gpu_memory": 20}, 'the least is 256Mi; did you mean "20Gi"'),
        ({"gpu_fraction": 0.5}, 'did you mean "gpu_portion"'),
    ],
)
def test_what_is_no_portion_is_refused_with_what_it_may_be(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobError, match=message):
        resources(**keys)
