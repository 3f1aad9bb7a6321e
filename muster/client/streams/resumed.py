"""Streams of the coordinator over breaks of the connection."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from muster.client.calls import Calls, Patience
from muster.domain.errors import UnavailableError


async def resumed(
    calls: Calls,
    call: Any,  # noqa: ANN401 - a call of a stub, whose two kinds mypy cannot tell apart here
    request: Any,  # noqa: ANN401 - its request
) -> AsyncGenerator[Any, None]:
    """The messages of a call that is made again when its stream breaks, until it ends by itself.

    Whoever reads them changes the request meanwhile, so that it asks for what comes next.
    """
    patience = Patience()
    while True:
        try:
            async with aclosing(calls.stream(call, request)) as messages:
                async for message in messages:
                    patience.renew()
                    yield message
        except UnavailableError as error:
            await patience.pause_or_raise(error)
        else:
            return
