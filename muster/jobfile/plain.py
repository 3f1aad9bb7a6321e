"""The plainest jobs, which most commands start: read without the library that finds out what is wrong with the others.

Loading that library takes longer than a small gang takes to start.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from muster.domain.jobs.job import JobSpec, Packing, Resources, Role
from muster.domain.jobs.lifecycle import success_named
from muster.domain.jobs.rules.filling_in import filled_in
from muster.domain.jobs.rules.job_rules import faults
from muster.jobfile.quantity import parse_cpus

_KEYS = frozenset(
    {"name", "workers", "command", "resources", "placement", "max_per_node", "priority", "project", "success"},
)
_RESOURCES = frozenset({"cpus", "gpus"})

_Choice = TypeVar("_Choice", bound=StrEnum)


def plain_job(document: Mapping[str, Any]) -> JobSpec | None:
    """The job of plain processes that a document with the keys of a job file describes.

    None: it says more than is understood here, or something is wrong with it; `muster.jobfile.load` reads every one,
    and what is understood here as it is here.
    """
    try:
        spec = filled_in(_job(document))
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    return None if any(faults(spec)) else spec


def _job(document: Mapping[str, Any]) -> JobSpec:
    resources = document.get("resources", {})
    if not (document.keys() <= _KEYS and resources.keys() <= _RESOURCES):
        raise LookupError
    return JobSpec(
        name=_text(document["name"]),
        roles=(
            Role(
                count=_whole(document.get("workers", 1)),
                command=_command(document["command"]),
                resources=Resources(
                    gpus=_whole(resources.get("gpus", 0)), cpu_millis=_cpus(resources.get("cpus", "1"))
                ),
            ),
        ),
        packing=_one_of(Packing, document.get("placement", Packing.PACK)),
        max_per_node=_whole(document["max_per_node"]) if "max_per_node" in document else None,
        priority=_whole(document.get("priority", 0)),
        project=_filled(document["project"]) if "project" in document else "",
        success=success_named(_filled(document["success"])) if "success" in document else None,
    )


def _command(words: object) -> tuple[str, ...]:
    if not isinstance(words, list):
        raise TypeError
    return tuple(map(_text, words))


def _cpus(value: object) -> int:
    return parse_cpus(value if type(value) is int else _text(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half a character is refused, as a ValueError
    return str(value)


def _filled(value: object) -> str:
    text = _text(value)
    if not text:
        raise ValueError
    return text


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _one_of(choices: type[_Choice], value: object) -> _Choice:
    return choices(_text(value))
