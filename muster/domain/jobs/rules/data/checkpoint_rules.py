"""What is wrong with the checkpoints of a role."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from muster.domain.data.checkpoint import MOST_CHECKPOINTS_KEPT, JobCheckpoint
from muster.domain.data.pattern import NamePatternError, name_pattern
from muster.domain.fault import Fault
from muster.domain.jobs.job import Role
from muster.domain.jobs.placeholders import placeholder_names
from muster.domain.jobs.rules import job_values as values
from muster.domain.jobs.rules.data.output_rules import output_place
from muster.domain.jobs.rules.data.volume_rules import volume_path
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.quoting import quote

DONE_PATTERN = r"^[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
"""The pattern of such a name, as far as the JSON Schema says it."""


def done_pattern(text: str) -> Wrong | None:
    """A name with wildcards by which a checkpoint is known to be whole."""
    if text.startswith("/") or not text.isprintable():
        return Wrong(f"{quote(text)} is no name below the checkpoint; write one like .metadata or **/done")
    try:
        name_pattern(text)
    except NamePatternError as error:
        return Wrong(str(error))
    return None


def checkpoint_faults(role: Role) -> Iterator[Fault]:
    """Everything that is wrong with what a role saves, by paths below the role."""
    checkpoint = role.checkpoint
    if checkpoint is None:
        return
    yield from _told("keep", values.number(checkpoint.keep, 1, MOST_CHECKPOINTS_KEPT))
    yield from _told("settle", values.duration(checkpoint.settle))
    yield from _told("done", done_pattern(checkpoint.done) if checkpoint.done else None)
    yield from _store(checkpoint)
    if checkpoint.path is None:
        return
    if role.image is None:
        message = "needs an image: a plain process finds the directory by the variable MUSTER_CHECKPOINT_DIR"
        yield Fault(path=("checkpoint", "path"), message=message)
    else:
        yield from _place(role, checkpoint.path)


def checkpoint_store(text: str) -> Wrong | None:
    """A place in a store to which checkpoints go."""
    if any(placeholder_names(text)):
        return Wrong(
            "is one place for all executions and attempts, so no placeholders like {{muster:rank}} stand in it"
        )
    return output_place(text)


def _store(checkpoint: JobCheckpoint) -> Iterator[Fault]:
    if checkpoint.to:
        yield from _told("to", checkpoint_store(checkpoint.to))
        if not checkpoint.secret:
            yield from _told("secret", Wrong("is missing: name the secret that opens the store of `to`"))
    if checkpoint.secret:
        yield from _told("secret", values.label(checkpoint.secret))
        if not checkpoint.to:
            yield from _told("secret", Wrong("opens the store of `to`, which is missing"))


def _place(role: Role, path: str) -> Iterator[Fault]:
    if (wrong := volume_path(path)) is not None:
        yield from _told("path", wrong)
        return
    own = PurePosixPath(path)
    taken = [(PurePosixPath(mount.target), f"the mount at {mount.target}") for mount in role.mounts]
    taken += [(PurePosixPath(use.directory), f"the secret {use.secret}") for use in role.secrets if use.directory]
    taken += [(PurePosixPath(volume.target), f"the volume {volume.name}") for volume in role.volumes]
    taken += [(PurePosixPath(each.target), f"the input {each.name}") for each in role.inputs]
    for other, what in taken:
        if own.is_relative_to(other) or other.is_relative_to(own):
            yield Fault(path=("checkpoint", "path"), message=f"lies at {own}, where {what} is")


def _told(key: str, wrong: Wrong | None) -> Iterator[Fault]:
    if wrong is not None:
        yield Fault(path=("checkpoint", key), message=wrong.message, suggestion=wrong.suggestion)
