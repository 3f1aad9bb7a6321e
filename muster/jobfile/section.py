"""What the maps of a job file have in common, and the maps about rights, frameworks and exit codes."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from muster.domain.jobs.frameworks.framework import MOST_RESTARTS_IN_PLACE, FrameworkName
from muster.domain.jobs.job import DEFAULT_PIDS, MOST_PIDS
from muster.jobfile import fields
from muster.jobfile.document import Scalar


@dataclass(frozen=True, slots=True, eq=False)  # by identity, because typing hashes annotations
class Also:
    """More than a type says by itself, in the JSON Schema."""

    schema: dict[str, Any]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), **self.schema}


Pids = Annotated[int, *fields.within(1, MOST_PIDS)]


class Section(BaseModel):
    """Keys that stand together in one map; a key that is not listed is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def key(title: str, description: str, default: Any = None) -> Any:  # noqa: ANN401 - of any key, as pydantic.Field
    """How a key is described, for its check, the reference and the JSON Schema."""
    return Field(default, title=title, description=description)


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


class ExitCodesKeys(Section):
    """What exit codes of user code mean when the gang could start again; `fail` wins over `restart`."""

    restart: fields.ExitCodeRanges | None = key(
        "exit codes like `1,3-5`", "Only these are worth another attempt (default: all)."
    )
    fail: fields.ExitCodeRanges | None = key(
        "exit codes like `1,3-5`", "These end the job, however many restarts are left."
    )
