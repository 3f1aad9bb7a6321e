"""Attachments as a table."""

from collections.abc import Sequence
from datetime import datetime

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.cli.output.units import size_text, span_text
from muster.domain.attachments.request import OpenedAttachment


def attachments_table(opened: Sequence[OpenedAttachment], now: datetime) -> TextTable:
    """One line an attachment, the oldest first."""
    rows = (
        (
            each.attachment,
            f"{each.job_name} ({each.job})",
            str(each.rank),
            each.node,
            each.account,
            f"{each.kind} {each.about}".rstrip(),
            span_text(now - each.since),
            size_text(each.bytes_in),
            size_text(each.bytes_out),
        )
        for each in opened
    )
    return listing(
        (
            "ID",
            Column("JOB", least=10),
            "RANK",
            Column("NODE", spare=2),
            "ACCOUNT",
            Column("WHAT", least=12),
            "FOR",
            Column("IN", spare=1),
            Column("OUT", spare=1),
        ),
        rows,
    )
