"""The keys of a job file: what each takes, its default and its meaning.

Checks of single values are in `fields`; those that need several keys at once are in `build`. The reference page
and the JSON Schema are made from these models, so a title says what is written and a description what it does.
"""

import base64
import binascii
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    model_validator,
)
from pydantic import WithJsonSchema as JsonSchema

from muster.domain.jobs.rules import job_values, placing_rules
from muster.domain.jobs.secret_use import MAX_USES
from muster.domain.quoting import quote
from muster.jobfile import fields
from muster.jobfile.data.code_keys import CodeForm
from muster.jobfile.document import Scalar
from muster.jobfile.errors import FieldError
from muster.jobfile.fields import given, verbatim
from muster.jobfile.lent_keys import (
    SHORT_SECRET,
    CheckpointKeys,
    InputForms,
    MountKeys,
    OutputsKeys,
    SecretKeys,
    UlimitKeys,
    VolumeForms,
    secret_form,
)
from muster.jobfile.section import (
    SHORT_FRAMEWORK,
    SHORT_INTERACTIVE,
    AffinityKeys,
    Also,
    ExitCodesKeys,
    FrameworkKeys,
    InteractiveKeys,
    NodeTypes,
    OnPreemptKeys,
    OrShort,
    PoolForm,
    ResourcesKeys,
    RestartsKeys,
    Section,
    SecurityKeys,
    TimeoutsKeys,
    TolerationKeys,
    TopologyKeys,
    WithPresets,
    framework_form,
    interactive_form,
    key,
)

NEEDED = ...
"""The mark of a key without a default: it must be there."""
CONTENTS = ("content", "content_base64", "source")
"""Keys of a file, exactly one of which is there."""
SHELL = ("/bin/sh", "-c")
"""What runs a command that is written as one text."""

Count = Annotated[int, *fields.within(1, job_values.MAX_EXECUTIONS)]
PortNumber = Annotated[int, *fields.within(1, job_values.MAX_PORT)]
Priority = Annotated[int, *fields.within(-job_values.MAX_PRIORITY, job_values.MAX_PRIORITY)]


class PortKeys(Section):
    """A named port of each execution; a bare name leaves the number to the agent."""

    name: fields.PortName = key("word", "Unique in the role; `master` names rank 0's `MASTER_PORT`.", default=NEEDED)
    port: PortNumber | None = key(
        "whole number 1…65535",
        "Fixed number: of the node on host networking, where one execution has it; of the container on bridge "
        "networking. A fixed `master` is for rank 0 alone. Without a number the agent chooses one.",
    )


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode("".join(given(value).text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        if isinstance(error, FieldError):
            raise
        raise FieldError("is not base64") from error


class FileKeys(Section):
    """A small file that is written before user code starts; exactly one of the contents."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [each]} for each in CONTENTS]})

    path: fields.FilePath = key("path", "Absolute, or relative to the working directory.", default=NEEDED)
    content: fields.PlainText | None = key("text", "What is in it.")
    content_base64: Annotated[
        bytes | None,
        BeforeValidator(lambda value: None if value is None else _decoded(value)),
        JsonSchema({"type": "string", "contentEncoding": "base64", "pattern": r"^[A-Za-z0-9+/\s]*(=\s*){0,2}$"}),
    ] = key("base64", "What is in it, for files that are not text.")
    source: fields.Filled | None = key("path", "A file where the job is submitted from, relative to the job file.")
    executable: fields.Flag = key("`true`, `false`", "Whether it can be run.", default=False)

    @model_validator(mode="after")
    def _one_content(self) -> "FileKeys":
        if sum(content is not None for content in (self.content, self.content_base64, self.source)) != 1:
            raise FieldError("needs exactly one of content, content_base64 and source")
        return self


def _shell_or_words(value: object) -> object:
    if isinstance(value, list):
        if not value:
            raise FieldError("is empty; leave it out to run the image's own command")
        if isinstance(value[0], Scalar) and not value[0].text.strip():
            raise FieldError("begins with an empty word; the first word is the program")
        return value
    if isinstance(value, dict):
        raise FieldError("must be a list of words, or one text for the shell, not a map")
    text = verbatim(value)
    if not text.strip():
        raise FieldError("is empty; leave it out to run the image's own command")
    return [*SHELL, text]


def _port_form(value: object) -> object:
    if not isinstance(value, Scalar):
        return value
    if isinstance(value.value, (int, float)):
        raise FieldError(f"must be a name, or a map with name and port, not {value.text}")
    fields.text_by(job_values.port_name, value)
    return {"name": value}


def _mount_form(value: object) -> object:
    if not isinstance(value, Scalar):
        return value
    source, *rest = verbatim(value).split(":")
    if len(rest) not in {1, 2} or rest[1:] not in ([], ["rw"], ["ro"]):
        raise FieldError(f"must be /source:/target, /source:/target:rw or a map, not {quote(value.text)}")
    return {"source": source, "target": rest[0], "read_only": rest[1:] != ["rw"]}


def _ulimit_form(value: object) -> object:
    if isinstance(value, (dict, list)):
        return value
    fields.check_limit(value)
    return {"soft": value, "hard": value}


_PROGRAM = {"type": fields.SCALARS, "pattern": rf"^(?=[\s\S]*\S){fields.PLAIN}$", "maxLength": job_values.MAX_WORD}
Command = Annotated[
    list[fields.Verbatim],
    BeforeValidator(_shell_or_words),
    Also({"minItems": 1, "prefixItems": [_PROGRAM]}),
    OrShort({**_PROGRAM, "type": "string"}),
]
Port = Annotated[
    PortKeys, BeforeValidator(_port_form), OrShort({"type": "string", "pattern": f"^{job_values.PORT_NAME}$"})
]
MountForm = Annotated[
    MountKeys,
    BeforeValidator(_mount_form),
    OrShort({"type": "string", "pattern": "^/[^:]*:(?!/+(:|$))(?!/+muster(/|:|$))/[^:]*(:rw|:ro)?$"}),
]
UlimitForm = Annotated[
    UlimitKeys,
    BeforeValidator(_ulimit_form),
    OrShort({"anyOf": [{"type": "integer", "minimum": -1}, {"const": "unlimited"}]}),
]

FrameworkForm = Annotated[FrameworkKeys, BeforeValidator(framework_form), OrShort(SHORT_FRAMEWORK)]
InteractiveForm = Annotated[InteractiveKeys | None, BeforeValidator(interactive_form), OrShort(SHORT_INTERACTIVE)]
SecretForm = Annotated[SecretKeys, BeforeValidator(secret_form), OrShort(SHORT_SECRET)]


class RoleDefaults(Section):
    """What executions run and need; at the top level, the defaults of every role."""

    image: fields.ImageName | None = key("text", "Container image. Without it the command runs as a plain process.")
    pull: fields.PullName = key(
        "`missing`, `always`, `never`", "When it is pulled, see docs/images.md. Needs `image`.", "missing"
    )
    entrypoint: list[fields.Verbatim] | None = key(
        "list of words",
        "Replaces the image's entrypoint; an empty list takes it away. Needs `image`.",
    )
    command: Command | None = key(
        "list of words, or text",
        "Program and arguments; a text is run by `/bin/sh -c`. Without it the image's own command runs.",
    )
    env: dict[fields.EnvName, fields.Verbatim] = key(
        "map of name: value",
        "Environment variables. Values are taken as they are written: `NO: no` is the text `no`.",
        {},
    )
    workdir: fields.Absolute | None = key(
        "absolute path",
        "Working directory (default: the image's; a fresh directory for a process).",
    )
    user: fields.UserName | None = key(
        "`uid`, `uid:gid`, `name`",
        "Who runs in the container (default: the node's user for jobs). Root, and names of the image's own users, only "
        "where the project is opened for any user. Needs `image`.",
    )
    security: SecurityKeys = key(
        "map", "What containers may do beyond the default, see below. All but `pids` needs `image`.", {}
    )
    resources: ResourcesKeys = key("map", "What each execution reserves, see below.", {})
    ports: Annotated[list[Port], Also({"uniqueItems": True})] = key(
        "list of names or maps",
        "Ports that each execution gets, see below.",
        [],
    )
    mounts: Annotated[list[MountForm], Also({"uniqueItems": True})] = key(
        "list of texts or maps",
        "What of the node the container sees, see below. Needs `image`.",
        [],
    )
    volumes: VolumeForms = key(
        "map of name: map", "Directories that each execution finds beside the image, see below.", {}
    )
    inputs: InputForms = key(
        "map of name: URL, list of URLs, or map", "Files from elsewhere that each execution finds, see below.", {}
    )
    ulimits: Annotated[
        dict[fields.UlimitName, UlimitForm], Also({"propertyNames": {"enum": list(job_values.ULIMITS)}})
    ] = key(
        "map of name: limit",
        "Resource limits such as `memlock` and `nofile`, see below. Needs `image`.",
        {},
    )
    files: list[FileKeys] = key(
        "list of maps",
        "Small files written before user code starts, 1 MiB in all, and 32 MiB for all executions that can share a "
        "node, see below.",
        [],
    )
    secrets: Annotated[list[SecretForm], Also({"maxItems": MAX_USES, "uniqueItems": True})] = key(
        "list of names or maps",
        "Secrets of the project that each execution gets, as files or variables, see below.",
        [],
    )
    code: CodeForm | None = key(
        "folder, or map",
        "A folder, or a commit of a Git repository, of which each execution gets a copy as its working directory, see "
        "below.",
    )
    outputs: OutputsKeys = key("map", "Which outputs are stored, and for how long, see below (default: all).", {})
    checkpoint: CheckpointKeys | None = key("map", "What each execution saves for the next attempt, see below.")
    exit_codes: ExitCodesKeys | None = key("map", "Which exit codes end the job or restart the gang, see below.")
    expand: fields.Flag = key(
        "`true`, `false`", "Whether `{{muster:rank}}` and the like are replaced, see docs/roster.md.", default=False
    )


class RoleKeys(RoleDefaults):
    """A named part of a job: `count` identical executions."""

    name: fields.Label = key(
        "word", "Unique in the job; executions are reached as `name-0`, `name-1`, ….", default=NEEDED
    )
    count: Count = key("whole number 1…10000", "How many executions.", 1)


def _some_roles(roles: list[RoleKeys]) -> list[RoleKeys]:
    if not roles:
        raise FieldError("is empty; leave it out, or name at least one role")
    return roles


def _few_labels(labels: dict[str, str]) -> dict[str, str]:
    return fields.ruled(labels, job_values.label_count(len(labels)))


class JobKeys(RoleDefaults, WithPresets):
    """A job: executions that start together or not at all."""

    name: fields.Label = key("word", "Lower-case letters, digits and hyphens; need not be unique.", default=NEEDED)
    workers: Count = key("whole number 1…10000", "How many executions of a job without `roles`.", 1)
    roles: Annotated[list[RoleKeys], AfterValidator(_some_roles), Also({"minItems": 1})] | None = key(
        "list of maps",
        "Parts that differ, in rank order, see below. Not together with `workers`.",
    )
    network: fields.NetworkName = key(
        "`host`, `bridge`",
        "`host`: the node's own network. `bridge`: a private network per container, declared ports are published.",
        "host",
    )
    success: fields.SuccessName | None = key(
        "`all`, `rank0`, name of a role",
        "Who must end well: every execution, rank 0, or those of a role. Once rank 0 or the role has, the others are "
        "stopped (default: `all`, or what the framework fills in).",
    )
    project: fields.Label | None = key(
        "word",
        "The project of the job, which says who may see it (default: that of `MUSTER_PROJECT`, else the caller's only "
        "project, else `default`).",
    )
    framework: FrameworkForm | None = key(
        "word or map",
        "What user code is written for, so that it finds its peers as it is, see below and docs/frameworks.md.",
    )
    dialects: Annotated[list[fields.DialectWord], Also({"uniqueItems": True})] = key(
        "list of words: `slurm`, `valohai`, `runai`, `skypilot`",
        "Other systems whose variables and files user code finds as well, see docs/dialects.md.",
        [],
    )
    gang_commands: fields.Flag | None = key(
        "`true`, `false`",
        "Whether user code may run commands in the other executions (default: where the framework needs it).",
    )
    interactive: InteractiveForm = key(
        "`true`, `false` or map",
        "A job in which people work: without `command` its main program waits until the job is stopped, see below and "
        "docs/development-environments.md.",
    )
    stdin: fields.Flag = key(
        "`true`, `false`",
        "Whether the main program of rank 0 reads what people who attach to it send; see docs/interactive.md.",
        default=False,
    )
    tty: fields.Flag = key(
        "`true`, `false`",
        "Whether the main program of rank 0 has a terminal; then it has `stdin` as well. See docs/interactive.md.",
        default=False,
    )
    labels: Annotated[
        dict[fields.NodeLabel, fields.JobLabel],
        AfterValidator(_few_labels),
        Also({"maxProperties": job_values.MAX_LABELS}),
    ] = key(
        "map of name: value",
        "Text by which people find the job: `muster jobs --label paper=icml`. Nothing is placed by it.",
        {},
    )
    priority: Priority = key("whole number -1000…1000", "Higher goes first.", 0)
    job_class: fields.JobClassName | None = key(
        "`guaranteed`, `preemptible`, `spare`",
        "`guaranteed`: only within the quota of its project. `preemptible`: also beyond it. `spare`: only what nobody "
        "else wants. Default: that of its project, see docs/sharing.md.",
        written="class",
    )
    hold: fields.Flag = key(
        "`true`, `false`",
        "Whether the job waits until `muster unhold` releases it, see docs/waiting.md.",
        default=False,
    )
    not_before: fields.Moment = key(
        "time with its zone: `2026-12-01T18:00:00Z`", "The job waits until this time (default: it may begin at once)."
    )
    delete_after: fields.Span | None = key(
        "duration", "How long after its end the job is deleted with its logs (default: somebody deletes it)."
    )
    placement: fields.PackingName = key("`pack`, `spread`", "On as few nodes as possible, or on as many.", "pack")
    max_per_node: Count | None = key("whole number 1…10000", "At most so many executions of this job on one node.")
    node_labels: dict[fields.NodeLabel, fields.NodeLabelValue] = key(
        "map of name: value",
        "Only nodes that carry all of these labels; what agents say themselves begins with `local/`.",
        {},
    )
    pools: Annotated[list[PoolForm], Also({"maxItems": placing_rules.MAX_POOLS})] = key(
        "list of words or maps",
        "The pools in which it is placed, in this order: it goes to the first that has room for all of it. No gang "
        "lies in two pools. See below and docs/pools.md (default: any pool).",
        [],
    )
    node_type: NodeTypes = key(
        "word or list of words", "Only nodes whose label `type` has one of these values (default: any).", []
    )
    exclude_nodes: Annotated[list[fields.Filled], Also({"maxItems": placing_rules.MAX_EXCLUDED})] = key(
        "list of names", "Nodes on which it is not placed.", []
    )
    tolerations: Annotated[list[TolerationKeys], Also({"maxItems": placing_rules.MAX_TOLERATIONS})] = key(
        "list of maps", "Taints of nodes that it puts up with, see below and docs/taints.md.", []
    )
    affinity: AffinityKeys = key(
        "map", "Nodes that it needs or would rather have, by operators on their labels, see below.", {}
    )
    topology: TopologyKeys = key("map", "How close to each other its nodes are to be, see below.", {})
    exclusive: fields.Flag = key(
        "`true`, `false`",
        "Whether it has its nodes for itself: it goes only to nodes on which nothing runs, and then nothing else does.",
        default=False,
    )
    timeouts: TimeoutsKeys = key("map", "Limits in time, see below.", {})
    restarts: RestartsKeys | None = key("map", "What follows a failure, see below (default: nothing).")
    on_preempt: OnPreemptKeys = key("map", "What happens when it is preempted, see below and docs/preemption.md.", {})
    on_disconnect: fields.OnDisconnectName = key(
        "`keep`, `stop`",
        "What a node does that does not hear of the coordinator any more: `keep`: user code goes on, unless the other "
        "nodes of the gang show that only this one is cut off. `stop`: it is stopped. See docs/fencing.md.",
        "keep",
    )
