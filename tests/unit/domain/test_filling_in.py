"""What a job gets that says nothing else, by its framework; whatever it says stays as it is."""

from typing import Any

import pytest

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, LaunchPlace
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.rules.filling_in import filled_in

FROM_RANK0 = [FrameworkName.MPI, FrameworkName.HOROVOD, FrameworkName.DEEPSPEED]


def job(name: FrameworkName, launch: LaunchPlace | None = None, **changes: Any) -> JobSpec:
    framework = Framework(name=name, launch=launch)
    return filled_in(JobSpec(name="train", roles=(Role(count=4, command=("x",)),), framework=framework, **changes))


def place(spec: JobSpec) -> LaunchPlace | None:
    return None if spec.framework is None else spec.framework.launch


@pytest.mark.parametrize("name", FROM_RANK0)
def test_where_rank_0_starts_all_processes_it_decides_and_every_node_has_one_execution(name: FrameworkName) -> None:
    spec = job(name)
    assert (place(spec), spec.success) == (LaunchPlace.RANK0, SuccessRule.RANK0)
    assert (spec.max_per_node, spec.gang_commands) == (1, True)
    assert spec.framework is not None
    assert spec.framework.processes is None  # as many as there are GPUs


def test_deepspeed_in_every_execution_needs_no_commands_and_still_a_node_for_each() -> None:
    spec = job(FrameworkName.DEEPSPEED, LaunchPlace.ALL)
    assert (place(spec), spec.success) == (LaunchPlace.ALL, SuccessRule.ALL)
    assert (spec.max_per_node, spec.gang_commands) == (1, None)


@pytest.mark.parametrize("name", sorted(set(FrameworkName) - set(FROM_RANK0)))
def test_other_frameworks_need_no_commands_in_the_gang(name: FrameworkName) -> None:
    spec = job(name)
    assert (spec.max_per_node, spec.gang_commands) == (None, None)
    assert place(spec) is (LaunchPlace.RANK0 if name is FrameworkName.RAY else LaunchPlace.ALL)


@pytest.mark.parametrize("name", FrameworkName)
def test_what_a_job_says_stays_and_to_fill_in_twice_changes_nothing(name: FrameworkName) -> None:
    said = job(name, max_per_node=3, success=SuccessRule.ALL, gang_commands=False)
    assert (said.max_per_node, said.success, said.gang_commands) == (3, SuccessRule.ALL, False)
    assert filled_in(said) == said
    assert filled_in(job(name)) == job(name)
