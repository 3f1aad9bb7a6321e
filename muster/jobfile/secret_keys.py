"""The map that says which secret executions get, and how; never a value of it."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from muster.domain.jobs.rules import job_values
from muster.domain.jobs.secret_use import KEY_FORM, ONLY_KEY, SECRETS_DIRECTORY, SecretUse
from muster.jobfile import fields
from muster.jobfile.document import Scalar
from muster.jobfile.errors import FieldError
from muster.jobfile.fields import given, verbatim
from muster.jobfile.section import Section, key


@dataclass(frozen=True, slots=True)
class Variables:
    """What `env` of a secret says: key by variable, or the variables that are usual for the secret's kind."""

    keys: tuple[tuple[str, str], ...] = ()
    usual: bool = False


def _variables(value: object) -> Variables | None:
    if value is None or isinstance(value, Variables):
        return value
    if isinstance(value, dict):
        return Variables(
            tuple((fields.text_by(job_values.env_name, name), _key_of(name, key)) for name, key in value.items())
        )
    if isinstance(value, Scalar) and isinstance(value.value, bool):
        if not value.value:
            raise FieldError("must be true, the name of a variable, or a map of variable: key; leave it out for none")
        return Variables(usual=True)
    return Variables(((fields.text_by(job_values.env_name, value), ONLY_KEY),))


def _key_of(variable: str, value: object) -> str:
    text = verbatim(value)
    return fields.ruled(text, job_values.secret_key(variable, text))


def _directory(value: object) -> str:
    return str(PurePosixPath(fields.text_by(job_values.secret_directory, value)))


_KEY_SCHEMA = {"type": "string", "pattern": f"^({KEY_FORM})?$"}
_VARIABLES_SCHEMA = {
    "anyOf": [
        {"const": True},
        {"type": "string", "pattern": f"^{fields.OWN_ENV_NAME}$"},
        {
            "type": "object",
            "propertyNames": {"pattern": f"^{fields.OWN_ENV_NAME}$"},
            "additionalProperties": _KEY_SCHEMA,
        },
    ]
}
VariablesForm: TypeAlias = Annotated[Variables | None, PlainValidator(_variables), WithJsonSchema(_VARIABLES_SCHEMA)]
_DIRECTORY = (
    rf"^(?!(.*/)?\.\.(/|$))(?!/+(proc|sys|dev)(/|$))(?!/+$)(?!/+muster(/|$)(?!secrets/+[^/]+/*$))/{fields.SEEN}*$"
)
Directory = Annotated[str, BeforeValidator(_directory), WithJsonSchema({"type": "string", "pattern": _DIRECTORY})]


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


SHORT_SECRET = {"type": "string", "pattern": f"^{job_values.LABEL}$"}
