"""Values of model.proto: jobs as they are submitted.

What is checked here makes a value of a message. What a valid job is says `muster.domain.jobs.rules.job_rules`.
"""

from collections.abc import Iterable

from muster.domain.data.output_terms import ALL_OUTPUTS
from muster.domain.data.volume import Volume, VolumeKeep
from muster.domain.ids import NodeId
from muster.domain.jobs.disconnect import DEFAULT_LOST_AFTER, OnDisconnect
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, LaunchPlace, Rendezvous
from muster.domain.jobs.interactive import Interactive
from muster.domain.jobs.job import (
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
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import success_named
from muster.domain.jobs.restart import ExitCodes, ExitRules, RestartPolicy, parse_exit_codes
from muster.domain.jobs.stopping.preemption import DEFAULT_ON_PREEMPT, OnPreempt, PreemptSignal
from muster.rpc.v1 import model_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.data.checkpoints import job_checkpoint_from_wire, job_checkpoint_to_wire
from muster.wire.data.code import code_from_wire, code_to_wire
from muster.wire.data.inputs import input_from_wire, input_to_wire
from muster.wire.data.outputs import output_terms_from_wire, output_terms_to_wire
from muster.wire.placing import (
    affinity_from_wire,
    affinity_to_wire,
    pool_choice_from_wire,
    pool_choice_to_wire,
    toleration_from_wire,
    toleration_to_wire,
    topology_from_wire,
    topology_to_wire,
)
from muster.wire.secret_uses import secret_use_from_wire, secret_use_to_wire
from muster.wire.security import security_from_wire, security_to_wire


def job_spec_to_wire(spec: JobSpec) -> pb.JobSpec:
    """A job as submitted."""
    return pb.JobSpec(
        name=spec.name,
        roles=map(role_to_wire, spec.roles),
        network=spec.network,
        success=spec.success or "",
        priority=spec.priority,
        job_class=spec.job_class or "",
        packing=spec.packing,
        max_per_node=spec.max_per_node,
        node_labels=spec.node_labels,
        timeouts=pb.Timeouts(
            check_in=checks.duration(spec.timeouts.check_in),
            grace=checks.duration(spec.timeouts.grace),
            fetch=checks.duration(spec.timeouts.fetch),
            stall=checks.duration(spec.timeouts.stall),
            store=checks.duration(spec.timeouts.store),
            run=checks.duration(spec.timeouts.run),
            lost_after=checks.duration(spec.timeouts.lost_after),
            preempt=checks.duration(spec.timeouts.preempt),
            queue=checks.duration(spec.timeouts.queue),
            expected=checks.duration(spec.timeouts.expected),
            idle=checks.duration(spec.timeouts.idle),
        ),
        restarts=pb.RestartPolicy(
            limit=spec.restarts.limit,
            infrastructure=spec.restarts.infrastructure,
            backoff=checks.duration(spec.restarts.backoff),
        ),
        on_disconnect=spec.on_disconnect,
        project=spec.project,
        labels=spec.labels,
        framework=framework_to_wire(spec.framework),
        gang_commands=spec.gang_commands,
        dialects=spec.dialects,
        interactive=interactive_to_wire(spec.interactive),
        stdin=spec.stdin,
        tty=spec.tty,
        pools=map(pool_choice_to_wire, spec.pools),
        node_types=spec.node_types,
        exclude_nodes=spec.exclude_nodes,
        tolerations=map(toleration_to_wire, spec.tolerations),
        affinity=affinity_to_wire(spec.affinity),
        topology=topology_to_wire(spec.topology),
        exclusive=spec.exclusive,
        on_preempt=_on_preempt_to_wire(spec.on_preempt),
        hold=spec.hold,
        not_before=checks.timestamp(spec.not_before),
        delete_after=checks.duration(spec.delete_after),
    )


def job_spec_from_wire(message: pb.JobSpec) -> JobSpec:
    """A job as a peer tells of it, valid or not; raises WireError for a malformed message."""
    checks.require(message, "timeouts")
    return JobSpec(
        name=message.name,
        roles=tuple(role_from_wire(role) for role in message.roles),
        network=checks.word(Network, message.network, "JobSpec.network"),
        success=success_named(message.success),
        priority=message.priority,
        job_class=checks.word(JobClass, message.job_class, "JobSpec.job_class") if message.job_class else None,
        packing=checks.word(Packing, message.packing, "JobSpec.packing"),
        max_per_node=message.max_per_node if message.HasField("max_per_node") else None,
        node_labels=dict(message.node_labels),
        timeouts=_timeouts(message.timeouts),
        restarts=_restarts(message.restarts) if message.HasField("restarts") else RestartPolicy(),
        on_disconnect=checks.word(OnDisconnect, message.on_disconnect, "JobSpec.on_disconnect")
        if message.on_disconnect
        else OnDisconnect.KEEP,
        project=message.project,
        labels=dict(message.labels),
        framework=framework_from_wire(message.framework) if message.HasField("framework") else None,
        gang_commands=message.gang_commands if message.HasField("gang_commands") else None,
        dialects=dialects_from_wire(message.dialects, "JobSpec.dialects"),
        interactive=interactive_from_wire(message.interactive) if message.HasField("interactive") else None,
        stdin=message.stdin,
        tty=message.tty,
        pools=tuple(map(pool_choice_from_wire, message.pools)),
        node_types=tuple(message.node_types),
        exclude_nodes=tuple(map(NodeId, message.exclude_nodes)),
        tolerations=tuple(map(toleration_from_wire, message.tolerations)),
        affinity=affinity_from_wire(message.affinity),
        topology=topology_from_wire(message.topology),
        exclusive=message.exclusive,
        on_preempt=_on_preempt(message.on_preempt) if message.HasField("on_preempt") else DEFAULT_ON_PREEMPT,
        hold=message.hold,
        not_before=checks.optional_moment(message, "not_before"),
        delete_after=checks.optional_span(message, "delete_after"),
    )


def dialects_from_wire(words: Iterable[str], field: str) -> tuple[Dialect, ...]:
    """The dialects of a job; raises WireError for words that are not known."""
    return tuple(checks.word(Dialect, each, field) for each in words)


def interactive_to_wire(interactive: Interactive | None) -> pb.Interactive | None:
    """What a job has in which people work; None where it has nothing of that."""
    return None if interactive is None else pb.Interactive(setup=interactive.setup)


def interactive_from_wire(message: pb.Interactive) -> Interactive:
    """What a job has in which people work."""
    return Interactive(setup=message.setup)


def framework_to_wire(framework: Framework | None) -> pb.Framework | None:
    """The framework of a job; None where it has none."""
    if framework is None:
        return None
    return pb.Framework(
        name=framework.name,
        processes=framework.processes,
        rendezvous=framework.rendezvous,
        restarts_in_place=framework.restarts_in_place,
        launch=framework.launch or "",
    )


def framework_from_wire(message: pb.Framework) -> Framework:
    """The framework of a job; raises WireError for words that are not known."""
    return Framework(
        name=checks.word(FrameworkName, message.name, "Framework.name"),
        processes=message.processes if message.HasField("processes") else None,
        rendezvous=checks.word(Rendezvous, message.rendezvous, "Framework.rendezvous")
        if message.rendezvous
        else Rendezvous.STATIC,
        restarts_in_place=message.restarts_in_place,
        launch=checks.word(LaunchPlace, message.launch, "Framework.launch") if message.launch else None,
    )


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
        volumes=map(_volume_to_wire, role.volumes),
        inputs=map(input_to_wire, role.inputs),
        ulimits=[pb.Ulimit(name=limit.name, soft=limit.soft, hard=limit.hard) for limit in role.ulimits],
        files=[pb.InlineFile(path=f.path, content=f.content, executable=f.executable) for f in role.files],
        secrets=map(secret_use_to_wire, role.secrets),
        security=security_to_wire(role.security),
        exit_codes=_exit_rules_to_wire(role.exit_codes),
        expand=role.expand,
        code=None if role.code is None else code_to_wire(role.code),
        outputs=None if role.outputs == ALL_OUTPUTS else output_terms_to_wire(role.outputs),
        checkpoint=None if role.checkpoint is None else job_checkpoint_to_wire(role.checkpoint),
    )


def role_from_wire(message: pb.Role) -> Role:
    """A named part of a job; raises WireError."""
    checks.require(message, "resources")
    return Role(
        name=message.name,
        count=message.count,
        image=message.image or None,
        pull=checks.word(PullPolicy, message.pull, "Role.pull"),
        entrypoint=tuple(message.entrypoint.items) if message.HasField("entrypoint") else None,
        command=tuple(message.command),
        env=dict(message.env),
        workdir=message.workdir or None,
        user=message.user or None,
        resources=resources_from_wire(message.resources),
        ports=tuple(_port_request(request) for request in message.ports),
        mounts=tuple(Mount(source=m.source, target=m.target, read_only=m.read_only) for m in message.mounts),
        volumes=tuple(map(_volume, message.volumes)),
        inputs=tuple(map(input_from_wire, message.inputs)),
        ulimits=tuple(Ulimit(name=limit.name, soft=limit.soft, hard=limit.hard) for limit in message.ulimits),
        files=tuple(InlineFile(path=f.path, content=f.content, executable=f.executable) for f in message.files),
        secrets=tuple(secret_use_from_wire(use) for use in message.secrets),
        security=security_from_wire(message.security) if message.HasField("security") else Security(),
        exit_codes=_exit_rules(message.exit_codes) if message.HasField("exit_codes") else ExitRules(),
        expand=message.expand,
        code=code_from_wire(message.code) if message.HasField("code") else None,
        outputs=output_terms_from_wire(message.outputs) if message.HasField("outputs") else ALL_OUTPUTS,
        checkpoint=job_checkpoint_from_wire(message.checkpoint) if message.HasField("checkpoint") else None,
    )


def _volume_to_wire(volume: Volume) -> pb.Volume:
    return pb.Volume(
        name=volume.name,
        path=volume.path or "",
        size=volume.size,
        tmpfs=volume.tmpfs,
        keep=volume.keep,
        read_only=not volume.writable,
    )


def _volume(message: pb.Volume) -> Volume:
    return Volume(
        name=message.name,
        path=message.path or None,
        size=message.size if message.HasField("size") else None,
        tmpfs=message.tmpfs if message.HasField("tmpfs") else None,
        keep=checks.word(VolumeKeep, message.keep, "Volume.keep"),
        writable=not message.read_only,
    )


def resources_to_wire(resources: Resources) -> pb.Resources:
    """What one execution needs."""
    return pb.Resources(
        gpus=resources.gpus,
        gpu_model=resources.gpu_model or "",
        mig=resources.mig or "",
        gpu_portion=resources.gpu_portion,
        gpu_memory=resources.gpu_memory,
        gpu_counted=resources.gpu_counted,
        cpu_millis=resources.cpu_millis,
        memory=resources.memory,
        shm=resources.shm,
        disk=resources.disk,
        cpu_limit=resources.cpu_limit,
        memory_limit=resources.memory_limit,
    )


def resources_from_wire(message: pb.Resources) -> Resources:
    """What one execution needs; raises WireError."""
    return Resources(
        gpus=message.gpus,
        gpu_model=message.gpu_model or None,
        mig=message.mig or None,
        gpu_portion=message.gpu_portion if message.HasField("gpu_portion") else None,
        gpu_memory=message.gpu_memory if message.HasField("gpu_memory") else None,
        gpu_counted=message.gpu_counted if message.HasField("gpu_counted") else None,
        cpu_millis=message.cpu_millis,
        memory=message.memory if message.HasField("memory") else None,
        shm=message.shm if message.HasField("shm") else None,
        disk=message.disk if message.HasField("disk") else None,
        cpu_limit=message.cpu_limit if message.HasField("cpu_limit") else None,
        memory_limit=message.memory_limit if message.HasField("memory_limit") else None,
    )


def _exit_rules_to_wire(rules: ExitRules) -> pb.ExitRules | None:
    if rules == ExitRules():
        return None
    return pb.ExitRules(restart=str(rules.restart or ""), fail=str(rules.fail))


def _timeouts(message: pb.Timeouts) -> Timeouts:
    checks.require(message, "check_in", "grace")
    return Timeouts(
        check_in=checks.span(message.check_in, "Timeouts.check_in"),
        grace=checks.span(message.grace, "Timeouts.grace"),
        fetch=checks.span(message.fetch, "Timeouts.fetch") if message.HasField("fetch") else Timeouts().fetch,
        stall=checks.span(message.stall, "Timeouts.stall") if message.HasField("stall") else Timeouts().stall,
        store=checks.span(message.store, "Timeouts.store") if message.HasField("store") else Timeouts().store,
        run=checks.span(message.run, "Timeouts.run") if message.HasField("run") else None,
        lost_after=checks.span(message.lost_after, "Timeouts.lost_after")
        if message.HasField("lost_after")
        else DEFAULT_LOST_AFTER,
        preempt=checks.span(message.preempt, "Timeouts.preempt") if message.HasField("preempt") else None,
        queue=checks.optional_span(message, "queue"),
        expected=checks.optional_span(message, "expected"),
        idle=checks.span(message.idle, "Timeouts.idle") if message.HasField("idle") else None,
    )


def _restarts(message: pb.RestartPolicy) -> RestartPolicy:
    checks.require(message, "backoff")
    return RestartPolicy(
        limit=message.limit,
        infrastructure=message.infrastructure,
        backoff=checks.span(message.backoff, "RestartPolicy.backoff"),
    )


def _on_preempt_to_wire(on_preempt: OnPreempt) -> pb.OnPreempt | None:
    if on_preempt == DEFAULT_ON_PREEMPT:
        return None
    return pb.OnPreempt(signal=on_preempt.signal, restart=on_preempt.restart)


def _on_preempt(message: pb.OnPreempt) -> OnPreempt:
    return OnPreempt(signal=checks.word(PreemptSignal, message.signal, "OnPreempt.signal"), restart=message.restart)


def _exit_rules(message: pb.ExitRules) -> ExitRules:
    return ExitRules(
        restart=_exit_codes(message.restart, "ExitRules.restart") if message.restart else None,
        fail=_exit_codes(message.fail, "ExitRules.fail") if message.fail else ExitCodes(),
    )


def _exit_codes(text: str, field: str) -> ExitCodes:
    try:
        return parse_exit_codes(text)
    except ValueError as error:
        raise WireError(field, str(error)) from None


def _port_request(message: pb.PortRequest) -> PortRequest:
    return PortRequest(name=message.name, port=message.port if message.HasField("port") else None)
