"""From checked keys to a `JobSpec`: role defaults applied, files read, and the rules that take several keys."""

from collections.abc import Iterator
from pathlib import Path

from muster.domain.job import (
    InlineFile,
    JobSpec,
    Mount,
    Network,
    PortRequest,
    Resources,
    Role,
    Security,
    Timeouts,
    Ulimit,
)
from muster.domain.job_size import too_much_to_share
from muster.domain.restart import ExitCodes, RestartPolicy
from muster.domain.secret_use import SecretUse
from muster.spec.document import Loc
from muster.spec.errors import FieldError, quote
from muster.spec.models import (
    FileKeys,
    JobKeys,
    ResourcesKeys,
    RestartsKeys,
    RoleDefaults,
    RoleKeys,
    TimeoutsKeys,
)
from muster.spec.plain import MAX_EXECUTIONS
from muster.spec.secret_keys import conflict
from muster.spec.section import SecurityKeys

MAX_FILES_BYTES = 2**20
"""Of all files of all roles; larger things belong in the image or on a mount."""
MAX_HOST_NAME = 63
"""Characters of a DNS label."""

_ONLY_WITH_IMAGE = ("pull", "entrypoint", "user", "mounts", "ulimits")
_MERGED = ("env", "ulimits")
"""Maps whose keys a role adds to those of the job; any other key of a role replaces the job's."""


class Builder:
    """Builds one job and gathers what is wrong with it in `findings`."""

    def __init__(self, job: JobKeys, base: Path | None) -> None:
        self._job = job
        self._base = base
        self._left = MAX_FILES_BYTES
        self._said: set[tuple[Loc, str]] = set()
        self.findings: list[tuple[Loc, FieldError]] = []

    def spec(self) -> JobSpec:
        """The job; it is to be used only if there are no findings."""
        job = self._job
        roles = tuple(self._roles())
        self._check_size()
        spec = JobSpec(
            name=job.name,
            roles=roles,
            network=job.network,
            success=job.success,
            priority=job.priority,
            project=job.project,
            packing=job.placement,
            max_per_node=job.max_per_node,
            node_labels=dict(job.node_labels),
            timeouts=_timeouts(job.timeouts),
            restarts=_restarts(job.restarts),
            on_disconnect=job.on_disconnect,
        )
        if (problem := too_much_to_share(spec)) is not None:
            self._find(("roles",) if job.roles is not None else ("files",), problem)
        return spec

    def _roles(self) -> Iterator[Role]:
        job = self._job
        if job.roles is None:
            yield self._role(_Layered(job, None, 0), Role().name, job.workers)
            return
        if "workers" in job.model_fields_set:
            self._find(("workers",), "stands beside roles; give each role its count instead")
        for place, keys in enumerate(job.roles):
            yield self._role(_Layered(job, keys, place), keys.name, keys.count)

    def _role(self, keys: "_Layered", name: str, count: int) -> Role:
        self._check_image(keys, name)
        self._check_user(keys)
        if len(f"{name}-{count - 1}") > MAX_HOST_NAME:
            self._find(keys.where("name"), f"makes host names longer than {MAX_HOST_NAME} characters")
        effective = keys.effective
        return Role(
            name=name,
            count=count,
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
            ulimits=tuple(
                Ulimit(name=key, soft=it.soft, hard=it.hard) for key, it in sorted(effective.ulimits.items())
            ),
            files=tuple(self._files(keys)),
            secrets=tuple(self._secrets(keys)),
            security=_security(effective.security),
        )

    def _check_image(self, keys: "_Layered", name: str) -> None:
        if keys.effective.image is not None:
            return
        of_role = "" if self._job.roles is None else f"; role {name} has none"
        if not keys.effective.command:
            self._find((*keys.own, "command"), "is missing: without an image there is nothing to run")
        if self._job.network is Network.BRIDGE:
            self._find(("network",), f"bridge needs an image{of_role}")
        for key in _ONLY_WITH_IMAGE:
            if keys.written(key):
                self._find(keys.where(key), f"needs an image: a plain process cannot have it{of_role}")
        security = keys.effective.security
        for key in SecurityKeys.model_fields:
            if key != "pids" and getattr(security, key) != SecurityKeys.model_fields[key].get_default():
                self._find(keys.where("security", key), f"needs an image: a plain process cannot have it{of_role}")
        if keys.effective.resources.shm is not None:
            self._find(keys.where("resources", "shm"), f"needs an image: a plain process cannot have it{of_role}")

    def _check_user(self, keys: "_Layered") -> None:
        if keys.effective.user is not None and keys.effective.security.image_user:
            self._find(keys.where("security", "image_user"), "stands beside user; only one of them can say who runs")

    def _check_size(self) -> None:
        roles = self._job.roles or []
        if (size := sum(role.count for role in roles)) > MAX_EXECUTIONS:
            self._find(("roles",), f"has {size} executions; a job has at most {MAX_EXECUTIONS}")

    def _files(self, keys: "_Layered") -> Iterator[InlineFile]:
        for place, file in enumerate(keys.effective.files):
            where = (*keys.where("files"), place)
            try:
                content = _content(file, self._base)
            except FieldError as error:
                self.findings.append(((*where, "source"), error))
                continue
            self._left -= len(content)
            if self._left < 0:
                self._find(where, f"makes the files of the job larger than {MAX_FILES_BYTES // 2**10} KiB in all")
                return
            yield InlineFile(path=file.path, content=content, executable=file.executable)

    def _secrets(self, keys: "_Layered") -> Iterator[SecretUse]:
        role = keys.effective
        variables, targets = frozenset(role.env), [mount.target for mount in role.mounts]
        for place, secret in enumerate(role.secrets):
            problem = conflict(secret.use, variables, targets, contained=role.image is not None)
            if problem is not None:
                self._find((*keys.where("secrets"), place), problem)
            yield secret.use

    def _find(self, loc: Loc, message: str) -> None:
        if (loc, message) not in self._said:
            self._said.add((loc, message))
            self.findings.append((loc, FieldError(message)))


class _Layered:
    """The keys of a role over those of the job, and where each of them was written."""

    def __init__(self, job: JobKeys, role: RoleKeys | None, place: int) -> None:
        self._job = job
        self._role = role
        self.own: Loc = () if role is None else ("roles", place)
        """Where the role is described."""
        self.effective: RoleDefaults = job if role is None else _over(job, role)

    def written(self, key: str) -> bool:
        """Whether the key stands in the file, for the role or for the job."""
        return key in self._job.model_fields_set or (self._role is not None and key in self._role.model_fields_set)

    def where(self, key: str, inner: str | None = None) -> Loc:
        """Where the key was written that counts, or the key inside it."""
        found: Loc = (*self.own, key) if self._of_role(key, inner) else (key,)
        return found if inner is None else (*found, inner)

    def _of_role(self, key: str, inner: str | None) -> bool:
        if self._role is None or key not in self._role.model_fields_set:
            return False
        return inner is None or inner in getattr(self._role, key).model_fields_set


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
    return Timeouts(check_in=keys.check_in, grace=keys.grace, run=keys.run, lost_after=keys.lost_after)


def _restarts(keys: RestartsKeys | None) -> RestartPolicy:
    if keys is None:
        return RestartPolicy()
    return RestartPolicy(
        limit=keys.limit,
        infrastructure=keys.infrastructure,
        backoff=keys.backoff,
        restart_on=keys.restart_on,
        fail_on=keys.fail_on or ExitCodes(),
    )


def _resources(keys: ResourcesKeys) -> Resources:
    return Resources(
        gpus=keys.gpus,
        gpu_model=keys.gpu_model,
        cpu_millis=keys.cpus,
        memory=keys.memory,
        shm=keys.shm,
    )


def _security(keys: SecurityKeys) -> Security:
    return Security(
        capabilities=tuple(sorted(keys.capabilities)),
        privileged=keys.privileged,
        gain_privileges=keys.gain_privileges,
        image_user=keys.image_user,
        pids=keys.pids,
    )


def _content(file: FileKeys, base: Path | None) -> bytes:
    if file.source is not None:
        return _read(file.source, base)
    return file.content_base64 if file.content_base64 is not None else (file.content or "").encode()


def _read(source: str, base: Path | None) -> bytes:
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
