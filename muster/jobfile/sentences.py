"""What pydantic found wrong with a job file, in plain sentences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from muster.domain.quoting import nearest
from muster.jobfile.document import KEY, Loc, kind
from muster.jobfile.errors import FieldError
from muster.jobfile.models import JobKeys

_COUNTS = ("workers", "count")
_FOREIGN: Mapping[str, Sequence[str]] = {
    "args": ["command"],
    "cmd": ["command"],
    "cpu": ["resources.cpus", "cpus"],
    "environment": ["env"],
    "gpu": ["resources.gpus", "gpus"],
    "instances": _COUNTS,
    "labels": ["node_labels"],
    "mem": ["resources.memory", "memory"],
    "node_selector": ["node_labels"],
    "replicas": _COUNTS,
    "shm_size": ["resources.shm", "shm"],
    "timeout": ["timeouts.run", "run"],
    "volumes": ["mounts"],
    "workers": _COUNTS,
    "working_dir": ["workdir"],
    "world_size": _COUNTS,
}
"""What other systems, or other maps of a job, call a key; the first of the answers that exists counts."""


def findings(error: ValidationError) -> Iterator[tuple[Loc, FieldError]]:
    """Every error as the path it belongs to and what is wrong there."""
    for details in error.errors(include_url=False):
        unknown = details["type"] == "extra_forbidden"
        yield (*details["loc"], KEY) if unknown else details["loc"], _finding(details)


def _finding(details: ErrorDetails) -> FieldError:
    if details["type"] == "extra_forbidden":
        return FieldError("unknown key", suggestion=_known_key(details["loc"]))
    context: Mapping[str, Any] = details.get("ctx", {})
    if isinstance(context.get("error"), FieldError):
        return FieldError(context["error"].message, suggestion=context["error"].suggestion)
    return FieldError(SENTENCES.get(details["type"], _any_other)(details["input"], context))


def _any_other(value: object, _: Mapping[str, Any]) -> str:
    return f"does not take {kind(value)}"


SENTENCES: Mapping[str, Callable[[object, Mapping[str, Any]], str]] = {
    "missing": lambda _, __: "is missing",
    "dict_type": lambda value, _: f"must be a map, not {kind(value)}",
    "model_type": lambda value, _: f"must be a map, not {kind(value)}",
    "list_type": lambda value, _: f"must be a list, not {kind(value)}",
}
"""By type of pydantic's error; a test finds out which types the models can give."""


def _known_key(loc: Loc) -> str | None:
    """The key that was probably meant: one of this map, another system's word for one, or one of a map below."""
    *path, wrong = (str(part) for part in loc)
    model = _model_at(path)
    foreign = (key for key in _FOREIGN.get(wrong.lower(), ()) if key.split(".")[0] in model.model_fields)
    if meant := next(foreign, None) or nearest(wrong.lower().replace("-", "_"), model.model_fields):
        return meant
    return next((f"{key}.{wrong}" for key, inner in _sections(model) if wrong in inner.model_fields), None)


def _model_at(path: list[str]) -> type[BaseModel]:
    """The model whose keys stand in the map at `path`; list places and free names are passed over."""
    model: type[BaseModel] = JobKeys
    for part in path:
        if part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _sections(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """The keys of a model that hold one map with keys of its own."""
    for key, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield key, info.annotation


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model in a type such as `list[PortKeys]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
