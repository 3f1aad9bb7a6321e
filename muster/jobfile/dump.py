"""A job as the plain values of a job file, with every setting spelled out."""

import base64
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.data.code import JobCode
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import OutputTerms, StoredAfter
from muster.domain.data.pattern import InputLayout
from muster.domain.data.volume import Volume, VolumeKeep
from muster.domain.jobs.frameworks.framework import PER_GPU, Framework, FrameworkName, Rendezvous
from muster.domain.jobs.interactive import NEVER_IDLE, Interactive
from muster.domain.jobs.job import (
    InlineFile,
    JobSpec,
    Mount,
    PortRequest,
    Resources,
    Role,
    Security,
    Timeouts,
    Ulimit,
)
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.placing.toleration import Toleration
from muster.domain.jobs.restart import ExitRules, RestartPolicy
from muster.domain.jobs.secret_use import SecretUse
from muster.domain.jobs.stopping.preemption import DEFAULT_ON_PREEMPT, OnPreempt
from muster.domain.quantity import format_cpus, format_duration, format_memory, format_moment
from muster.jobfile.quantity import NO_LIMIT


def dump(spec: JobSpec) -> dict[str, Any]:
    """See `muster.jobfile.dump_job`."""
    plain = [role.name for role in spec.roles] == [Role().name]
    roles = _role(spec.roles[0]) if plain else {"roles": [_named(role) for role in spec.roles]}
    return {
        "name": spec.name,
        **({"workers": spec.roles[0].count} if plain else {}),
        **roles,
        "network": str(spec.network),
        **_present(success=spec.success and str(spec.success)),
        **_present(project=spec.project or None),
        **_present(framework=_framework(spec.framework)),
        **_present(gang_commands=spec.gang_commands),
        **_present(dialects=list(map(str, spec.dialects)), labels=dict(spec.labels)),
        **_present(interactive=_interactive(spec.interactive), stdin=spec.stdin or None, tty=spec.tty or None),
        "priority": spec.priority,
        **_present(
            hold=spec.hold or None,
            not_before=None if spec.not_before is None else format_moment(spec.not_before),
            delete_after=_span(spec.delete_after),
        ),
        **_present(**{"class": spec.job_class and str(spec.job_class)}),
        "placement": str(spec.packing),
        **_present(max_per_node=spec.max_per_node, node_labels=dict(spec.node_labels)),
        **_present(pools=list(map(_pool, spec.pools)), node_type=list(spec.node_types)),
        **_present(tolerations=list(map(_toleration, spec.tolerations))),
        **_present(affinity=_affinity(spec.affinity)),
        **_present(topology=_present(required=spec.topology.required, preferred=spec.topology.preferred)),
        **_present(exclude_nodes=list(spec.exclude_nodes), exclusive=spec.exclusive or None),
        "timeouts": _timeouts(spec.timeouts),
        **_present(restarts=_restarts(spec.restarts), on_preempt=_on_preempt(spec.on_preempt)),
        "on_disconnect": str(spec.on_disconnect),
    }


def _named(role: Role) -> dict[str, Any]:
    return {"name": role.name, "count": role.count, **_role(role)}


def _role(role: Role) -> dict[str, Any]:
    return _present(
        image=role.image,
        pull=str(role.pull) if role.image else None,
        entrypoint=None if role.entrypoint is None else list(role.entrypoint),
        command=list(role.command),
        env=dict(role.env),
        workdir=role.workdir,
        user=role.user,
        resources=_resources(role.resources),
        ports=[_port(port) for port in role.ports],
        mounts=[_mount(mount) for mount in role.mounts],
        volumes={volume.name: _volume(volume) for volume in role.volumes},
        inputs={each.name: _input(each) for each in role.inputs},
        ulimits={ulimit.name: _ulimit(ulimit) for ulimit in role.ulimits},
        files=[_file(file) for file in role.files],
        secrets=[_secret(use) for use in role.secrets],
        security=_security(role.security),
        exit_codes=_exit_codes(role.exit_codes),
        expand=role.expand or None,
        code=_code(role.code),
        outputs=_outputs(role.outputs),
        checkpoint=_checkpoint(role.checkpoint),
    )


def _code(code: JobCode | None) -> dict[str, Any] | str | None:
    if code is None:
        return None
    shared = {} if code.writable else {"writable": False}
    if code.git is not None:
        git = code.git
        return _present(
            git=git.url,
            ref=git.ref or None,
            commit=git.commit or None,
            path=git.path or None,
            secret=git.secret or None,
            submodules=git.submodules or None,
            lfs=git.lfs or None,
            **shared,
        )
    if code.tree:
        return {"tree": code.tree, "size": code.size, **shared}
    return {"folder": code.folder, **shared} if shared else code.folder


def _outputs(terms: OutputTerms) -> dict[str, Any]:
    """What is not the default."""
    return _present(
        on=None if terms.after is StoredAfter.ALWAYS else str(terms.after),
        only=list(terms.only),
        limit=None if terms.limit is None else format_memory(terms.limit),
        keep=_span(terms.keep),
        to=terms.to or None,
        secret=terms.secret or None,
        live=None if terms.live is None else str(terms.live),
    )


def _checkpoint(checkpoint: JobCheckpoint | None) -> dict[str, Any] | None:
    if checkpoint is None:
        return None
    return {
        **_present(path=checkpoint.path, done=checkpoint.done or None),
        **_present(to=checkpoint.to or None, secret=checkpoint.secret or None),
        "ranks": str(checkpoint.ranks),
        "settle": format_duration(checkpoint.settle),
        "keep": checkpoint.keep,
    }


def _resources(resources: Resources) -> dict[str, Any]:
    return _present(
        gpus=resources.gpus,
        gpu_model=resources.gpu_model,
        mig=resources.mig,
        gpu_portion=None if resources.gpu_portion is None else resources.gpu_portion / 1000,
        gpu_memory=None if resources.gpu_memory is None else format_memory(resources.gpu_memory),
        cpus=format_cpus(resources.cpu_millis),
        memory=None if resources.memory is None else format_memory(resources.memory),
        shm=None if resources.shm is None else format_memory(resources.shm),
        disk=None if resources.disk is None else format_memory(resources.disk),
        cpu_limit=None if resources.cpu_limit is None else format_cpus(resources.cpu_limit),
        memory_limit=_memory_limit(resources.memory_limit),
    )


def _port(port: PortRequest) -> dict[str, Any]:
    return _present(name=port.name, port=port.port)


def _volume(volume: Volume) -> dict[str, Any]:
    return _present(
        path=volume.path,
        size=None if volume.size is None else format_memory(volume.size),
        tmpfs=None if volume.tmpfs is None else format_memory(volume.tmpfs),
        keep=None if volume.keep is VolumeKeep.EXECUTION else str(volume.keep),
        writable=None if volume.writable else False,
    )


def _input(each: JobInput) -> dict[str, Any] | list[str] | str:
    url = list(each.urls) or each.url
    said = _present(url=url or None, only=list(each.only) or None, path=each.path, sha256=each.sha256 or None)
    said |= {"secret": each.secret} if each.secret else {}
    said |= {"from": each.source} if each.source else {}
    said |= {"split": True} if each.split else {}
    said |= {"layout": str(each.layout)} if each.layout is not InputLayout.TAIL else {}
    return url if list(said) == ["url"] else said


def _mount(mount: Mount) -> dict[str, Any]:
    return {"source": mount.source, "target": mount.target, "read_only": mount.read_only}


def _ulimit(ulimit: Ulimit) -> dict[str, Any]:
    return {key: "unlimited" if value == -1 else value for key, value in (("soft", ulimit.soft), ("hard", ulimit.hard))}


def _security(security: Security) -> dict[str, Any]:
    """What is not the default."""
    return _present(
        capabilities=list(security.capabilities),
        privileged=security.privileged or None,
        gain_privileges=security.gain_privileges or None,
        image_user=security.image_user or None,
        pids=security.pids,
    )


def _exit_codes(rules: ExitRules) -> dict[str, Any]:
    return _present(restart=None if rules.restart is None else str(rules.restart), fail=str(rules.fail) or None)


def _file(file: InlineFile) -> dict[str, Any]:
    if file.is_text:
        content = {"content": file.content.decode()}
    else:
        content = {"content_base64": base64.b64encode(file.content).decode()}
    return {"path": file.path, **content, "executable": file.executable}


def _secret(use: SecretUse) -> dict[str, Any]:
    env = True if use.standard_env else dict(use.env)
    return _present(secret=use.secret, env=env, directory=use.directory)


def _timeouts(timeouts: Timeouts) -> dict[str, Any]:
    return _present(
        check_in=format_duration(timeouts.check_in),
        grace=format_duration(timeouts.grace),
        fetch=None if timeouts.fetch == Timeouts().fetch else format_duration(timeouts.fetch),
        stall=None if timeouts.stall == Timeouts().stall else format_duration(timeouts.stall),
        store=None if timeouts.store == Timeouts().store else format_duration(timeouts.store),
        run=_span(timeouts.run),
        queue=_span(timeouts.queue),
        expected=_span(timeouts.expected),
        lost_after=format_duration(timeouts.lost_after),
        preempt=_span(timeouts.preempt),
        idle=_idle(timeouts.idle),
    )


def _span(span: timedelta | None) -> str | None:
    return None if span is None else format_duration(span)


def _idle(limit: timedelta | None) -> str | None:
    if limit is None:
        return None
    return NO_LIMIT if limit == NEVER_IDLE else format_duration(limit)


def _memory_limit(limit: int | None) -> str | None:
    if limit is None:
        return None
    return format_memory(limit) if limit else NO_LIMIT


def _pool(choice: PoolChoice) -> dict[str, Any]:
    return _present(pool=choice.pool, after=None if choice.after is None else format_duration(choice.after))


def _toleration(toleration: Toleration) -> dict[str, Any]:
    return _present(
        key=toleration.key or None,
        operator=str(toleration.operator),
        value=toleration.value or None,
        effect=toleration.effect and str(toleration.effect),
        seconds=toleration.seconds,
    )


def _affinity(affinity: Affinity) -> dict[str, Any]:
    return _present(
        required=[_term(term) for term in affinity.required],
        preferred=[{"weight": term.weight, "all": _term(term.all)} for term in affinity.preferred],
    )


def _term(term: Iterable[LabelExpression]) -> list[dict[str, Any]]:
    return [_present(key=each.key, operator=str(each.operator), values=list(each.values)) for each in term]


def _on_preempt(on_preempt: OnPreempt) -> dict[str, Any] | None:
    if on_preempt == DEFAULT_ON_PREEMPT:
        return None
    return {"signal": str(on_preempt.signal), "restart": on_preempt.restart}


def _interactive(interactive: Interactive | None) -> bool | dict[str, Any] | None:
    if interactive is None:
        return None
    return {"setup": interactive.setup} if interactive.setup else True


def _restarts(policy: RestartPolicy) -> dict[str, Any] | None:
    if policy == RestartPolicy():
        return None
    return _present(
        limit=policy.limit,
        infrastructure=policy.infrastructure,
        backoff=format_duration(policy.backoff),
    )


def _framework(framework: Framework | None) -> dict[str, Any] | None:
    if framework is None:
        return None
    told = framework.name is FrameworkName.PYTORCH  # otherwise both say nothing, or something wrong
    return _present(
        name=str(framework.name),
        processes=PER_GPU if framework.processes is None else framework.processes,
        launch=framework.launch and str(framework.launch),
        rendezvous=str(framework.rendezvous) if told or framework.rendezvous is not Rendezvous.STATIC else None,
        restarts_in_place=framework.restarts_in_place if told or framework.restarts_in_place else None,
    )


def _present(**keys: Any) -> dict[str, Any]:  # noqa: ANN401 - values of any key
    """Without the keys that say nothing; an empty entrypoint does say something."""
    return {
        key: value
        for key, value in keys.items()
        if value is not None and (value not in ([], {}) or key == "entrypoint")
    }
