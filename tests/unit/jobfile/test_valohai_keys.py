"""Jobs in Valohai's dialect: where their containers begin, and what may be mounted there."""

from dataclasses import replace

from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.job import JobSpec, Mount, Role
from muster.domain.jobs.rules.filling_in import filled_in
from muster.domain.jobs.rules.job_rules import faults

CONTAINER = JobSpec(
    name="train", roles=(Role(image="trainer:1", command=("python", "train.py")),), dialects=(Dialect.VALOHAI,)
)


def with_role(**changes: object) -> JobSpec:
    return filled_in(replace(CONTAINER, roles=(replace(CONTAINER.roles[0], **changes),)))  # type: ignore[arg-type]  # any field


def test_inputs_of_valohai_may_be_mounted_and_its_containers_begin_in_the_repository() -> None:
    mounts = tuple(Mount(source="/a", target=target) for target in ("/valohai/inputs", "/valohai/inputs/images"))
    spec = with_role(mounts=mounts)
    assert list(faults(spec)) == []
    assert spec.roles[0].workdir == "/valohai/repository"


def test_a_working_directory_of_the_job_stays_and_processes_have_one_of_their_own() -> None:
    assert with_role(workdir="/app").roles[0].workdir == "/app"
    assert with_role(image=None).roles[0].workdir is None
