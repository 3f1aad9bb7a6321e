"""Values of model.proto: jobs as they are submitted."""

from datetime import timedelta

from muster.domain.disconnect import DEFAULT_LOST_AFTER, LONGEST_LOST_AFTER, SHORTEST_LOST_AFTER, OnDisconnect
from muster.domain.job import (
    DEFAULT_PROJECT,
    InlineFile,
    JobSpec,
    Mount,
    Network,
    Packing,
    PortRequest,
    PullPolicy,
    Resources,
    Role,
    Security,
    Timeouts,
    Ulimit,
)
from muster.domain.job_size import too_much_to_share
from muster.domain.lifecycle import SuccessRule
from muster.domain.restart import MOST_RESTARTS, SHORTEST_BACKOFF, ExitCodes, RestartPolicy, parse_exit_codes
from muster.rpc.v1 import model_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.secret_uses import secret_use_from_wire, secret_use_to_wire
from muster.wire.security import security_from_wire, security_to_wire

_PRIORITY = 1000
_UNLIMITED = -1


def job_spec_to_wire(spec: JobSpec) -> pb.JobSpec:
    """A job as submitted."""
    return pb.JobSpec(
        name=spec.name,
        roles=map(role_to_wire, spec.roles),
        network=spec.network,
        success=spec.success,
        priority=spec.priority,
        packing=spec.packing,
        max_per_node=spec.max_per_node,
        node_labels=spec.node_labels,
        timeouts=pb.Timeouts(
            check_in=checks.duration(spec.timeouts.check_in),
            grace=checks.duration(spec.timeouts.grace),
            run=checks.duration(spec.timeouts.run),
            lost_after=checks.duration(spec.timeouts.lost_after),
        ),
        restarts=pb.RestartPolicy(
            limit=spec.restarts.limit,
            infrastructure=spec.restarts.infrastructure,
            backoff=checks.duration(spec.restarts.backoff),
            restart_on=str(spec.restarts.restart_on or ""),
            fail_on=str(spec.restarts.fail_on),
        ),
        on_disconnect=spec.on_disconnect,
        project=spec.project,
    )


def job_spec_from_wire(message: pb.JobSpec) -> JobSpec:
    """A job as submitted; raises WireError."""
    checks.require(message, "timeouts")
    roles = tuple(role_from_wire(role) for role in message.roles)
    checks.unique([role.name for role in roles], "JobSpec.roles")
    checks.between(sum(role.count for role in roles), 1, checks.MAX_SIZE, "JobSpec.roles")
    network = checks.word(Network, message.network, "JobSpec.network")
    if network is Network.BRIDGE and not all(role.image for role in roles):
        raise WireError("JobSpec.network", "is bridge, which every role needs an image for")
    spec = JobSpec(
        name=checks.label(message.name, "JobSpec.name"),
        roles=roles,
        network=network,
        success=checks.word(SuccessRule, message.success, "JobSpec.success"),
        priority=checks.between(message.priority, -_PRIORITY, _PRIORITY, "JobSpec.priority"),
        packing=checks.word(Packing, message.packing, "JobSpec.packing"),
        max_per_node=_max_per_node(message),
        node_labels=dict(message.node_labels),
        timeouts=_timeouts(message.timeouts),
        restarts=_restarts(message.restarts) if message.HasField("restarts") else RestartPolicy(),
        on_disconnect=checks.word(OnDisconnect, message.on_disconnect, "JobSpec.on_disconnect")
        if message.on_disconnect
        else OnDisconnect.KEEP,
        project=checks.label(message.project, "JobSpec.project") if message.project else DEFAULT_PROJECT,
    )
    if (problem := too_much_to_share(spec)) is not None:
        raise WireError("JobSpec.roles", f"ask for too much: {problem}")
    return spec


def role_to_wire(role: Role) -> pb.Role:
    """A named part of a job."""
    return pb.Role(
        name=role.name,
        count=role.count,
        image=role.image or "",
        pull=role.pull,
        entrypoint=None if role.entrypoint is None else pb.Words(items=role.entrypoint),
        command=role.command,
        env=role.env,
        workdir=role.workdir or "",
        user=role.user or "",
        resources=resources_to_wire(role.resources),
        ports=[pb.PortRequest(name=request.name, port=request.port) for request in role.ports],
        mounts=[pb.Mount(source=m.source, target=m.target, read_only=m.read_only) for m in role.mounts],
        ulimits=[pb.Ulimit(name=limit.name, soft=limit.soft, hard=limit.hard) for limit in role.ulimits],
        files=[pb.InlineFile(path=f.path, content=f.content, executable=f.executable) for f in role.files],
        secrets=map(secret_use_to_wire, role.secrets),
        security=security_to_wire(role.security),
    )


def role_from_wire(message: pb.Role) -> Role:
    """A named part of a job; raises WireError."""
    checks.require(message, "resources")
    if not message.image and not message.command:
        raise WireError("Role.command", "is empty; a role without an image needs one")
    checks.unique([request.name for request in message.ports], "Role.ports")
    return Role(
        name=checks.label(message.name, "Role.name"),
        count=checks.between(message.count, 1, checks.MAX_SIZE, "Role.count"),
        image=message.image or None,
        pull=checks.word(PullPolicy, message.pull, "Role.pull"),
        entrypoint=_entrypoint(message),
        command=checks.words(message.command, "Role.command"),
        env=_env(message),
        workdir=checks.absolute(message.workdir, "Role.workdir") if message.workdir else None,
        user=message.user or None,
        resources=resources_from_wire(message.resources),
        ports=tuple(_port_request(request) for request in message.ports),
        mounts=tuple(_mount(mount) for mount in message.mounts),
        ulimits=tuple(_ulimit(limit) for limit in message.ulimits),
        files=tuple(_inline_file(file) for file in message.files),
        secrets=tuple(secret_use_from_wire(use) for use in message.secrets),
        security=security_from_wire(message.security) if message.HasField("security") else Security(),
    )


def resources_to_wire(resources: Resources) -> pb.Resources:
    """What one execution needs."""
    return pb.Resources(
        gpus=resources.gpus,
        gpu_model=resources.gpu_model or "",
        cpu_millis=resources.cpu_millis,
        memory=resources.memory,
        shm=resources.shm,
    )


def resources_from_wire(message: pb.Resources) -> Resources:
    """What one execution needs; raises WireError."""
    return Resources(
        gpus=checks.between(message.gpus, 0, checks.MAX_COUNT, "Resources.gpus"),
        gpu_model=message.gpu_model or None,
        cpu_millis=checks.between(message.cpu_millis, 0, checks.MAX_COUNT, "Resources.cpu_millis"),
        memory=checks.size(message.memory, "Resources.memory") if message.HasField("memory") else None,
        shm=checks.size(message.shm, "Resources.shm") if message.HasField("shm") else None,
    )


def _max_per_node(message: pb.JobSpec) -> int | None:
    if not message.HasField("max_per_node"):
        return None
    return checks.between(message.max_per_node, 1, checks.MAX_COUNT, "JobSpec.max_per_node")


def _timeouts(message: pb.Timeouts) -> Timeouts:
    checks.require(message, "check_in", "grace")
    return Timeouts(
        check_in=checks.span(message.check_in, "Timeouts.check_in"),
        grace=checks.span(message.grace, "Timeouts.grace"),
        run=checks.span(message.run, "Timeouts.run") if message.HasField("run") else None,
        lost_after=_lost_after(message),
    )


def _lost_after(message: pb.Timeouts) -> timedelta:
    if not message.HasField("lost_after"):
        return DEFAULT_LOST_AFTER
    span = checks.span(message.lost_after, "Timeouts.lost_after")
    if not SHORTEST_LOST_AFTER <= span <= LONGEST_LOST_AFTER:
        raise WireError(
            "Timeouts.lost_after", f"is {span}; it must be from {SHORTEST_LOST_AFTER} to {LONGEST_LOST_AFTER}"
        )
    return span


def _restarts(message: pb.RestartPolicy) -> RestartPolicy:
    checks.require(message, "backoff")
    return RestartPolicy(
        limit=checks.between(message.limit, 0, MOST_RESTARTS, "RestartPolicy.limit"),
        infrastructure=checks.between(message.infrastructure, 0, MOST_RESTARTS, "RestartPolicy.infrastructure"),
        backoff=_backoff(message),
        restart_on=_exit_codes(message.restart_on, "RestartPolicy.restart_on") if message.restart_on else None,
        fail_on=_exit_codes(message.fail_on, "RestartPolicy.fail_on") if message.fail_on else ExitCodes(),
    )


def _backoff(message: pb.RestartPolicy) -> timedelta:
    span = checks.span(message.backoff, "RestartPolicy.backoff")
    if span < SHORTEST_BACKOFF:
        raise WireError("RestartPolicy.backoff", f"is {span}; it must be at least {SHORTEST_BACKOFF}")
    return span


def _exit_codes(text: str, field: str) -> ExitCodes:
    try:
        return parse_exit_codes(text)
    except ValueError as error:
        raise WireError(field, str(error)) from None


def _entrypoint(message: pb.Role) -> tuple[str, ...] | None:
    return checks.words(message.entrypoint.items, "Role.entrypoint") if message.HasField("entrypoint") else None


def _env(message: pb.Role) -> dict[str, str]:
    for name in checks.words(message.env, "Role.env"):
        if not name or "=" in name:
            raise WireError("Role.env", f"has the name {name!r}; a name is not empty and has no equals sign")
    checks.words(message.env.values(), "Role.env")
    return dict(message.env)


def _port_request(message: pb.PortRequest) -> PortRequest:
    return PortRequest(
        name=checks.port_name(message.name, "PortRequest.name"),
        port=checks.port(message.port, "PortRequest.port") if message.HasField("port") else None,
    )


def _mount(message: pb.Mount) -> Mount:
    return Mount(
        source=checks.absolute(message.source, "Mount.source"),
        target=checks.absolute(message.target, "Mount.target"),
        read_only=message.read_only,
    )


def _ulimit(message: pb.Ulimit) -> Ulimit:
    return Ulimit(
        name=checks.label(message.name, "Ulimit.name"),
        soft=checks.between(message.soft, _UNLIMITED, checks.MAX_BYTES, "Ulimit.soft"),
        hard=checks.between(message.hard, _UNLIMITED, checks.MAX_BYTES, "Ulimit.hard"),
    )


def _inline_file(message: pb.InlineFile) -> InlineFile:
    return InlineFile(
        path=checks.path(message.path, "InlineFile.path"),
        content=message.content,
        executable=message.executable,
    )
