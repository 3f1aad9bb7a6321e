"""What the maps of a job file have in common, and the map that says what containers may do beyond the default."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from muster.domain.jobs.job import DEFAULT_PIDS, MOST_PIDS
from muster.domain.jobs.job_values import twice
from muster.jobfile import fields

Pids = Annotated[int, *fields.within(1, MOST_PIDS)]


class Section(BaseModel):
    """Keys that stand together in one map; a key that is not listed is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def key(title: str, description: str, default: Any = None) -> Any:  # noqa: ANN401 - of any key, as pydantic.Field
    """How a key is described, for its check, the reference and the JSON Schema."""
    return Field(default, title=title, description=description)


def refuse_twice(what: str, values: list[str]) -> None:
    """Raise FieldError where a value comes twice."""
    fields.ruled(values, twice(what, values))


def _capabilities_differ(capabilities: list[str]) -> list[str]:
    refuse_twice("the capability", capabilities)
    return capabilities


class SecurityKeys(Section):
    """What containers may do beyond the default; the project must be opened for it, see docs/containers.md."""

    capabilities: Annotated[list[fields.Capability], AfterValidator(_capabilities_differ)] = key(
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
