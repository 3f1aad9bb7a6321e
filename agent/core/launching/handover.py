"""What the secrets that came for an execution become: variables, files, what is masked, who is let in at a registry."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.domain.fleet.secret import KEY_RULES, DeliveredSecret, Handover, SecretKind
from muster.domain.gangs.plan import Launch
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import serves
from muster.domain.jobs.job import Role
from muster.domain.jobs.secret_use import SECRETS_DIRECTORY, SecretUse

_RESERVED = (
    "/muster/config",
    "/muster/outputs",
    "/muster/status",
    "/muster/home",
    "/muster/secret-env",
    "/proc",
    "/sys",
    "/dev",
)
"""Where a container finds something else; what lies below them is not free either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryLogin:
    """Credentials with which a registry lets images be pulled."""

    username: str
    password: str = field(repr=False)


def handover(role: Role, delivered: Sequence[DeliveredSecret]) -> Handover:
    """What a role's executions find of these secrets; raises ExecutionError where one is not as the role needs it."""
    known = {secret.name: secret for secret in delivered}
    env: dict[str, bytes] = {}
    files: dict[str, Mapping[str, bytes]] = {}
    for use in role.secrets:
        if use.secret not in known:
            raise ExecutionError(FailureKind.INVALID_OPTION, f"secrets: the coordinator sent no secret {use.secret}")
        values = known[use.secret].values
        env |= {variable: _value(use, key, values) for variable, key in use.env.items()}
        if use.directory is not None:
            files[_free(use.directory, files)] = values
    masked = tuple(value for use in role.secrets for value in _hidden(known[use.secret]))
    return Handover(env=env, files=files, masked=masked)


def directory_name(directory: str, number: int) -> str:
    """What a directory of secrets is called outside of containers: as inside, where it lies at the usual place."""
    parent, _, name = directory.rpartition("/")
    return name if parent == SECRETS_DIRECTORY else f"@{number}"


def without_clashes(secrets: Handover, role: Role, launch: Launch) -> Handover:
    """The secrets that an execution gets. They outweigh the job file's variables, but never what tells an execution
    who it is.
    """
    ours = launch.env.keys() - role.env.keys()
    return replace(secrets, env={name: value for name, value in secrets.env.items() if name not in ours})


def login(image: str, delivered: Sequence[DeliveredSecret]) -> RegistryLogin | None:
    """The credentials for the registry of an image, of several those for the longest path; None: there are none."""
    fitting = [
        secret.values
        for secret in delivered
        if secret.kind is SecretKind.REGISTRY and serves(_text(secret.values, "server"), image)
    ]
    if not fitting:
        return None
    best = max(fitting, key=lambda values: len(_text(values, "server")))
    return RegistryLogin(username=_text(best, "username"), password=_text(best, "password"))


def _value(use: SecretUse, key: str, values: Mapping[str, bytes]) -> bytes:
    if key not in values:
        message = f"secrets: the secret {use.secret} has no key {key!r} (any more)"
        raise ExecutionError(FailureKind.INVALID_OPTION, message)
    if b"\0" in values[key]:
        message = f"secrets: {key!r} of {use.secret} has a zero byte and can be no variable; let it be a file"
        raise ExecutionError(FailureKind.INVALID_OPTION, message)
    return values[key]


def _free(directory: str, taken: Container[str]) -> str:
    """The directory, unless it would hide something else that a container needs."""
    reserved = any(f"{directory}/".startswith(f"{each}/") for each in _RESERVED) or directory in taken
    root, *parts = directory.split("/")
    if reserved or root or directory == "/muster" or {"", ".", ".."} & set(parts):
        raise ExecutionError(FailureKind.INVALID_OPTION, f"secrets: {directory} is not free for secrets")
    return directory


def _hidden(secret: DeliveredSecret) -> list[bytes]:
    shown = KEY_RULES[secret.kind].shown
    return [value for key, value in secret.values.items() if key not in shown]


def _text(values: Mapping[str, bytes], key: str) -> str:
    return values.get(key, b"").decode(errors="replace").rstrip("\r\n")
