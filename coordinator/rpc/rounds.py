"""Those who come within a moment go on together, where what each does costs less than beginning with it."""

import asyncio


class Rounds:
    """One after the other; each begins when somebody comes, and lasts so many seconds."""

    def __init__(self, moment: float) -> None:
        self._moment = moment
        self._round: asyncio.Event | None = None
        """The one that is under way."""

    async def end(self) -> None:
        """Wait for the end of the round that is under way, or of one that begins now."""
        if self._round is None:
            self._round = asyncio.Event()
            asyncio.get_running_loop().call_later(self._moment, self._go)
        await self._round.wait()

    def _go(self) -> None:
        assert self._round is not None
        self._round.set()
        self._round = None
