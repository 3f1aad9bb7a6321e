"""Orders to pull images before executions need them: carried out one after the other, and told of meanwhile."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from agent.core.launching.handover import RegistryLogin
from agent.runtimes.runtime import Progress
from muster.domain.data.kept.pull import ImagePull, PulledHere, PullNews, PullStep
from muster.domain.jobs.failure import ExecutionError, FailureKind

log = logging.getLogger(__name__)

MOST_PULLS_WAITING = 16
"""Orders to pull an image that wait for those before them; what is more is refused."""

PULL_TIME = 3600.0
"""Seconds in which an image must have been pulled on an order."""


@runtime_checkable
class PullsImages(Protocol):
    """A runtime that can have images before executions need them."""

    async def pull_image(self, image: str, login: RegistryLogin | None, progress: Progress) -> PulledHere:
        """The image, as its registry has it now; raises ExecutionError."""
        ...


class OrderedPulls:
    """Pulls images onto one node where the coordinator says so."""

    def __init__(self, runtimes: Iterable[object], tell: Callable[[PullNews], object]) -> None:
        """`tell`: where news of orders go."""
        self._pulling = next((each for each in runtimes if isinstance(each, PullsImages)), None)
        self._tell = tell
        self._orders: asyncio.Queue[ImagePull] = asyncio.Queue(MOST_PULLS_WAITING)

    def take(self, order: ImagePull) -> None:
        """Have an image pulled, once those before it are."""
        try:
            self._orders.put_nowait(order)
        except asyncio.QueueFull:
            why = f"{MOST_PULLS_WAITING} images wait to be pulled onto it; pull this one again later"
            self._tell(PullNews(number=order.number, step=PullStep.FAILED, why=why))

    async def run(self) -> None:
        """Carry out orders, until cancelled."""
        while True:
            await self._carry_out(await self._orders.get())

    async def _carry_out(self, order: ImagePull) -> None:
        def progress(text: str) -> None:
            doing = text.removeprefix(f"pulling {order.image}").strip()
            self._tell(PullNews(number=order.number, step=PullStep.PULLING, doing=doing))

        try:
            there = await self._pulled(order, progress)
        except ExecutionError as error:
            log.warning("image not pulled on an order", extra={"image": order.image, "cause": str(error)})
            self._tell(PullNews(number=order.number, step=PullStep.FAILED, why=str(error)))
        else:
            log.info("image pulled on an order", extra={"image": order.image, "digest": there.digest})
            self._tell(PullNews(number=order.number, step=PullStep.PULLED, pulled=there))

    async def _pulled(self, order: ImagePull, progress: Progress) -> PulledHere:
        """The image; raises ExecutionError."""
        if self._pulling is None:
            raise ExecutionError(FailureKind.RUNTIME, "the node has no container engine")
        login = RegistryLogin(username=order.username, password=order.password) if order.username else None
        try:
            async with asyncio.timeout(PULL_TIME):
                return await self._pulling.pull_image(order.image, login, progress)
        except TimeoutError:
            message = f"image {order.image} was not there after {PULL_TIME / 60:.0f} minutes; the registry is too slow"
            raise ExecutionError(FailureKind.IMAGE, message) from None
