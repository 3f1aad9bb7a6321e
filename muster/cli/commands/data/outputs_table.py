"""Files that jobs have left, as a table and as rows for spreadsheets."""

from collections.abc import Sequence

from muster.cli.output.documents import csv_text
from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.documents import document
from muster.domain.data.outputs import OutputFile
from muster.domain.quantity import moment_text, size_text


def outputs_table(files: Sequence[OutputFile]) -> TextTable:
    """A line for each file."""
    columns: tuple[str | Column, ...] = (Column("RANK", right=True), "PATH", Column("SIZE", right=True), "STORED")
    return listing(
        columns,
        (
            (
                str(each.rank),
                each.path,
                size_text(each.size),
                "-" if each.stored_at is None else moment_text(each.stored_at),
            )
            for each in files
        ),
    )


def outputs_csv(files: Sequence[OutputFile]) -> str:
    """A row for each file."""
    return csv_text(
        ["rank", "path", "size", "stored_at", "sha256"],
        ([each.rank, each.path, each.size, document(each.stored_at), each.sha256] for each in files),
    )
