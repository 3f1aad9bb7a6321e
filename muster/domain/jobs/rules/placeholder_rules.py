"""Which placeholders a role may have that says `expand`; all names are known when the job is read."""

from collections.abc import Iterator

from muster.domain.fault import Fault
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.placeholders import ALONE, WITH_EXECUTION, WITH_PORT, placeholder_names, written
from muster.domain.jobs.ports import MASTER_PORT_NAME
from muster.domain.quoting import nearest, quote

Path = tuple[str | int, ...]


def placeholder_faults(spec: JobSpec, number: int) -> Iterator[Fault]:
    """Placeholders of a role that nothing can be put in place of; of each key the first."""
    role = spec.roles[number]
    for key, texts in _texts(role):
        path = ("roles", number, *key)
        names = (name for text in texts for name in placeholder_names(text))
        fault = next(filter(None, (_fault(spec, role, path, name) for name in names)), None)
        if fault is not None:
            yield fault


def _texts(role: Role) -> Iterator[tuple[Path, list[str]]]:
    """Everything that is replaced in, by the key in which it stands."""
    yield ("entrypoint",), [word for word in role.entrypoint or () if isinstance(word, str)]
    yield ("command",), [word for word in role.command if isinstance(word, str)]
    for name, value in role.env.items():
        yield ("env", name), [value] if isinstance(value, str) else []
    for place, file in enumerate(role.files):
        yield ("files", place), [file.content.decode(errors="ignore")] if file.is_text else []


def _fault(spec: JobSpec, role: Role, path: Path, name: str) -> Fault | None:
    """What is wrong with a placeholder; None: nothing."""
    wrong: str | None = None
    meant: str | None = None
    match name.split(":"):
        case [word] if word in ALONE:
            pass
        case [word, execution] if word in WITH_EXECUTION:
            wrong = None if _role_of(spec, execution) else f"the job has no execution {quote(execution)}"
        case [word, port] if word == WITH_PORT:
            wrong = None if port in _ports(role) else f"{role.name} has no port {quote(port)}"
        case [word, execution, port] if word == WITH_PORT:
            wrong = _wrong_port(spec, execution, port)
        case [word, *_]:
            meant = nearest(word, {*ALONE, *WITH_EXECUTION, WITH_PORT})
            wrong = "is no placeholder"
    if wrong is None:
        return None
    return Fault(path=path, message=f"{quote(written(name))}: {wrong}", suggestion=meant and written(meant))


def _wrong_port(spec: JobSpec, execution: str, port: str) -> str | None:
    """What is wrong with the port of an execution; rank 0 always has the master port."""
    role = _role_of(spec, execution)
    if role is None:
        return f"the job has no execution {quote(execution)}"
    first = execution == f"{spec.roles[0].name}-0" and port == MASTER_PORT_NAME
    return None if first or port in _ports(role) else f"{execution} has no port {quote(port)}"


def _ports(role: Role) -> set[str]:
    return {request.name for request in role.ports}


def _role_of(spec: JobSpec, execution: str) -> Role | None:
    """The role that an execution is one of; None: the job has no such execution."""
    stem, _, number = execution.rpartition("-")
    for role in spec.roles:
        if role.name == stem and number.isascii() and number.isdigit() and int(number) < role.count:
            return role if number == str(int(number)) else None
    return None
