"""Volumes that nodes keep as a table."""

from collections.abc import Sequence

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.domain.data.volume import KeptVolumeView
from muster.domain.quantity import moment_text, size_text

JOBS_LISTED = 3
"""Jobs that use a volume or an image of which a line of the table has the ids."""


def volumes_table(volumes: Sequence[KeptVolumeView]) -> TextTable:
    """A line for each volume."""
    columns: tuple[str | Column, ...] = (
        "NODE",
        "PROJECT",
        "NAME",
        Column("SIZE", right=True),
        "LAST USED",
        "IN USE BY",
    )
    return listing(
        columns,
        (
            (
                each.node if each.connected else f"{each.node} (away)",
                each.project,
                each.name,
                size_text(each.bytes),
                moment_text(each.used_at),
                users_text(each.jobs),
            )
            for each in volumes
        ),
    )


def users_text(jobs: Sequence[str]) -> str:
    """The first jobs that use something, and how many more."""
    more = f", {len(jobs) - JOBS_LISTED} more" if len(jobs) > JOBS_LISTED else ""
    return ", ".join(jobs[:JOBS_LISTED]) + more or "-"
