"""From checked keys to a `JobSpec`: role defaults applied, files read, and the rules that take several keys."""

import pathlib
from collections.abc import Iterator, Sequence

from muster.domain.data.code import JobCode
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.volume import Volume
from muster.domain.fault import Fault, Path
from muster.domain.ids import NodeId
from muster.domain.jobs.frameworks.framework import Framework
from muster.domain.jobs.interactive import Interactive
from muster.domain.jobs.job import InlineFile, JobSpec, Mount, PortRequest, Resources, Role, Security, Timeouts, Ulimit
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, PreferredTerm
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.placing.toleration import Toleration
from muster.domain.jobs.placing.topology import Topology
from muster.domain.jobs.restart import ExitCodes, ExitRules, RestartPolicy
from muster.domain.jobs.rules.filling_in import filled_in
from muster.domain.jobs.rules.job_rules import MAX_FILES_BYTES, ONLY_WITH_IMAGE, faults, needs_image
from muster.domain.jobs.stopping.preemption import OnPreempt
from muster.domain.quoting import quote
from muster.jobfile.document import Loc
from muster.jobfile.errors import FieldError
from muster.jobfile.lent_keys import OutputsKeys
from muster.jobfile.models import FileKeys, JobKeys, RoleDefaults, RoleKeys
from muster.jobfile.section import (
    AffinityKeys,
    ExitCodesKeys,
    LabelExpressionKeys,
    OnPreemptKeys,
    ResourcesKeys,
    RestartsKeys,
    SecurityKeys,
    TimeoutsKeys,
    TolerationKeys,
)

_MERGED = ("env", "ulimits", "volumes", "inputs")
"""Maps whose keys a role adds to those of the job; any other key of a role replaces the job's."""
_KEY_BY_KEY = ("env", "ulimits", "volumes", "inputs", "resources", "security")
"""Maps of which each key counts where it stands, for the role or for the job."""


class Builder:
    """Builds one job and gathers what is wrong with it in `findings`."""

    def __init__(self, job: JobKeys, base: pathlib.Path | None) -> None:
        self._job = job
        self._base = base
        self._left = MAX_FILES_BYTES
        """Bytes of files that are still read: more are of no use, as the job is refused."""
        self._roles = [_Layered(job, keys, place) for place, keys in enumerate(job.roles or [None])]
        self._said: set[tuple[Loc, str]] = set()
        self.findings: list[tuple[Loc, FieldError]] = []

    def spec(self) -> JobSpec:
        """The job; it is to be used only if there are no findings."""
        job = self._job
        said = JobSpec(
            name=job.name,
            roles=tuple(map(self._role, self._roles)),
            network=job.network,
            success=job.success,
            priority=job.priority,
            job_class=job.job_class,
            project=job.project or "",
            framework=None if job.framework is None else Framework(**job.framework.model_dump()),
            dialects=tuple(job.dialects),
            gang_commands=job.gang_commands,
            labels=dict(job.labels),
            packing=job.placement,
            max_per_node=job.max_per_node,
            node_labels=dict(job.node_labels),
            timeouts=_timeouts(job.timeouts),
            restarts=_restarts(job.restarts),
            on_disconnect=job.on_disconnect,
            interactive=None if job.interactive is None else Interactive(setup=job.interactive.setup),
            stdin=job.stdin,
            tty=job.tty,
            pools=tuple(PoolChoice(pool=each.pool, after=each.after) for each in job.pools),
            node_types=tuple(job.node_type),
            exclude_nodes=tuple(map(NodeId, job.exclude_nodes)),
            tolerations=tuple(map(_toleration, job.tolerations)),
            affinity=_affinity(job.affinity),
            topology=Topology(**job.topology.model_dump()),
            exclusive=job.exclusive,
            on_preempt=_on_preempt(job.on_preempt),
            hold=job.hold,
            not_before=job.not_before,
            delete_after=job.delete_after,
        )
        spec = filled_in(said)
        if job.use is not None:
            self._find(("use",), FieldError("names presets, which only a coordinator joins: submit the file to one"))
        if job.roles is not None and "workers" in job.model_fields_set:
            self._find(("workers",), FieldError("stands beside roles; give each role its count instead"))
        for fault in (*faults(spec), *self._written_without_image(spec)):
            self._find(self.where(fault.path), FieldError(fault.message, suggestion=fault.suggestion))
        return spec

    def _role(self, keys: "_Layered") -> Role:
        effective = keys.effective
        return Role(
            name=keys.name,
            count=keys.count,
            image=effective.image,
            pull=effective.pull,
            entrypoint=None if effective.entrypoint is None else tuple(effective.entrypoint),
            command=tuple(effective.command or ()),
            env=dict(effective.env),
            workdir=effective.workdir,
            user=effective.user,
            resources=_resources(effective.resources),
            ports=tuple(PortRequest(name=port.name, port=port.port) for port in effective.ports),
            mounts=tuple(Mount(**mount.model_dump()) for mount in effective.mounts),
            volumes=tuple(Volume(name=name, **it.model_dump()) for name, it in sorted(effective.volumes.items())),
            inputs=tuple(
                JobInput(
                    name=name,
                    url="" if it.url is None or it.url[1:] else it.url[0],
                    urls=it.url if it.url is not None and it.url[1:] else (),
                    source=it.source or "",
                    only=tuple(it.only or ()),
                    path=it.path,
                    sha256=it.sha256 or "",
                    secret=it.secret or "",
                    split=it.split,
                    layout=it.layout,
                )
                for name, it in sorted(effective.inputs.items())
            ),
            ulimits=tuple(
                Ulimit(name=key, soft=it.soft, hard=it.hard) for key, it in sorted(effective.ulimits.items())
            ),
            files=tuple(self._files(keys)),
            secrets=tuple(secret.use for secret in effective.secrets),
            security=_security(effective.security),
            exit_codes=_exit_codes(effective.exit_codes),
            expand=effective.expand,
            code=self._code(keys),
            outputs=_outputs(effective.outputs),
            checkpoint=None if effective.checkpoint is None else effective.checkpoint.checkpoint,
        )

    def _code(self, keys: "_Layered") -> JobCode | None:
        code = keys.effective.code
        if code is None or code.folder is None:
            return None if code is None else code.code
        folder = None if self._base is None else self._base / code.folder
        if folder is None or not folder.is_dir():
            why = "cannot be read here" if folder is None else f"{quote(str(folder), most=4096)} is no folder"
            self._find(keys.where("code"), FieldError(f"{why}; `muster upload` sends one, and prints its tree"))
        return JobCode(folder=str(folder or code.folder), writable=code.writable)

    def _files(self, keys: "_Layered") -> Iterator[InlineFile]:
        for place, file in enumerate(keys.effective.files):
            try:
                content = _content(file, self._base)
            except FieldError as error:
                self._find((*keys.where("files"), place, "source"), error)
                content = b""  # keeps its place, by which the rule book names the others
            self._left -= len(content)
            yield InlineFile(path=file.path, content=content, executable=file.executable)
            if self._left < 0:
                return

    def _written_without_image(self, spec: JobSpec) -> Iterator[Fault]:
        """Keys that only containers have and that stand in the file, even if they say what counts anyway."""
        for number, (keys, role) in enumerate(zip(self._roles, spec.roles, strict=True)):
            if role.image is None:
                written = [(key,) for key in ONLY_WITH_IMAGE if keys.written(key)]
                yield from needs_image(spec, number, written)

    def knows(self, key: str) -> bool:
        """Whether it is a key of a job file."""
        return key in type(self._job).model_fields

    def where(self, path: Path) -> Loc:
        """Where in the file that stands which the rule book names by its role."""
        if path == ("roles",) and self._job.roles is None:
            return ("files",)  # what its executions are given is too much: as a rule it is these
        if path[0] != "roles" or len(path) == 1:
            return path
        keys, (key, *inner) = self._roles[int(path[1])], path[2:]
        if key in {"name", "count"}:
            return keys.of_role(str(key))
        if not keys.written(str(key)):
            return (*keys.own, key)
        if key in _KEY_BY_KEY and inner:
            return (*keys.where(str(key), str(inner[0])), *inner[1:])
        return (*keys.where(str(key)), *inner)

    def _find(self, loc: Loc, error: FieldError) -> None:
        if (loc, error.message) not in self._said:
            self._said.add((loc, error.message))
            self.findings.append((loc, error))


class _Layered:
    """The keys of a role over those of the job, and where each of them was written."""

    def __init__(self, job: JobKeys, role: RoleKeys | None, place: int) -> None:
        self._job = job
        self._role = role
        self.own: Loc = () if role is None else ("roles", place)
        """Where the role is described."""
        self.name = Role().name if role is None else role.name
        self.count = job.workers if role is None else role.count
        self.effective: RoleDefaults = job if role is None else _over(job, role)

    def written(self, key: str) -> bool:
        """Whether the key stands in the file, for the role or for the job."""
        return key in self._job.model_fields_set or (self._role is not None and key in self._role.model_fields_set)

    def of_role(self, key: str) -> Loc:
        """Where its name or count stands."""
        return (*self.own, key) if self.own else ({"name": "name", "count": "workers"}[key],)

    def where(self, key: str, inner: str | None = None) -> Loc:
        """Where the key was written that counts, or the key inside it."""
        found: Loc = (*self.own, key) if self._of_role(key, inner) else (key,)
        return found if inner is None else (*found, inner)

    def _of_role(self, key: str, inner: str | None) -> bool:
        if self._role is None or key not in self._role.model_fields_set:
            return False
        written = getattr(self._role, key)
        return inner is None or inner in (written if isinstance(written, dict) else written.model_fields_set)


def _over(job: JobKeys, role: RoleKeys) -> RoleDefaults:
    """The role's keys where they are written, else the job's; environment, limits and resources key by key."""
    values = {key: getattr(role if key in role.model_fields_set else job, key) for key in RoleDefaults.model_fields}
    values |= {key: {**getattr(job, key), **getattr(role, key)} for key in _MERGED}
    own = {key: getattr(role.resources, key) for key in role.resources.model_fields_set}
    values["resources"] = job.resources.model_copy(update=own)
    opened = {key: getattr(role.security, key) for key in role.security.model_fields_set}
    values["security"] = job.security.model_copy(update=opened)
    return RoleDefaults.model_construct(**values)


def _timeouts(keys: TimeoutsKeys) -> Timeouts:
    return Timeouts(
        check_in=keys.check_in,
        grace=keys.grace,
        fetch=keys.fetch,
        stall=keys.stall,
        store=keys.store,
        run=keys.run,
        queue=keys.queue,
        expected=keys.expected,
        lost_after=keys.lost_after,
        preempt=keys.preempt,
        idle=keys.idle,
    )


def _restarts(keys: RestartsKeys | None) -> RestartPolicy:
    if keys is None:
        return RestartPolicy()
    return RestartPolicy(
        limit=keys.limit,
        infrastructure=keys.infrastructure,
        backoff=keys.backoff,
    )


def _on_preempt(keys: OnPreemptKeys) -> OnPreempt:
    return OnPreempt(signal=keys.signal, restart=keys.restart)


def _exit_codes(keys: ExitCodesKeys | None) -> ExitRules:
    return ExitRules() if keys is None else ExitRules(restart=keys.restart, fail=keys.fail or ExitCodes())


def _outputs(keys: OutputsKeys) -> OutputTerms:
    return OutputTerms(
        after=keys.after,
        only=tuple(keys.only),
        limit=keys.limit,
        keep=keys.keep,
        to=keys.to or "",
        secret=keys.secret or "",
        live=keys.live,
    )


def _resources(keys: ResourcesKeys) -> Resources:
    return Resources(
        gpus=keys.gpus if "gpus" in keys.model_fields_set or not _gives_parts(keys) else 1,
        gpu_model=keys.gpu_model,
        mig=keys.mig,
        gpu_portion=keys.gpu_portion,
        gpu_memory=keys.gpu_memory,
        cpu_millis=keys.cpus,
        memory=keys.memory,
        shm=keys.shm,
        disk=keys.disk,
        cpu_limit=keys.cpu_limit,
        memory_limit=keys.memory_limit,
    )


def _gives_parts(keys: ResourcesKeys) -> bool:
    """Whether something else than whole GPUs is asked for, of one GPU unless more are named."""
    return any(each is not None for each in (keys.mig, keys.gpu_portion, keys.gpu_memory))


def _toleration(keys: TolerationKeys) -> Toleration:
    return Toleration(
        key=keys.taint_key or "",
        operator=keys.operator,
        value=keys.value,
        effect=keys.effect,
        seconds=keys.seconds,
    )


def _affinity(keys: AffinityKeys) -> Affinity:
    return Affinity(
        required=tuple(map(_term, keys.required)),
        preferred=tuple(PreferredTerm(weight=each.weight, all=_term(each.all)) for each in keys.preferred),
    )


def _term(keys: Sequence[LabelExpressionKeys]) -> tuple[LabelExpression, ...]:
    return tuple(LabelExpression(key=each.label, operator=each.operator, values=tuple(each.values)) for each in keys)


def _security(keys: SecurityKeys) -> Security:
    return Security(
        capabilities=tuple(sorted(keys.capabilities)),
        privileged=keys.privileged,
        gain_privileges=keys.gain_privileges,
        image_user=keys.image_user,
        pids=keys.pids,
    )


def _content(file: FileKeys, base: pathlib.Path | None) -> bytes:
    if file.source is not None:
        return read_beside(file.source, base)
    return file.content_base64 if file.content_base64 is not None else (file.content or "").encode()


def read_beside(source: str, base: pathlib.Path | None) -> bytes:
    """The content of a file beside the job file, as much of it as a job may have."""
    if base is None:
        raise FieldError("cannot be read here; give the content instead")
    path = base / source
    name = quote(str(path), most=4096)
    try:
        if not path.is_file():
            raise FieldError(f"{name} is {'not a plain file' if path.exists() else 'not there'}")
        with path.open("rb") as stream:
            return stream.read(MAX_FILES_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, FieldError):
            raise
        raise FieldError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error
