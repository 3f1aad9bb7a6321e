"""Events as they come, over breaks of the connection; alike for jobs, nodes and the fleet."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from muster.client.calls import Calls
from muster.client.streams.resumed import resumed
from muster.domain.event import NumberedEvent

EventT = TypeVar("EventT", bound=NumberedEvent)


async def events_of(
    calls: Calls,
    call: Any,  # noqa: ANN401 - a call of a stub, whose two kinds mypy cannot tell apart here
    request: Any,  # noqa: ANN401 - its request, which has `after`
    read: Callable[[Any], EventT],
) -> AsyncGenerator[EventT, None]:
    """The events that a call tells; a broken connection is taken up again after the last one that was told."""
    async with aclosing(resumed(calls, call, request)) as pages:
        async for page in pages:
            for message in page.events:
                event = read(message)
                request.after = event.number
                yield event
