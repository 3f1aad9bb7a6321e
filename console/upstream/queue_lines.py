"""The queue as the coordinator tells it, page after page."""

from muster.client.client import Client
from muster.domain.fleet.standing_view import QueueLine

MOST_QUEUE_PAGES = 20
"""Pages of the queue, of a thousand jobs each, that are read at once."""


async def queue_lines(client: Client) -> list[QueueLine]:
    """The lines of the queue; of a longer one the first ones. Raises MusterError."""
    lines, page = list[QueueLine](), ""
    for _ in range(MOST_QUEUE_PAGES):
        found = await client.projects.queue(page=page)
        lines += found.lines
        if not (page := found.next_page):
            break
    return lines
