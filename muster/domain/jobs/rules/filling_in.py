"""What a job is silent about and gets all the same, before anybody stores or shows it."""

from dataclasses import replace

from muster.domain.data.code import CODE_DIRECTORY
from muster.domain.data.output_terms import LiveOutputs, StoredAfter
from muster.domain.jobs.frameworks.dialect import VALOHAI_REPOSITORY, Dialect
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, LaunchPlace
from muster.domain.jobs.frameworks.tensorflow_roles import chief_of, needs_chief
from muster.domain.jobs.interactive import DEFAULT_IDLE
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import SuccessRule


def filled_in(spec: JobSpec) -> JobSpec:
    """The job with everything said that follows from what it says; harmless when repeated."""
    if spec.framework is not None:
        spec = _with_framework(spec, spec.framework)
    if spec.interactive is not None and spec.timeouts.idle is None:
        spec = replace(spec, timeouts=replace(spec.timeouts, idle=DEFAULT_IDLE))
    if spec.tty and not spec.stdin:
        spec = replace(spec, stdin=True)
    if any(role.code for role in spec.roles):
        spec = replace(spec, roles=tuple(map(_in_its_code, spec.roles)))
    if Dialect.VALOHAI in spec.dialects:
        spec = replace(spec, roles=tuple(map(_with_live_outputs, map(_in_repository, spec.roles))))
    return spec if spec.success is not None else replace(spec, success=_success(spec))


def _with_framework(spec: JobSpec, framework: Framework) -> JobSpec:
    """The job with what its framework takes for granted."""
    processes = 1 if framework.processes is None and not framework.is_launched else framework.processes
    spec = replace(spec, framework=replace(framework, processes=processes, launch=framework.place))
    # DeepSpeed refuses hosts that are listed twice, wherever it is launched.
    if spec.max_per_node is None and (framework.starts_elsewhere or framework.name is FrameworkName.DEEPSPEED):
        spec = replace(spec, max_per_node=1)
    if spec.gang_commands is None and framework.starts_elsewhere:
        spec = replace(spec, gang_commands=True)
    return spec


def _in_its_code(role: Role) -> Role:
    """The role with its code as the working directory of containers; a plain process has a place of its own."""
    if role.code is None or role.image is None or role.workdir is not None:
        return role
    return replace(role, workdir=CODE_DIRECTORY)


def _in_repository(role: Role) -> Role:
    """The role with the working directory that Valohai's containers have; a plain process has one of its own."""
    return role if role.image is None or role.workdir is not None else replace(role, workdir=VALOHAI_REPOSITORY)


def _with_live_outputs(role: Role) -> Role:
    """The role with outputs that are stored once they are read-only, as Valohai does it."""
    if role.outputs.live is not None or role.outputs.after is not StoredAfter.ALWAYS:
        return role
    return replace(role, outputs=replace(role.outputs, live=LiveOutputs.READ_ONLY))


def _success(spec: JobSpec) -> SuccessRule | str:
    """The rule or role that decides; servers and evaluators of TensorFlow run until somebody stops them."""
    names = [role.name for role in spec.roles]
    if spec.framework is not None and spec.framework.place is LaunchPlace.RANK0:
        return SuccessRule.RANK0
    if spec.framework is not None and spec.framework.name is FrameworkName.TENSORFLOW and needs_chief(names):
        return chief_of(names)
    return SuccessRule.ALL
