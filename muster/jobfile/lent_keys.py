"""The maps of what executions are lent: secrets without their values, directories of the node, volumes, inputs,
checkpoints, limits.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, PlainValidator, WithJsonSchema, model_validator

from muster.domain.data.checkpoint import (
    DEFAULT_CHECKPOINTS_KEPT,
    DEFAULT_SETTLE,
    MOST_CHECKPOINTS_KEPT,
    CheckpointRanks,
    JobCheckpoint,
)
from muster.domain.data.job_input import MAX_INPUTS, MOST_INPUT_URLS
from muster.domain.data.job_source import JOB_SOURCE, MOST_ONLY
from muster.domain.data.pattern import InputLayout
from muster.domain.data.volume import MAX_VOLUMES, VolumeKeep
from muster.domain.jobs.rules import job_values
from muster.domain.jobs.rules.data import checkpoint_rules, input_rules, only_rules, output_rules
from muster.domain.jobs.secret_use import KEY_FORM, ONLY_KEY, SECRETS_DIRECTORY, SecretUse
from muster.jobfile import fields
from muster.jobfile.document import Scalar
from muster.jobfile.errors import FieldError
from muster.jobfile.fields import given, verbatim
from muster.jobfile.section import Also, OrShort, Section, key


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


class MountKeys(Section):
    """A directory or file of the node, seen in the container; short: `/source:/target[:rw|ro]`."""

    source: fields.Absolute = key("absolute path", "On the node.", default=...)
    target: fields.MountTarget = key("absolute path", "In the container.", default=...)
    read_only: fields.Flag = key("`true`, `false`", "Whether the container may only read it.", default=True)

    @model_validator(mode="after")
    def _leaves_own_directory(self) -> "MountKeys":
        return fields.ruled(self, job_values.mount_target(self.target))


class UlimitKeys(Section):
    """A resource limit of the container; short: one value for both."""

    soft: fields.Limit = key("whole number, `unlimited`", "What programs start with.", default=...)
    hard: fields.Limit = key("whole number, `unlimited`", "How far programs may raise it.", default=...)

    @model_validator(mode="after")
    def _in_order(self) -> "UlimitKeys":
        return fields.ruled(self, job_values.ulimit_order(self.soft, self.hard))


_KEPT_ON_NODE = {"properties": {"keep": {"const": "node"}}, "required": ["keep"]}
_SIZE_OR_TMPFS: dict[str, Any] = {
    "oneOf": [{"required": ["size"]}, {"required": ["tmpfs"]}],
    "allOf": [
        {"if": _KEPT_ON_NODE, "then": {"required": ["size"]}},
        {"if": {"properties": {"writable": {"const": False}}, "required": ["writable"]}, "then": _KEPT_ON_NODE},
    ],
}


class VolumeKeys(Section):
    """A directory that each execution finds, see docs/volumes.md; exactly one of `size` and `tmpfs`."""

    model_config = ConfigDict(json_schema_extra=_SIZE_OR_TMPFS)

    path: fields.VolumePath | None = key(
        "absolute path",
        "Where the container has it (default: `/muster/volumes/NAME`). A plain process finds it by its variable "
        "`MUSTER_VOLUME_NAME` alone.",
    )
    size: fields.VolumeSize | None = key("size", "A directory on the node's disk, and how much may lie in it.")
    tmpfs: fields.VolumeSize | None = key(
        "size",
        "A directory in memory, and how much may lie in it; it counts as memory of the execution. Needs `image`.",
    )
    keep: Annotated[VolumeKeep, *fields.names(VolumeKeep)] = key(
        "`execution`, `node`",
        "How long what lies in it is kept: it goes with the execution, or stays on the node for all jobs of the "
        "project that have a volume of this name. The second needs `size`.",
        default=VolumeKeep.EXECUTION,
    )
    writable: fields.Flag = key(
        "`true`, `false`",
        "Whether user code may write to it. `false` needs `keep: node` and `image`.",
        default=True,
    )

    @model_validator(mode="after")
    def _one_amount(self) -> "VolumeKeys":
        if (self.size is None) == (self.tmpfs is None):
            raise FieldError("needs exactly one of size and tmpfs")
        return self


def _few_volumes(volumes: dict[str, VolumeKeys]) -> dict[str, VolumeKeys]:
    if len(volumes) > MAX_VOLUMES:
        raise FieldError(f"has {len(volumes)} volumes; {MAX_VOLUMES} are the most")
    return volumes


VolumeForms = Annotated[
    dict[fields.Label, VolumeKeys], AfterValidator(_few_volumes), Also({"maxProperties": MAX_VOLUMES})
]


def _source(value: object) -> str:
    return fields.text_by(input_rules.input_source, value)


def _only_name(value: object) -> str:
    return fields.text_by(only_rules.only_name, value)


_URL: dict[str, Any] = {"type": "string", "pattern": f"^{input_rules.INPUT_URL}$"}
_URLS: dict[str, Any] = {
    "anyOf": [_URL, {"type": "array", "items": _URL, "minItems": 1, "maxItems": MOST_INPUT_URLS, "uniqueItems": True}]
}


def _urls(value: object) -> tuple[str, ...] | None:
    """One URL or several; the rule book looks at those of a list, and says which one is wrong."""
    if isinstance(value, list):
        if not value:
            raise FieldError("is an empty list; name one URL or more")
        return tuple(map(verbatim, value))
    return None if value is None else (fields.text_by(input_rules.input_url, value),)


InputUrls = Annotated[tuple[str, ...] | None, PlainValidator(_urls), WithJsonSchema(_URLS)]
InputSource = Annotated[str, BeforeValidator(_source), WithJsonSchema({"type": "string", "pattern": f"^{JOB_SOURCE}$"})]
OnlyName = Annotated[str, BeforeValidator(_only_name), WithJsonSchema({"type": "string", "minLength": 1})]
_URL_OR_FROM: dict[str, Any] = {
    "oneOf": [{"required": ["url"]}, {"required": ["from"]}],
    "not": {"anyOf": [*({"required": ["from", each]} for each in ("sha256", "secret")), {"required": ["url", "only"]}]},
}


class InputKeys(Section):
    """Files, objects of a store, or outputs of a job, see docs/inputs.md; short: its URL, or a list of URLs."""

    model_config = ConfigDict(json_schema_extra=_URL_OR_FROM)

    url: InputUrls = key(
        "URL, or list of URLs",
        "Where the file comes from, with `http://` or `https://`; or objects of a store as `s3://BUCKET/KEY` or "
        "`az://CONTAINER/NAME`, where `*`, `?` and `**` are wildcards and a `/` at the end means all below. "
        "Placeholders like `{{muster:rank}}` are replaced. All that a list names lies in one directory.",
    )
    secret: fields.Label | None = key(
        "word",
        "The secret that opens the store or the server (`muster secrets list`): of kind `s3` for `s3://`, of kind "
        "`azure` for `az://`, of kind `http` for others. Without one all is read as everybody may.",
    )
    source: InputSource | None = key(
        "`JOB`, `JOB/ROLE-N`, `JOB/*`",
        "The job whose outputs it is, by `job:ID`, or else the newest of that name that has succeeded; the N-th "
        "execution of a role, from 0, or all of them, each in a directory of its own.",
        written="from",
    )
    only: Annotated[list[OnlyName], Also({"maxItems": MOST_ONLY})] | None = key(
        "list of names with wildcards", "Of these outputs, like `**/*.pt`; without it all of them. Needs `from`."
    )
    path: fields.VolumePath | None = key(
        "absolute path",
        "The directory in which the container has it (default: `/muster/inputs/NAME`). Needs `image`.",
    )
    sha256: fields.InputSha256 | None = key(
        "64 digits", "What `sha256sum` prints of the file; the job fails where it holds something else."
    )
    split: fields.Flag = key(
        "true, false",
        "Each execution of the role gets a part of the files: of N executions, the one in place P has the files in "
        "places P, P+N, P+2N and so on, in the order of their paths. Needs wildcards, a `/` at the end, several URLs, "
        "or `from`.",
        False,
    )
    layout: Annotated[InputLayout, *fields.names(InputLayout)] = key(
        "`tail`, `full`, `flat`",
        "Where objects lie in the directory: by what stands behind the part of the name without wildcards, by the "
        "whole name, or by the last part of it. `full` and `flat` need `s3://` or `az://`.",
        InputLayout.TAIL,
    )

    @model_validator(mode="after")
    def _one_origin(self) -> "InputKeys":
        if (self.url is None) == (self.source is None):
            raise FieldError("needs exactly one of url and from")
        return self


DonePattern = Annotated[
    str,
    BeforeValidator(partial(fields.text_by, checkpoint_rules.done_pattern)),
    Also({"pattern": checkpoint_rules.DONE_PATTERN}),
]


CheckpointStore = Annotated[
    str,
    BeforeValidator(partial(fields.text_by, checkpoint_rules.checkpoint_store)),
    Also({"pattern": f"^{output_rules.OUTPUT_PLACE}$"}),
]


class CheckpointKeys(Section):
    """What executions save for the next attempt, see docs/checkpoints.md."""

    path: fields.VolumePath | None = key(
        "absolute path",
        "Where the container saves it (default: `/muster/checkpoint`). Needs `image`.",
    )
    ranks: Annotated[CheckpointRanks, *fields.names(CheckpointRanks)] | None = key(
        "`all`, `rank0`",
        "Ranks whose part a whole checkpoint needs: each execution of the role (default), or its first one, whose part "
        "all of them find.",
    )
    done: DonePattern | None = key(
        "name with wildcards", "A checkpoint is whole once it has such a file (default: none says so)."
    )
    settle: fields.Span | None = key(
        "duration",
        "A checkpoint that nothing else says is whole counts once it has not changed for so long (default: 1m).",
    )
    keep: Annotated[int, *fields.within(1, MOST_CHECKPOINTS_KEPT)] = key(
        f"whole number 1…{MOST_CHECKPOINTS_KEPT}",
        "How many whole checkpoints stay, the newest.",
        DEFAULT_CHECKPOINTS_KEPT,
    )
    to: CheckpointStore | None = key(
        "`s3://BUCKET/PREFIX`, `az://CONTAINER/PREFIX`",
        "The place in a store below which their files go (default: the fleet's depot). Needs `secret`.",
    )
    secret: fields.Label | None = key("word", "The secret of kind `s3` or `azure` that opens that store.")

    @property
    def checkpoint(self) -> JobCheckpoint:
        """The value of the domain."""
        return JobCheckpoint(
            path=self.path,
            ranks=self.ranks or CheckpointRanks.ALL,
            done=self.done or "",
            settle=self.settle or DEFAULT_SETTLE,
            keep=self.keep,
            to=self.to or "",
            secret=self.secret or "",
        )


def _input_form(value: object) -> object:
    return {"url": value} if isinstance(value, Scalar | list) else value


def _few_inputs(inputs: dict[str, InputKeys]) -> dict[str, InputKeys]:
    if len(inputs) > MAX_INPUTS:
        raise FieldError(f"has {len(inputs)} inputs; {MAX_INPUTS} are the most")
    return inputs


InputForm = Annotated[
    InputKeys,
    BeforeValidator(_input_form),
    OrShort(_URLS),
]
InputForms = Annotated[dict[fields.Label, InputForm], AfterValidator(_few_inputs), Also({"maxProperties": MAX_INPUTS})]


OutputPlace = Annotated[
    str,
    BeforeValidator(partial(fields.text_by, output_rules.output_place)),
    Also({"pattern": f"^{output_rules.OUTPUT_PLACE}$"}),
]


class OutputsKeys(Section):
    """Which outputs of an execution are stored, and for how long, see docs/outputs.md."""

    after: fields.StoredAfterName = key(
        "`always`, `success`",
        "The ends of user code after which its outputs are stored: `success`, only where the execution has succeeded. "
        "Others go with it.",
        "always",
        written="on",
    )
    only: Annotated[list[OnlyName], Also({"maxItems": MOST_ONLY})] = key(
        "list of names with wildcards", "Of the outputs, like `**/*.pt` (default: all). Others go with it.", []
    )
    limit: fields.VolumeSize | None = key(
        "size", "Most that one execution may leave; more is not stored (default: what its project may keep)."
    )
    keep: fields.Span | None = key(
        "duration", "How long they stay once they are stored; at most `delete_after` (default: as long as the job)."
    )
    to: OutputPlace | None = key(
        "`s3://BUCKET/PREFIX`, `az://CONTAINER/PREFIX`",
        "The place in a store below which they go, as `NAME-JOB/ATTEMPT/RANK/PATH` (default: the fleet's depot). Needs "
        "`secret`.",
    )
    secret: fields.Label | None = key("word", "The secret of kind `s3` or `azure` that opens that store.")
    live: fields.LiveOutputsName | None = key(
        "`read-only`, `off`",
        "Which are stored while user code runs: `read-only`, files that nobody may write to any more (default: `off`; "
        "with the dialect `valohai` `read-only`). Not beside `on: success`.",
    )
