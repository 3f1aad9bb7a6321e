"""What pydantic found wrong with a job file, in plain sentences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from muster.domain.quoting import nearest
from muster.jobfile.document import KEY, Loc, kind
from muster.jobfile.errors import FieldError
from muster.jobfile.models import JobKeys, RoleKeys
from muster.jobfile.section import keys_of

_COUNTS = ("workers", "count")
_FOREIGN: Mapping[str, Sequence[str]] = {
    "accelerators": ["resources.gpus", "gpus"],
    "args": ["command"],
    "backofflimit": ["restarts.limit", "limit"],
    "cap_add": ["security.capabilities", "capabilities"],
    "cmd": ["command"],
    "container": ["image"],
    "cpu": ["resources.cpus", "cpus"],
    "cwd": ["workdir"],
    "docker_image": ["image"],
    "environment": ["env"],
    "envs": ["env"],
    "gpu": ["resources.gpus", "gpus"],
    "gpu_count": ["resources.gpus", "gpus"],
    "gpu_fraction": ["resources.gpu_portion", "gpu_portion"],
    "gpu_name": ["resources.gpu_model", "gpu_model"],
    "gpu_share": ["resources.gpu_portion", "gpu_portion"],
    "gpu_type": ["resources.gpu_model", "gpu_model"],
    "instances": _COUNTS,
    "max_duration": ["timeouts.run", "run"],
    "max_restarts": ["restarts.limit", "limit"],
    "max_retries": ["restarts.limit", "limit"],
    "max_runtime": ["timeouts.run", "run"],
    "mem": ["resources.memory", "memory"],
    "mig_profile": ["resources.mig", "mig"],
    "namespace": ["project"],
    "node_selector": ["node_labels"],
    "nodes": _COUNTS,
    "nodeselector": ["node_labels"],
    "num_gpus": ["resources.gpus", "gpus"],
    "num_nodes": _COUNTS,
    "num_workers": _COUNTS,
    "parallelism": _COUNTS,
    "replicas": _COUNTS,
    "retries": ["restarts.limit", "limit"],
    "run": ["command"],
    "script": ["command"],
    "shm_size": ["resources.shm", "shm"],
    "tags": ["labels"],
    "tasks": _COUNTS,
    "time": ["timeouts.run", "run"],
    "time_limit": ["timeouts.run", "run"],
    "timeout": ["timeouts.run", "run"],
    "walltime": ["timeouts.run", "run"],
    "workers": _COUNTS,
    "working_dir": ["workdir"],
    "working_directory": ["workdir"],
    "world_size": _COUNTS,
}
"""What other systems, or other maps of a job, call a key; the first of the answers that exists counts."""
_AT_ONCE = "unknown key; write cpus, memory and gpus directly below resources: each execution gets what it asks for"
_BESIDE = "unknown key; exit codes stand beside restarts: exit_codes: {restart: 1-255, fail: 2}"
_TOLD: Mapping[tuple[int | str, ...], str] = {
    ("exit_codes", "success"): "is reserved for workflows and not accepted yet: exit code 0 alone is success today",
    ("restarts", "fail_on"): _BESIDE,
    ("restarts", "restart_on"): _BESIDE,
    ("resources", "limits"): _AT_ONCE,
    ("resources", "requests"): _AT_ONCE,
}
"""Keys of maps with a sentence of their own: kept for later versions, or from a system that says it otherwise."""
_OF_VOLUMES: Mapping[int | str, str] = {
    "host": "unknown key; directories of the node stand in mounts: mounts: [/opt/sets:/data]",
    "nfs": "is not accepted yet; mount it on the nodes, and name the directory in mounts",
}
"""The same for what people look for in a volume."""
_AS_LISTS: Mapping[str, str] = {
    "env": 'env: {NAME: "value"}',
    "labels": 'labels: {name: "value"}',
    "node_labels": 'node_labels: {name: "value"}',
    "resources": "resources: {gpus: 8, memory: 64Gi}",
    "ulimits": "ulimits: {nofile: 65536}",
    "inputs": 'inputs: {data: "https://example.org/data.tar"}',
    "outputs": 'outputs: {only: ["**/*.pt"], keep: 90d}',
    "volumes": "volumes: {scratch: {path: /scratch, size: 500Gi}}; directories of the node stand in mounts",
}
"""Maps that other systems write as lists, each as it is written here."""


def findings(error: ValidationError) -> Iterator[tuple[Loc, FieldError]]:
    """Every error as the path it belongs to and what is wrong there."""
    for details in error.errors(include_url=False):
        unknown = details["type"] == "extra_forbidden"
        yield (*details["loc"], KEY) if unknown else details["loc"], _finding(details)


def _finding(details: ErrorDetails) -> FieldError:
    if details["type"] == "extra_forbidden":
        told = _OF_VOLUMES.get(details["loc"][-1]) if "volumes" in details["loc"] else _TOLD.get(details["loc"][-2:])
        if told is not None:
            return FieldError(told)
        if len(details["loc"]) > 1 and details["loc"][-1] in _OF_JOBS:
            return FieldError("unknown key here; it belongs to the job as a whole, so write it at the top of the file")
        return FieldError("unknown key", suggestion=_known_key(details["loc"]))
    if details["type"] in {"dict_type", "model_type"} and (form := _AS_LISTS.get(str(details["loc"][-1]))):
        return FieldError(f"must be a map, not {kind(details['input'])}; write it like {form}")
    context: Mapping[str, Any] = details.get("ctx", {})
    if isinstance(context.get("error"), FieldError):
        return FieldError(context["error"].message, suggestion=context["error"].suggestion)
    return FieldError(SENTENCES.get(details["type"], _any_other)(details["input"], context))


_OF_JOBS = frozenset(keys_of(JobKeys)) - keys_of(RoleKeys).keys() - {"workers", "roles"}
"""Keys that stand at the top of a file and nowhere else."""


def _any_other(value: object, _: Mapping[str, Any]) -> str:
    return f"does not take {kind(value)}"


SENTENCES: Mapping[str, Callable[[object, Mapping[str, Any]], str]] = {
    "missing": lambda _, __: "is missing",
    "dict_type": lambda value, _: f"must be a map, not {kind(value)}",
    "model_type": lambda value, _: f"must be a map, not {kind(value)}",
    "list_type": lambda value, _: f"must be a list, not {kind(value)}",
}
"""Sentences by type of pydantic's error; a test finds out which types the models can give."""


def _known_key(loc: Loc) -> str | None:
    """The key that was probably meant: one of this map, another system's word for one, or one of a map below."""
    *path, wrong = (str(part) for part in loc)
    model = _model_at(path)
    known = keys_of(model)
    foreign = (key for key in _FOREIGN.get(wrong.lower(), ()) if key.split(".")[0] in known)
    below = (f"{key}.{wrong}" for key, inner in _sections(model) if wrong in keys_of(inner))
    return next(foreign, None) or next(below, None) or nearest(wrong.lower().replace("-", "_"), known)


def _model_at(path: list[str]) -> type[BaseModel]:
    """The model whose keys stand in the map at `path`; list places and free names are passed over."""
    model: type[BaseModel] = JobKeys
    for part in path:
        if (info := keys_of(model).get(part)) is not None:
            model = _model_in(info.annotation) or model
    return model


def _sections(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """The keys of a model that hold one map with keys of its own."""
    for key, info in keys_of(model).items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield key, info.annotation


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model in a type such as `list[PortKeys]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
