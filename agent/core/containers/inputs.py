"""Where a container has the inputs of its job."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from agent.core.launching.dialects.valohai import CONTAINER_DIRECTORIES
from muster.domain.data.job_input import JobInput
from muster.domain.jobs.job import Mount, Role


def input_place(each: JobInput, *, valohai: bool) -> str:
    """Where user code looks for an input: where the job says, else where Valohai would have it, else our own place."""
    return f"{CONTAINER_DIRECTORIES['inputs']}/{each.name}" if valohai and each.path is None else each.target


def input_mounts(role: Role, places: Mapping[str, PurePath], *, valohai: bool) -> Iterator[Mount]:
    """The directories of inputs, which nobody can write to; under Valohai's names as well where that is asked for."""
    for each in role.inputs:
        if each.name in places:
            for target in sorted({each.target, input_place(each, valohai=valohai)}):
                yield Mount(source=str(places[each.name]), target=target, read_only=True)
