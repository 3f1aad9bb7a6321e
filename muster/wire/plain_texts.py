"""Texts of a job that name something: they are of one line, and every character of them can be seen."""

from collections.abc import Iterator

from muster.domain.job import JobSpec, Role
from muster.wire import checks


def require_plain(spec: JobSpec) -> None:
    """Refuse a job that names something with characters that act on a terminal or hide; raises WireError.

    Commands, values of variables and contents of files are the user's own text, and may have any.
    """
    for label, value in spec.node_labels.items():
        checks.plain(label, "JobSpec.node_labels")
        checks.plain(value, "JobSpec.node_labels")
    for role in spec.roles:
        for where, text in _names(role):
            checks.plain(text, where)


def _names(role: Role) -> Iterator[tuple[str, str]]:
    yield "Role.image", role.image or ""
    yield "Role.workdir", role.workdir or ""
    yield "Role.user", role.user or ""
    yield "Resources.gpu_model", role.resources.gpu_model or ""
    for name in role.env:
        yield "Role.env", name
    for mount in role.mounts:
        yield "Mount.source", mount.source
        yield "Mount.target", mount.target
    for file in role.files:
        yield "InlineFile.path", file.path
