"""What projects keep in the depot, as a table."""

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.domain.data.depot_use import DepotUse
from muster.domain.quantity import counted, size_text


def storage_table(use: DepotUse) -> TextTable:
    """A line for each project."""
    columns: tuple[str | Column, ...] = (
        "PROJECT",
        *(Column(name, right=True) for name in ("USED", "LIMIT", "TREES", "OBJECTS")),
    )
    return listing(
        columns,
        (
            (name, size_text(held.bytes), size_text(held.limit), str(held.trees), str(held.objects))
            for name, held in sorted(use.projects.items())
        ),
    )


def depot_sentence(use: DepotUse) -> str:
    """All that the depot holds, in one sentence."""
    unnamed = ""
    if use.unnamed_objects:
        unnamed = f"; no job names {counted(use.unnamed_objects, 'object')} of these, {size_text(use.unnamed_bytes)}"
    return f"depot: {counted(use.objects, 'object')}, {size_text(use.bytes)}{unnamed}"
