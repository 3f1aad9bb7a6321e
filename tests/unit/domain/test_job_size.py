"""How much of a job a node may have to take."""

from dataclasses import replace

import pytest

from muster.domain.errors import InvalidJobError
from muster.domain.jobs.job import InlineFile, JobSpec, Resources, Role
from muster.domain.jobs.rules.job_rules import refuse_faults
from muster.domain.jobs.size import MAX_SHARED_BYTES, size_of, too_much_to_share
from muster.wire import job_spec_from_wire, job_spec_to_wire

MIB = 1 << 20


def job(
    count: int, size: int, *more: Role, gpus: int = 0, cpus: float = 0.1, max_per_node: int | None = None
) -> JobSpec:
    resources = Resources(gpus=gpus, cpu_millis=int(cpus * 1000))
    role = Role(
        count=count, command=("true",), files=(InlineFile(path="f", content=bytes(size - 5)),), resources=resources
    )
    return JobSpec(name="large", roles=(role, *more), max_per_node=max_per_node)


def test_files_variables_and_command_count() -> None:
    role = Role(entrypoint=("sh",), command=("a", "ü"), env={"K": "v"}, files=(InlineFile(path="p", content=b"123"),))
    assert size_of(role) == 2 + 1 + 2 + 1 + 1 + 1 + 3


@pytest.mark.parametrize(
    "spec",
    [
        job(32, MIB),
        job(10_000, 3 * 1024),
        job(80, MIB, max_per_node=32),
        job(1000, 2 * MIB, gpus=1),
        job(1000, 2 * MIB, gpus=8),
        job(1000, 2 * MIB, cpus=64),
        job(10, 32 * MIB, gpus=64),
    ],
    ids=["all", "many", "max_per_node", "gpus", "more gpus", "cpus", "more than a node has"],
)
def test_what_a_node_can_take_is_taken(spec: JobSpec) -> None:
    assert too_much_to_share(spec) is None
    assert job_spec_from_wire(job_spec_to_wire(spec)) == spec


def test_more_is_refused_with_role_size_and_what_to_do() -> None:
    spec = job(80, MIB)

    with pytest.raises(InvalidJobError) as refusal:
        refuse_faults(spec)

    assert str(refusal.value) == (
        "roles: role worker has 1.0 MiB of files, variables and command, and 80 of its "
        "executions can share a node, where all of the job may have 32.0 MiB; put large files into the image or on a "
        "mount, or let fewer share a node (max_per_node)"
    )


def test_roles_count_together_and_the_one_with_the_most_is_named() -> None:
    half = MAX_SHARED_BYTES // 2 // MIB
    other = replace(job(half + 1, MIB).roles[0], name="other")

    problem = too_much_to_share(job(half, MIB, other))

    assert problem is not None
    assert problem.startswith("role other has 1.0 MiB")
