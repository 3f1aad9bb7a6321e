"""Tables where nothing is drawn: the text that Rich makes of them, without loading Rich, which takes a while."""

from collections.abc import Iterable, Sequence

_GAP = "  "


def plain_table(headers: Sequence[str], rows: Iterable[Sequence[str]], most: int) -> str | None:
    """What `render_tables.listing` gives of the same on paper that is `most` columns wide.

    None: how that looks only Rich can tell, as a text is of more than the plainest characters, or too long.
    """
    table = [[header.removeprefix(">") for header in headers], *rows]
    if not all(cell.isascii() and (cell.isprintable() and cell == cell.strip()) for row in table for cell in row):
        return None
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > most:
        return None
    sides = [str.rjust if header.startswith(">") else str.ljust for header in headers]
    return "".join(
        _GAP.join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)) + "\n"
        for row in table
    )
