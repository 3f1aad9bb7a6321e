"""Where containers have the inputs of their job."""

from pathlib import PurePath

from agent.core.containers.inputs import input_mounts
from muster.domain.data.job_input import JobInput
from muster.domain.jobs.job import Role

ROLE = Role(
    image="i",
    inputs=(
        JobInput(name="a", url="https://example.org/x"),
        JobInput(name="b", url="https://example.org/x", path="/b"),
    ),
)
PLACES = {"a": PurePath("/t/1"), "b": PurePath("/t/2")}


def test_inputs_are_mounted_read_only_where_the_job_or_muster_has_them() -> None:
    found = [(each.source, each.target, each.read_only) for each in input_mounts(ROLE, PLACES, valohai=False)]
    assert found == [("/t/1", "/muster/inputs/a", True), ("/t/2", "/b", True)]


def test_valohai_has_those_without_a_path_in_its_own_directory_as_well() -> None:
    found = [each.target for each in input_mounts(ROLE, PLACES, valohai=True)]
    assert found == ["/muster/inputs/a", "/valohai/inputs/a", "/b"]
