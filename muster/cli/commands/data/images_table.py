"""Images of nodes as tables, and in words what has become of those that were to go or to come."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from muster.cli.commands.data.volumes_table import users_text
from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.domain.data.kept.image import ClearOutcome, ImageFate, ImageView
from muster.domain.data.kept.pull import PullView
from muster.domain.quantity import moment_text, size_text

FATES: Mapping[ClearOutcome, str] = MappingProxyType(
    {
        ClearOutcome.REMOVED: "removed",
        ClearOutcome.SHARED: "stays, as others have named it or made images of it",
        ClearOutcome.IN_USE: "stays, as it is in use",
        ClearOutcome.UNKNOWN: "the agent has pulled no such image",
        ClearOutcome.FAILED: "stays, as the engine did not remove it",
        ClearOutcome.LATER: "stays for now, as the time is over: clear again",
    }
)
"""What has become of an image, for people."""

_DIGITS = 12
"""Digits of an id or a digest that are shown: as many as engines show."""


def images_table(images: Sequence[ImageView]) -> TextTable:
    """A line for each image."""
    columns: tuple[str | Column, ...] = ("NODE", "IMAGE", "ID", Column("SIZE", right=True), "LAST USED", "IN USE BY")
    return listing(
        columns,
        (
            (
                each.node if each.connected else f"{each.node} (away)",
                name_text(each.names),
                short_id(each.id),
                size_text(each.bytes) if each.bytes else "-",
                moment_text(each.used_at),
                users_text(each.jobs),
            )
            for each in images
        ),
    )


def fates_table(fates: Sequence[ImageFate]) -> TextTable:
    """A line for each image that was to go."""
    return listing(
        ("IMAGE", Column("SIZE", right=True), "WHAT"),
        (
            (
                name_text((each.image,)),
                size_text(each.bytes) if each.bytes else "-",
                f"{FATES[each.outcome]}: {each.why}" if each.why else FATES[each.outcome],
            )
            for each in fates
        ),
    )


def pull_table(pull: PullView) -> TextTable:
    """A line for each node that was to pull an image."""
    return listing(
        ("NODE", "DIGEST", Column("SIZE", right=True), "WHAT"),
        (
            (
                each.node,
                short_id(each.digest or each.id) or "-",
                size_text(each.bytes) if each.bytes else "-",
                f"{each.step}: {each.why}" if each.why else each.step,
            )
            for each in pull.nodes
        ),
    )


def name_text(names: Sequence[str]) -> str:
    """The name of an image with a tag, where it has one, and how many more it has."""
    named = [each for each in names if "@" not in each] or [*names]
    if not named:
        return "-"
    repository, at, digest = named[0].partition("@")
    more = f" (+{len(names) - 1})" if len(names) > 1 else ""
    return (f"{repository}@sha256:{short_id(digest)}" if at else repository) + more


def short_id(id_: str) -> str:
    """The first digits of an id or a digest."""
    return id_.removeprefix("sha256:")[:_DIGITS]
