"""The map that says which secret executions get, and how; never a value of it."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from muster.domain.secret_use import KEY_FORM, MAX_USES, NAME_FORM, ONLY_KEY, SECRETS_DIRECTORY, SecretUse
from muster.spec import fields
from muster.spec.document import Scalar
from muster.spec.errors import FieldError, quote
from muster.spec.fields import given, verbatim
from muster.spec.section import Section, key, refuse_twice


@dataclass(frozen=True, slots=True)
class Variables:
    """What `env` of a secret says: key by variable, or the variables that are usual for the secret's kind."""

    keys: tuple[tuple[str, str], ...] = ()
    usual: bool = False


def _variables(value: object) -> Variables | None:
    if value is None or isinstance(value, Variables):
        return value
    if isinstance(value, dict):
        return Variables(tuple((fields.check_env_name(name), _key_of(name, key)) for name, key in value.items()))
    if isinstance(value, Scalar) and isinstance(value.value, bool):
        if not value.value:
            raise FieldError("must be true, the name of a variable, or a map of variable: key; leave it out for none")
        return Variables(usual=True)
    return Variables(((fields.check_env_name(value), ONLY_KEY),))


def _key_of(variable: str, value: object) -> str:
    text = verbatim(value)
    if text == ONLY_KEY or re.fullmatch(KEY_FORM, text):
        return text
    raise FieldError(f"takes for {variable} a key of the secret: letters, digits and ._-, not {quote(text)}")


def _directory(value: object) -> str:
    text = fields.check_absolute(value)
    path = PurePosixPath(text)
    own = path.is_relative_to(fields.OWN_DIRECTORY)
    if path == PurePosixPath("/"):
        raise FieldError("cannot be the whole container; name a directory below /")
    if any(path.is_relative_to(each) for each in _SYSTEM):
        raise FieldError(f"{quote(text)} is the system's own; name another directory")
    if own and path.parent != PurePosixPath(SECRETS_DIRECTORY):
        raise FieldError(f"{quote(text)} is in {fields.OWN_DIRECTORY}, which Muster fills itself")
    return str(path)


_SYSTEM = ("/proc", "/sys", "/dev")
_KEY_SCHEMA = {"type": "string", "pattern": f"^({KEY_FORM})?$"}
_VARIABLES_SCHEMA = {
    "anyOf": [
        {"const": True},
        {"type": "string", "pattern": f"^{fields.ENV_NAME}$"},
        {"type": "object", "propertyNames": {"pattern": f"^{fields.ENV_NAME}$"}, "additionalProperties": _KEY_SCHEMA},
    ]
}
VariablesForm: TypeAlias = Annotated[Variables | None, PlainValidator(_variables), WithJsonSchema(_VARIABLES_SCHEMA)]
Directory = Annotated[str, BeforeValidator(_directory), WithJsonSchema({"type": "string", "pattern": "^/.*$"})]


class SecretKeys(Section):
    """A secret of the job's project that each execution gets; short: its name, for files below `/muster/secrets`."""

    secret: fields.Label = key("word", "Its name in the project (`muster secrets list`).", default=...)
    env: VariablesForm = key(
        "variable, map of variable: key, or `true`",
        "Variables that hold its values. One name is enough for a secret with one key; `true` sets what is usual for "
        "its kind, see docs/secrets.md.",
    )
    directory: Directory | None = key(
        "absolute path",
        f"Where a file for each key lies, in memory (without `env`: `{SECRETS_DIRECTORY}/SECRET`). A plain process "
        "finds that directory by `MUSTER_SECRETS_DIR`, and has no other.",
    )

    @property
    def use(self) -> SecretUse:
        """What it comes to."""
        said = self.env or Variables()
        files = SECRETS_DIRECTORY + f"/{self.secret}" if self.env is None else None
        return SecretUse(
            secret=self.secret, env=dict(said.keys), directory=self.directory or files, standard_env=said.usual
        )


def secret_form(value: object) -> object:
    """The map for a bare name."""
    if not isinstance(value, Scalar):
        return value
    return {"secret": Scalar(value=given(value).text, text=given(value).text, at=value.at)}


SHORT_SECRET = {"type": "string", "pattern": f"^{NAME_FORM}$"}


def secrets_differ(secrets: list[SecretKeys]) -> list[SecretKeys]:
    """The list, if it names and fills nothing twice."""
    if len(secrets) > MAX_USES:
        raise FieldError(f"has {len(secrets)} secrets; {MAX_USES} are the most")
    uses = [each.use for each in secrets]
    refuse_twice("the secret", [use.secret for use in uses])
    refuse_twice("the directory", [use.directory for use in uses if use.directory])
    refuse_twice("the variable", [variable for use in uses for variable in use.env])
    return secrets


def conflict(use: SecretUse, env: frozenset[str], targets: list[str], *, contained: bool) -> str | None:
    """Why a role with these variables and mounts cannot have a secret so; None: it can."""
    if twice := sorted(env & use.env.keys()):
        return f"sets {twice[0]}, which env sets, too"
    if use.directory is None:
        return None
    if not contained and use.directory != f"{SECRETS_DIRECTORY}/{use.secret}":
        return "has a directory of its own, which needs an image: a plain process finds it by MUSTER_SECRETS_DIR"
    own = PurePosixPath(use.directory)
    for target in map(PurePosixPath, targets):
        if own.is_relative_to(target) or target.is_relative_to(own):
            return f"lies at {own}, which the mount at {target} covers"
    return None
