"""A console of Rich that takes text as text: no markup, no emoji codes, and nothing that a terminal would obey."""

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from muster.domain.visible_text import hidden_in, visible


class PlainConsole(Console):
    """The console of the command line."""

    def __init__(self, stream: TextIO, width: int | None) -> None:
        super().__init__(file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is drawn, every character of it visible; only the console's own controls remain controls."""
        for segment in super().render(renderable, options):
            if segment.control is None and hidden_in(segment.text) is not None:
                yield Segment(visible(segment.text, lines=True), segment.style)
            else:
                yield segment
