"""Jobs that the tests submit."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from muster.domain.jobs.job import JobSpec, PortRequest, Resources, Role, Timeouts

CHECK_IN = timedelta(seconds=60)
GRACE = timedelta(seconds=5)


def shell(script: str, workers: int = 1, **keys: Any) -> JobSpec:
    """A job whose workers run a script; keys are fields of the job, of its role or of its limits in time."""
    return command("/bin/sh", "-c", script, workers=workers, **keys)


def command(*words: str, workers: int = 1, **keys: Any) -> JobSpec:
    """A job whose workers run a program."""
    spec = JobSpec(
        name="job",
        roles=(Role(count=workers, command=words, resources=Resources(cpu_millis=100)),),
        timeouts=Timeouts(check_in=CHECK_IN, grace=GRACE),
    )
    return with_keys(spec, **keys)


def with_keys(spec: JobSpec, **keys: Any) -> JobSpec:
    """The job with other fields, of itself, of its roles or of its limits in time."""
    timeouts = {key: keys.pop(key) for key in ("check_in", "grace", "preempt", "run") if key in keys}
    role: dict[str, Any] = {
        key: keys.pop(key)
        for key in ("env", "files", "image", "resources", "secrets", "user", "workdir")
        if key in keys
    }
    if "ports" in keys:
        role["ports"] = tuple(PortRequest(name=name, port=port) for name, port in keys.pop("ports").items())
    if "gpus" in keys:
        role["resources"] = Resources(cpu_millis=100, gpus=keys.pop("gpus"))
    return replace(
        spec,
        timeouts=replace(spec.timeouts, **timeouts),
        roles=tuple(replace(each, **role) for each in spec.roles),
        **keys,
    )
