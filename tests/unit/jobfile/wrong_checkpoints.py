"""Jobs with something wrong in what they save, each with the beginning of the sentence that says what."""

from collections.abc import Sequence
from typing import Any

from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.data.volume import Volume
from muster.domain.jobs.job import JobSpec, Mount
from tests.unit.jobfile.wrong_jobs import CONTAINER, PROCESS, role


def saving(spec: JobSpec = CONTAINER, *, more: Any = None, **how: Any) -> JobSpec:
    return role(spec, checkpoint=JobCheckpoint(**how), **(more or {}))


WRONG_CHECKPOINTS: Sequence[tuple[JobSpec, str]] = (
    (saving(keep=0), "roles[0].checkpoint.keep: must be at least 1, not 0"),
    (saving(keep=101), "roles[0].checkpoint.keep: must be at most 100, not 101"),
    (saving(done="/a"), 'roles[0].checkpoint.done: "/a" is no name below the checkpoint'),
    (saving(done="**.pt"), "roles[0].checkpoint.done: '**.pt': `**` stands for whole segments"),
    (saving(to="acme/saved", secret="store"), "roles[0].checkpoint.to: must be a bucket, or a place in one"),
    (saving(to="s3://acme/*", secret="store"), "roles[0].checkpoint.to: must be a bucket, or a place in one"),
    (
        saving(to="s3://acme/{{muster:rank}}", secret="store"),
        "roles[0].checkpoint.to: is one place for all executions and attempts, so no placeholders",
    ),
    (saving(to="s3://acme/saved"), "roles[0].checkpoint.secret: is missing: name the secret that opens the store"),
    (saving(secret="store"), "roles[0].checkpoint.secret: opens the store of `to`, which is missing"),
    (saving(to="s3://acme", secret="A"), "roles[0].checkpoint.secret: must be 1 to 63 lower-case letters"),
    (saving(path="saved"), "roles[0].checkpoint.path: "),
    (saving(path="/muster/outputs"), "roles[0].checkpoint.path: "),
    (saving(PROCESS, path="/saved"), "roles[0].checkpoint.path: needs an image: a plain process finds"),
    (
        saving(path="/data/saved", more={"mounts": (Mount(source="/x", target="/data"),)}),
        "roles[0].checkpoint.path: lies at /data/saved, where the mount at /data is",
    ),
    (
        saving(path="/v", more={"volumes": (Volume(name="v", path="/v", size=2**30),)}),
        "roles[0].checkpoint.path: lies at /v, where the volume v is",
    ),
)
