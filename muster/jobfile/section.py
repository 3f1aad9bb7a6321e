"""What the maps of a job file have in common, and the maps that stand by themselves, such as rights and limits."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from muster.domain.jobs.frameworks.framework import MOST_RESTARTS_IN_PLACE, FrameworkName
from muster.domain.jobs.job import DEFAULT_PIDS, MOST_PIDS
from muster.domain.jobs.placing.topology import NO_LEVEL
from muster.domain.jobs.restart import MOST_RESTARTS
from muster.domain.jobs.rules import job_values, placing_rules
from muster.jobfile import fields
from muster.jobfile.document import Scalar, kind
from muster.jobfile.errors import FieldError


@dataclass(frozen=True, slots=True, eq=False)  # by identity, because typing hashes annotations
class Also:
    """More than a type says by itself, in the JSON Schema."""

    schema: dict[str, Any]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), **self.schema}


@dataclass(frozen=True, slots=True, eq=False)  # by identity, because typing hashes annotations
class OrShort:
    """The short form beside the map, in the JSON Schema."""

    schema: dict[str, Any]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [self.schema, handler(core)]}


Restarts = Annotated[int, *fields.within(0, MOST_RESTARTS)]
Pids = Annotated[int, *fields.within(1, MOST_PIDS)]


class Section(BaseModel):
    """Keys that stand together in one map; a key that is not listed is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def key(
    title: str,
    description: str,
    default: Any = None,  # noqa: ANN401 - of any key
    *,
    written: str | None = None,
) -> Any:  # noqa: ANN401 - of any key, as pydantic.Field
    """How a key is described, for its check, the reference and the JSON Schema.

    `written` is the key where it is a word that Python keeps for itself.
    """
    return Field(default, title=title, description=description, alias=written)


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The keys of a map as they are written."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def _one_or_more(value: object) -> object:
    return value if isinstance(value, list) else [value]


class UseKeys(Section):
    """Presets that are joined with the file when it is submitted, see docs/presets.md; `NAME@N` is version N."""

    template: fields.Filled | None = key("name of a preset", "Keys of any kind, for all that the others leave open.")
    environment: fields.Filled | None = key("name of a preset", "The image, and what user code finds in it.")
    resources: fields.Filled | None = key("name of a preset", "What each execution gets, and on which nodes.")
    data: Annotated[list[fields.Filled], BeforeValidator(_one_or_more)] = key(
        "name or list of names of presets", "Inputs, mounts and volumes.", []
    )


class WithPresets(Section):
    """What a job file may name presets with."""

    use: UseKeys | None = key(
        "map of kind: name",
        "Presets of the project or of the fleet that the coordinator joins with this file, see below.",
    )


class SecurityKeys(Section):
    """What containers may do beyond the default; the project must be opened for it, see docs/containers.md."""

    capabilities: Annotated[list[fields.Capability], Also({"uniqueItems": True})] = key(
        "list of words like `SYS_PTRACE`", "Beside the default ones; they count for root in the container only.", []
    )
    privileged: fields.Flag = key("`true`, `false`", "Everything that root of the node may.", default=False)
    gain_privileges: fields.Flag = key(
        "`true`, `false`", "Whether programs may gain privileges, as `sudo` does.", default=False
    )
    image_user: fields.Flag = key(
        "`true`, `false`",
        "As the user that the image names, root as a rule; otherwise as the node's user for jobs. Not beside `user`.",
        default=False,
    )
    pids: Pids | None = key(
        f"whole number 1…{MOST_PIDS}", f"At most so many processes and threads (default: {DEFAULT_PIDS})."
    )


class FrameworkKeys(Section):
    """What user code is written for, so that it finds its peers as it is; short: its name. See docs/frameworks.md."""

    name: fields.FrameworkWord = key(", ".join(f"`{name}`" for name in FrameworkName), "The framework.", default=...)
    processes: fields.Processes = key(
        "`gpu`, whole number 1…64",
        "Processes that user code has in each execution. `gpu`: one for each GPU (default: that with pytorch, "
        "deepspeed, mpi and horovod, else 1).",
    )
    launch: fields.LaunchName | None = key(
        "`rank0`, `all`",
        "Where the command runs: on rank 0, which starts the processes of all, or in every execution. Only deepspeed "
        "can do both (default: `rank0` with deepspeed, mpi, horovod and ray, else `all`).",
    )
    rendezvous: fields.RendezvousName = key(
        "`static`, `c10d`",
        "With pytorch: how the launchers find each other. Restarts in place need `c10d`.",
        "static",
    )
    restarts_in_place: Annotated[int, *fields.within(0, MOST_RESTARTS_IN_PLACE)] = key(
        "whole number 0…100",
        "With pytorch: how often torchrun starts its processes again before the execution fails.",
        0,
    )


def framework_form(value: object) -> object:
    """The map for a bare name."""
    if not isinstance(value, Scalar):
        return value
    return {"name": Scalar(value=fields.given(value).text, text=fields.given(value).text, at=value.at)}


SHORT_FRAMEWORK = {"enum": list(map(str, FrameworkName))}


class InteractiveKeys(Section):
    """What a job has in which people work; short: `true`."""

    setup: fields.Setup = key(
        "text",
        "A command for `/bin/sh -c`, run once in each execution before its main program. What it prints is in the log; "
        "if it fails, so does the job.",
        "",
    )


def interactive_form(value: object) -> object:
    """The map for `true`; None for `false`."""
    if not isinstance(value, Scalar):
        return value
    written = fields.given(value)
    if not isinstance(written.value, bool):
        raise FieldError(f"must be true, false or a map, not {kind(written)}")
    return {} if written.value else None


SHORT_INTERACTIVE = {"type": "boolean"}


class ExitCodesKeys(Section):
    """What exit codes of user code mean when the gang could start again; `fail` wins over `restart`."""

    restart: fields.ExitCodeRanges | None = key(
        "exit codes like `1,3-5`", "Only these are worth another attempt (default: all)."
    )
    fail: fields.ExitCodeRanges | None = key(
        "exit codes like `1,3-5`", "These end the job, however many restarts are left."
    )


Gpus = Annotated[int, *fields.within(0, job_values.MAX_GPUS)]


class ResourcesKeys(Section):
    """What each execution reserves on its node."""

    gpus: Gpus = key(
        "whole number 0…64", "GPUs; with `mig`, `gpu_portion` or `gpu_memory` of how many (default there: 1).", 0
    )
    gpu_model: fields.Filled | None = key(
        "text",
        "Part of the model name that every GPU must have, whatever the case: `H100`.",
    )
    mig: fields.MigProfile | None = key(
        "profile like `1g.10gb`", "It gets MIG devices of this profile in place of whole GPUs."
    )
    gpu_portion: fields.GpuPortion | None = key("number 0.01…1", "It gets this part of each of its GPUs.")
    gpu_memory: fields.GpuMemory | None = key("size", "It gets so much memory of each of its GPUs.")
    cpus: fields.Cpus = key("`2`, `0.5`, `500m`", "CPUs.", "1")
    memory: fields.Memory | None = key(
        "size",
        "Main memory that is reserved on the node. Without it nothing is.",
    )
    disk: fields.SharedMemory | None = key("size", "Disk that must be free on its node, see docs/scheduling.md.")
    shm: fields.SharedMemory | None = key("size", "Size of `/dev/shm` in the container (default: the runtime's).")
    cpu_limit: fields.CpuLimit = key(
        "as `cpus`, or `none`",
        "CPUs that it gets at most (default: `none`: beside what is reserved, as many as nobody else uses).",
    )
    memory_limit: fields.MemoryLimit = key(
        "size, or `none`",
        "Main memory that it may use at most; what goes beyond is killed (default: the value of `memory`).",
    )


class PoolKeys(Section):
    """A pool in which the job is placed; short: its name."""

    pool: fields.Label = key("word", "Its name.", default=...)
    after: fields.Span | None = key(
        "duration", "How long the job has waited in the queue before it goes there (default: it goes there at once)."
    )


def pool_form(value: object) -> object:
    """The map for a bare name."""
    if not isinstance(value, Scalar):
        return value
    return {"pool": Scalar(value=fields.given(value).text, text=fields.given(value).text, at=value.at)}


def listed(value: object) -> object:
    """The list for a single value."""
    return [value] if isinstance(value, Scalar) and value.value is not None else value


SHORT_POOL = {"type": "string", "pattern": f"^{job_values.LABEL}$"}


PoolForm = Annotated[PoolKeys, BeforeValidator(pool_form), OrShort(SHORT_POOL)]
NodeTypes = Annotated[
    list[fields.Filled],
    BeforeValidator(listed),
    Also({"maxItems": placing_rules.MAX_NODE_TYPES}),
    OrShort(dict(fields.FILLED)),
]


Tolerated = Annotated[int, *fields.within(1, placing_rules.MAX_TOLERATED)]


class TolerationKeys(Section):
    """Taints of nodes that the job puts up with."""

    taint_key: fields.NodeLabel | None = key(
        "text", "Key of the taints (default: with `operator: Exists` any).", written="key"
    )
    operator: fields.TolerationOperatorName = key(
        "`Equal`, `Exists`",
        "`Equal`: the taint has this `value`. `Exists`: it may have any.",
        "Equal",
    )
    value: fields.JobLabel = key("text", "Value of the taints (default: empty).", "")
    effect: fields.TaintEffectName | None = key(
        "`NoSchedule`, `PreferNoSchedule`, `NoExecute`", "Effect of the taints (default: any)."
    )
    seconds: Tolerated | None = key(
        "whole number",
        "With `NoExecute`: how much longer the job stays where it runs already when the taint comes. It is not placed "
        "there again (default: for ever, and it is placed there).",
    )


class LabelExpressionKeys(Section):
    """What one label of a node must be like."""

    label: fields.NodeLabel = key("text", "Name of the label.", default=..., written="key")
    operator: fields.LabelOperatorName = key(
        "`In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`",
        "`In`: it has one of the `values`. `NotIn`: it has none of them, or is not there. `Gt`, `Lt`: it is a whole "
        "number above or below the value.",
        "In",
    )
    values: Annotated[
        list[fields.NodeLabelValue],
        BeforeValidator(listed),
        Also({"maxItems": placing_rules.MAX_EXPRESSION_VALUES}),
        OrShort({"type": fields.SCALARS}),
    ] = key("list of texts, or one", "With `In` and `NotIn`: the values. With `Gt` and `Lt`: one whole number.", [])


AffinityTerm = Annotated[list[LabelExpressionKeys], Also({"minItems": 1, "maxItems": placing_rules.MAX_EXPRESSIONS})]
Weight = Annotated[int, *fields.within(1, placing_rules.MAX_WEIGHT)]


class PreferredTermKeys(Section):
    """Nodes that the job would rather have."""

    weight: Weight = key("whole number 1…100", "What a node costs more for which not all expressions hold.", 1)
    all: AffinityTerm = key("list of maps", "Expressions, see below.", default=...)


class AffinityKeys(Section):
    """Nodes that the job needs, or would rather have, see docs/pools.md."""

    required: Annotated[list[AffinityTerm], Also({"maxItems": placing_rules.MAX_TERMS})] = key(
        "list of lists of maps", "Only nodes for which all expressions of one of these lists hold, see below.", []
    )
    preferred: Annotated[list[PreferredTermKeys], Also({"maxItems": placing_rules.MAX_TERMS})] = key(
        "list of maps", "Nodes that are filled first, see below: those that cost least.", []
    )


class TopologyKeys(Section):
    """How close to each other the nodes of the job are to be, see docs/topology.md."""

    required: Annotated[fields.NodeLabel, Also({"not": {"const": NO_LEVEL}})] | None = key(
        "level, like `rack`", "All its nodes have the same value of this label (default: they may be anywhere)."
    )
    preferred: fields.NodeLabel | None = key(
        "level, or `none`",
        "They have as few values of this label as can be (default: with GPUs and `placement: pack`, of the finest).",
    )


class TimeoutsKeys(Section):
    """The limits in time of one attempt."""

    check_in: fields.Span = key("duration", "From placement until every execution is armed; does not slide.", "10m")
    grace: fields.Span = key("duration", "Between SIGTERM and SIGKILL.", "10s")
    fetch: fields.Span = key("duration", "How long the inputs of an execution may take; `check_in` comes on top.", "1h")
    stall: fields.Span = key("duration", "How long an input may go without a byte.", "5m")
    store: fields.Span = key("duration", "How long outputs may take to the depot, after user code has ended.", "24h")
    run: fields.Span | None = key("duration", "Longest time that user code may run (default: no limit).")
    queue: fields.Span | None = key(
        "duration",
        "Longest time of each attempt in the queue; what it waits outside does not count (default: no limit).",
    )
    expected: fields.Span | None = key(
        "duration", "How long user code will run: a hint for estimates, at most `run` (default: not known)."
    )
    lost_after: fields.LostAfter = key(
        "duration 60s…7d", "How long a node may be silent before what it runs is lost; see docs/fencing.md.", "90s"
    )
    preempt: fields.Preempt | None = key(
        "duration up to 1h",
        "Between notice and SIGKILL where the job comes back after the stop: preempted, suspended, its node drained "
        "(default: the larger of `grace` and 30s); never more than 5m, whatever it says. See docs/preemption.md.",
    )
    idle: fields.Idle = key(
        "duration from 10s, `none`",
        "How long the job may go unused before it is stopped (default: 2h if it is interactive, else what its project "
        "says, else `none`); see docs/development-environments.md.",
    )


class OnPreemptKeys(Section):
    """What happens when the job is preempted, suspended, or moved off a node that is drained."""

    signal: fields.PreemptSignalName = key(
        "`TERM`, `HUP`, `INT`, `QUIT`, `USR1`, `USR2`", "What every rank gets when the grace begins.", "TERM"
    )
    restart: fields.Flag = key(
        "`true`, `false`",
        "Whether it waits for its next start after it was preempted; otherwise it ends as stopped.",
        default=True,
    )


class RestartsKeys(Section):
    """When the whole gang starts again as a new attempt after a failure."""

    limit: Restarts = key("whole number 0…1000", "How often after failures of user code.", 0)
    infrastructure: Restarts = key(
        "whole number 0…1000",
        "How often after failures that are not the code's: lost nodes, daemons, images, ports, GPUs.",
        10,
    )
    backoff: fields.Backoff = key(
        "duration from 1s",
        "Pause before the second restart, doubled before each one after it; the first comes at once.",
        "5s",
    )
