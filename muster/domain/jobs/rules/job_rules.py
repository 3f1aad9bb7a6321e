"""What a valid job is: the one rule book. Job files, the wire and the SDK all ask it, so that they agree.

`faults` looks at a whole job. What one value may be, with every pattern and limit, is in `job_values`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from muster.domain.errors import InvalidJobError
from muster.domain.fault import Fault, Path, spell
from muster.domain.jobs.job import MOST_PIDS, JobSpec, Network, PullPolicy, Resources, Role, Timeouts
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.restart import MOST_RESTARTS, RestartPolicy
from muster.domain.jobs.rules import job_values as values
from muster.domain.jobs.rules.data.checkpoint_rules import checkpoint_faults
from muster.domain.jobs.rules.data.code_rules import code_faults
from muster.domain.jobs.rules.data.input_rules import input_faults
from muster.domain.jobs.rules.data.output_rules import output_faults
from muster.domain.jobs.rules.data.volume_rules import volume_faults
from muster.domain.jobs.rules.dialect_rules import dialect_faults
from muster.domain.jobs.rules.framework_rules import framework_faults
from muster.domain.jobs.rules.interactive_rules import interactive_faults
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.jobs.rules.placeholder_rules import placeholder_faults
from muster.domain.jobs.rules.placing_rules import placing_faults
from muster.domain.jobs.rules.portion_rules import portion_faults
from muster.domain.jobs.rules.telling import told
from muster.domain.jobs.secret_use import SECRETS_DIRECTORY, SecretUse
from muster.domain.jobs.size import too_much_to_share
from muster.domain.quantity import format_cpus, format_duration, format_memory
from muster.domain.quoting import nearest, quote

MAX_FILES_BYTES = 2**20
"""Most bytes of all files of all roles; larger things belong in the image or on a mount."""
MAX_HOST_NAME = 63
"""Characters of a DNS label."""
ONLY_WITH_IMAGE = ("pull", "entrypoint", "user", "mounts", "ulimits")
"""Keys of a role that only containers have."""
MOST_TOLD = 10
"""Faults that an error names; a hostile job could have very many."""


def faults(spec: JobSpec) -> Iterator[Fault]:
    """Everything that is wrong with a job, from its name to its last role; nothing for a valid one.

    Its size is looked at last, and only where all its values are right.
    """
    right = True
    for fault in _in_values(spec):
        right = False
        yield fault
    if right and (too_much := too_much_to_share(spec)) is not None:
        yield Fault(path=("roles",), message=too_much)


def _in_values(spec: JobSpec) -> Iterator[Fault]:
    yield from told(("name",), values.label(spec.name))
    if spec.project:
        yield from told(("project",), values.label(spec.project))
    yield from told(("labels",), values.label_count(len(spec.labels)))
    for name, value in spec.labels.items():
        yield from told(("labels", name), values.node_label(name) or values.job_label(value))
    yield from told(("priority",), values.number(spec.priority, -values.MAX_PRIORITY, values.MAX_PRIORITY))
    if spec.max_per_node is not None:
        yield from told(("max_per_node",), values.number(spec.max_per_node, 1, values.MAX_EXECUTIONS))
    for name, value in spec.node_labels.items():
        yield from told(("node_labels", name), values.node_label(name) or values.name_like(value))
    if spec.not_before is not None:
        yield from told(("not_before",), values.moment(spec.not_before))
    if spec.delete_after is not None:
        yield from told(("delete_after",), values.duration(spec.delete_after))
    yield from _timeouts(spec.timeouts)
    yield from _restarts(spec.restarts)
    yield from _roles(spec)
    yield from placing_faults(spec)
    yield from interactive_faults(spec)
    if spec.framework is not None:
        yield from framework_faults(spec, spec.framework)
    if spec.dialects:
        yield from dialect_faults(spec)


def refuse_faults(spec: JobSpec) -> JobSpec:
    """The job, if it is valid; raises InvalidJobError with its first faults."""
    found = list(faults(spec))
    if not found:
        return spec
    more = f"\nand {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
    raise InvalidJobError.of("\n".join(map(str, found[:MOST_TOLD])) + more, found)


def _in_role(spec: JobSpec, number: int) -> Iterator[Fault]:
    """What is wrong with one role, by itself and together with what the job says for all."""
    role, where = spec.roles[number], ("roles", number)
    for fault in (
        *_words(role),
        *_needs(role),
        *_places(role),
        *code_faults(role),
        *_secrets(role),
        *_data(spec, role),
    ):
        yield replace(fault, path=(*where, *fault.path))
    if role.image is None:
        yield from _without_image(spec, number)


def _roles(spec: JobSpec) -> Iterator[Fault]:
    if not spec.roles:
        yield Fault(path=("roles",), message="is empty; leave it out, or name at least one role")
        return
    yield from _differ(
        "the role name", ((("roles", place), "name", role.name) for place, role in enumerate(spec.roles))
    )
    for number in range(len(spec.roles)):
        yield from _in_role(spec, number)
        if spec.roles[number].expand:
            yield from placeholder_faults(spec, number)
    if len(spec.roles) > 1 and (size := spec.size) > values.MAX_EXECUTIONS:
        message = f"has {size} executions; a job has at most {values.MAX_EXECUTIONS}"
        yield Fault(path=("roles",), message=message)
    yield from _files(spec)
    yield from _success(spec)


def _success(spec: JobSpec) -> Iterator[Fault]:
    names = [role.name for role in spec.roles]
    for number, name in enumerate(names):
        if name in set(SuccessRule):
            message = f"cannot be {quote(name)}, which means something else in success"
            yield Fault(path=("roles", number, "name"), message=message)
    if spec.success is not None and spec.success not in {*SuccessRule, *names}:
        message = f"must be {', '.join(SuccessRule)} or the name of a role, not {quote(str(spec.success))}"
        yield Fault(path=("success",), message=message, suggestion=nearest(spec.success, (*SuccessRule, *names)))


def _words(role: Role) -> Iterator[Fault]:
    """What a role is called and runs."""
    yield from told(("name",), values.label(role.name))
    yield from told(("count",), values.number(role.count, 1, values.MAX_EXECUTIONS))
    if len(f"{role.name}-{role.count - 1}") > MAX_HOST_NAME:
        yield Fault(path=("name",), message=f"makes host names longer than {MAX_HOST_NAME} characters")
    if role.image is not None:
        yield from told(("image",), values.image(role.image))
    if isinstance(role.command, str):
        yield Fault(path=("command",), message="must be a list of words, not one text")
    elif role.command and isinstance(role.command[0], str) and not role.command[0].strip():
        yield Fault(path=("command",), message="begins with an empty word; the first word is the program")
    else:
        yield from told(("command",), _first(map(values.word, role.command)))
    if role.exit_codes.restart is not None:
        yield from told(("exit_codes", "restart"), values.exit_codes(role.exit_codes.restart))
    yield from told(("exit_codes", "fail"), values.exit_codes(role.exit_codes.fail))
    yield from told(("entrypoint",), _first(map(values.word, role.entrypoint or ())))
    for name, value in role.env.items():
        yield from told(("env", name), values.env_name(name) or values.variable(name, value))
    if role.workdir is not None:
        yield from told(("workdir",), values.absolute(role.workdir))
    if role.user is not None:
        yield from told(("user",), values.user(role.user))
        if role.security.image_user:
            message = "stands beside user; only one of them can say who runs"
            yield Fault(path=("security", "image_user"), message=message)


def _data(spec: JobSpec, role: Role) -> Iterator[Fault]:
    """Volumes, inputs, outputs and checkpoints of a role."""
    yield from volume_faults(role)
    yield from input_faults(role)
    yield from output_faults(spec, role)
    yield from checkpoint_faults(role)


def _first(found: Iterable[Wrong | None]) -> Wrong | None:
    return next(filter(None, found), None)


def _needs(role: Role) -> Iterator[Fault]:
    """What a role reserves, and what its containers may do."""
    yield from _resources(role.resources)
    for number, name in enumerate(role.security.capabilities):
        yield from told(("security", "capabilities", number), values.capability(name))
    capabilities = role.security.capabilities
    named = ((("security", "capabilities", place), None, name) for place, name in enumerate(capabilities))
    yield from _differ("the capability", named)
    if role.security.pids is not None:
        yield from told(("security", "pids"), values.number(role.security.pids, 1, MOST_PIDS))
    for limit in role.ulimits:
        path = ("ulimits", limit.name)
        yield from told(path, values.ulimit_name(limit.name))
        soft, hard = values.ulimit(limit.soft), values.ulimit(limit.hard)
        yield from told((*path, "soft"), soft)
        yield from told((*path, "hard"), hard)
        if not soft and not hard:
            yield from told(path, values.ulimit_order(limit.soft, limit.hard))
    yield from _differ("the limit", ((("ulimits", limit.name), None, limit.name) for limit in role.ulimits))


def _resources(resources: Resources) -> Iterator[Fault]:
    yield from told(("resources", "gpus"), values.number(resources.gpus, 0, values.MAX_GPUS))
    if resources.gpu_model is not None:
        yield from told(("resources", "gpu_model"), values.filled(resources.gpu_model))
    if resources.mig is not None:
        yield from told(("resources", "mig"), values.mig(resources.mig))
        if not resources.gpus:
            yield Fault(path=("resources", "gpus"), message="is how many MIG devices it gets, so it must be at least 1")
    yield from portion_faults(resources)
    yield from told(("resources", "cpus"), values.cpus(resources.cpu_millis))
    if resources.memory is not None:
        yield from told(("resources", "memory"), values.memory(resources.memory))
    if resources.shm is not None:
        yield from told(("resources", "shm"), values.memory(resources.shm, values.MIN_SHM))
    if resources.disk is not None:
        yield from told(("resources", "disk"), values.memory(resources.disk, values.MIN_SHM))
    yield from _caps(resources)


def _caps(resources: Resources) -> Iterator[Fault]:
    """The most that an execution gets; what is reserved for it, it may use."""
    if resources.cpu_limit is not None:
        path, wrong = ("resources", "cpu_limit"), values.cpu_limit(resources.cpu_limit)
        yield from told(path, wrong)
        if not wrong and resources.cpu_limit < resources.cpu_millis:
            reserved = format_cpus(resources.cpu_millis)
            message = f"is {format_cpus(resources.cpu_limit)}, less than the CPUs that are reserved (cpus: {reserved})"
            yield Fault(path=path, message=message)
    if resources.memory_limit:
        path, wrong = ("resources", "memory_limit"), values.memory(resources.memory_limit)
        yield from told(path, wrong)
        if not wrong and resources.memory_limit < (resources.memory or 0):
            reserved, limit = format_memory(resources.memory or 0), format_memory(resources.memory_limit)
            yield Fault(path=path, message=f"is {limit}, less than what is reserved (memory: {reserved})")


def _places(role: Role) -> Iterator[Fault]:
    """Ports, mounts and files, each of which has a place of its own."""
    for number, port in enumerate(role.ports):
        yield from told(("ports", number, "name"), values.port_name(port.name))
        if port.port is not None:
            yield from told(("ports", number, "port"), values.number(port.port, 1, values.MAX_PORT))
    ports = [(("ports", place), port) for place, port in enumerate(role.ports)]
    yield from _differ("the port name", ((where, "name", port.name) for where, port in ports))
    yield from _differ("the port number", ((where, "port", str(port.port)) for where, port in ports if port.port))
    for number, mount in enumerate(role.mounts):
        where = ("mounts", number)
        source, target = values.absolute(mount.source), values.absolute(mount.target)
        yield from told((*where, "source"), source)
        yield from told((*where, "target"), target)
        if not target:
            yield from told(where, values.mount_target(mount.target))
    targets = ((("mounts", place), "target", mount.target.rstrip("/")) for place, mount in enumerate(role.mounts))
    yield from _differ("the target", targets)
    for number, file in enumerate(role.files):
        yield from told(("files", number, "path"), values.file_path(file.path))
    yield from _differ("the path", ((("files", place), "path", file.path) for place, file in enumerate(role.files)))


def _files(spec: JobSpec) -> Iterator[Fault]:
    left = MAX_FILES_BYTES
    for place, role in enumerate(spec.roles):
        for number, file in enumerate(role.files):
            left -= len(file.content)
            if left < 0:
                message = f"makes the files of the job larger than {MAX_FILES_BYTES // 2**10} KiB in all"
                yield Fault(path=("roles", place, "files", number), message=message)
                return


def _secrets(role: Role) -> Iterator[Fault]:
    uses = role.secrets
    yield from told(("secrets",), values.secret_count(len(uses)))
    for number, use in enumerate(uses):
        yield from _secret(role, use, ("secrets", number))
    places = [(("secrets", place), use) for place, use in enumerate(uses)]
    yield from _differ("the secret", ((where, "secret", use.secret) for where, use in places))
    once = {use.secret: (where, use) for where, use in reversed(places)}  # the same again has the same directory, too
    placed = ((where, "directory", use.directory) for where, use in reversed(once.values()) if use.directory)
    yield from _differ("the directory", placed)
    yield from _differ("the variable", ((where, "env", variable) for where, use in places for variable in use.env))


def _secret(role: Role, use: SecretUse, where: Path) -> Iterator[Fault]:
    yield from told((*where, "secret"), values.label(use.secret))
    for name, key in use.env.items():
        yield from told((*where, "env"), values.env_name(name) or values.secret_key(name, key))
    if use.env and use.standard_env:
        message = "names variables where standard_env asks for the usual ones"
        yield Fault(path=(*where, "env"), message=message)
    if use.directory is not None and (wrong := values.secret_directory(use.directory)):
        yield from told((*where, "directory"), wrong)
    elif conflict := _conflict(role, use):
        yield Fault(path=where, message=conflict)


def _conflict(role: Role, use: SecretUse) -> str | None:
    """Why a role with these variables and mounts cannot have a secret so; None: it can."""
    if twice := sorted(role.env.keys() & use.env.keys()):
        return f"sets {twice[0]}, which env sets, too"
    if use.directory is None:
        return None
    if role.image is None and use.directory != f"{SECRETS_DIRECTORY}/{use.secret}":
        return "has a directory of its own, which needs an image: a plain process finds it by MUSTER_SECRETS_DIR"
    own = PurePosixPath(use.directory)
    for target in (PurePosixPath(mount.target) for mount in role.mounts):
        if own.is_relative_to(target) or target.is_relative_to(own):
            return f"lies at {own}, which the mount at {target} covers"
    return None


def needs_image(spec: JobSpec, number: int, keys: Iterable[Path]) -> Iterator[Fault]:
    """A fault for each of these keys of a role that has no image."""
    of_role = _of_role(spec, spec.roles[number])
    for path in keys:
        message = f"needs an image: a plain process cannot have it{of_role}"
        yield Fault(path=("roles", number, *path), message=message)


def _without_image(spec: JobSpec, number: int) -> Iterator[Fault]:
    """What a plain process lacks, and what it cannot have."""
    role = spec.roles[number]
    if not role.command and spec.interactive is None:
        message = "is missing: without an image there is nothing to run"
        yield Fault(path=("roles", number, "command"), message=message)
    if spec.network is Network.BRIDGE:
        yield Fault(path=("network",), message=f"bridge needs an image{_of_role(spec, role)}")
    yield from needs_image(spec, number, [path for path, said in _of_containers(role) if said])


def _of_role(spec: JobSpec, role: Role) -> str:
    return "" if [each.name for each in spec.roles] == [Role().name] else f"; role {role.name} has none"


def _of_containers(role: Role) -> tuple[tuple[Path, bool], ...]:
    """Keys that only containers have, and whether the role says anything by them."""
    return (
        (("pull",), role.pull is not PullPolicy.MISSING),
        (("entrypoint",), role.entrypoint is not None),
        (("user",), role.user is not None),
        (("mounts",), bool(role.mounts)),
        (("ulimits",), bool(role.ulimits)),
        (("security", "capabilities"), bool(role.security.capabilities)),
        (("security", "privileged"), role.security.privileged),
        (("security", "gain_privileges"), role.security.gain_privileges),
        (("security", "image_user"), role.security.image_user),
        (("resources", "shm"), role.resources.shm is not None),
    )


def _timeouts(timeouts: Timeouts) -> Iterator[Fault]:
    yield from told(("timeouts", "check_in"), values.duration(timeouts.check_in))
    yield from told(("timeouts", "fetch"), values.duration(timeouts.fetch))
    yield from told(("timeouts", "stall"), values.duration(timeouts.stall))
    yield from told(("timeouts", "store"), values.duration(timeouts.store))
    yield from told(("timeouts", "grace"), values.duration(timeouts.grace))
    if timeouts.run is not None:
        yield from told(("timeouts", "run"), values.duration(timeouts.run))
    if timeouts.queue is not None:
        yield from told(("timeouts", "queue"), values.duration(timeouts.queue))
    if timeouts.expected is not None:
        path, wrong = ("timeouts", "expected"), values.duration(timeouts.expected)
        yield from told(path, wrong)
        if not wrong and timeouts.run is not None and timeouts.expected > timeouts.run:
            message = f"is longer than the job may run (timeouts.run: {format_duration(timeouts.run)})"
            yield Fault(path=path, message=message)
    yield from told(("timeouts", "lost_after"), values.lost_after(timeouts.lost_after))
    if timeouts.preempt is not None:
        yield from told(("timeouts", "preempt"), values.preempt(timeouts.preempt))
    if timeouts.idle is not None:
        yield from told(("timeouts", "idle"), values.idle(timeouts.idle))


def _restarts(policy: RestartPolicy) -> Iterator[Fault]:
    yield from told(("restarts", "limit"), values.number(policy.limit, 0, MOST_RESTARTS))
    yield from told(("restarts", "infrastructure"), values.number(policy.infrastructure, 0, MOST_RESTARTS))
    yield from told(("restarts", "backoff"), values.backoff(policy.backoff))


def _differ(what: str, entries: Iterable[tuple[Path, str | None, str]]) -> Iterator[Fault]:
    """A fault at each value that an entry before it has, too; of each entry come its path, the key and the value."""
    first: dict[str, Path] = {}
    for path, key, value in entries:
        if value in first:
            where = path if key is None else (*path, key)
            yield Fault(path=where, message=values.twice(what, value, spell(first[value])).message)
        first.setdefault(value, path)
