"""Clients that submit jobs, stop some and delete others, and remember what they were told."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from muster.client.client import Client
from muster.domain.errors import ExhaustedError, MusterError, UnavailableError, UnknownNameError
from tests.e2e.chaos.jobs import Fate, Order
from tests.e2e.chaos.story import Story

MOST_LIVE = 7
"""Jobs at a time: the testbed is one small machine."""

TRIES = 40
"""Tries of an order to stop or to delete."""


@dataclass(slots=True)
class Errand:
    """One job from its client's view."""

    order: Order
    id: str = ""
    """Empty: the submit was not acknowledged, so the job may be there or not."""
    stopped_at_attempt: int = 0
    """The newest attempt when the order to stop was acknowledged; 0: none was."""
    deleted: bool = False
    """Whether the removal was acknowledged, or asked for without an answer."""


@dataclass(slots=True)
class Customers:
    """All clients."""

    client: Client
    story: Story
    errands: list[Errand] = field(default_factory=list)

    async def order(self, orders: Iterator[Order], until: float) -> None:
        """Submit jobs until some time; returns when all stops and removals are through."""
        async with asyncio.TaskGroup() as tasks:
            for order in orders:
                if self.story.now > until:
                    return
                tasks.create_task(self._run(order), name=order.spec.name)
                await asyncio.sleep(order.pause)
                while self.story.now < until and await self._live() >= MOST_LIVE:  # noqa: ASYNC110 - many to ask
                    await asyncio.sleep(0.5)

    async def order_at(self, at: float, order: Order) -> None:
        """Submit one job at its time, or as soon as there is somebody to take it, however many there are."""
        await asyncio.sleep(max(0.0, at - self.story.now))
        while not await self._answered():  # noqa: ASYNC110 - many to ask
            await asyncio.sleep(0.2)
        await self._run(order)

    async def _run(self, order: Order) -> None:
        errand = Errand(order)
        self.errands.append(errand)
        try:
            errand.id = (await self.client.jobs.submit(order.spec, queue_anyway=True)).id
        except (UnavailableError, ExhaustedError) as error:  # whose entry in the audit log is missing may be there
            self.story.tell(
                f"{order.spec.name}: not known whether it was accepted ({error})", counted="submits in doubt"
            )
            return
        self.story.tell(f"{order.spec.name} is {errand.id}: {_described(order)}", counted="submits acknowledged")
        if order.fate is not Fate.LEFT:
            await asyncio.sleep(order.after)
            await self._end(errand)

    async def _end(self, errand: Errand) -> None:
        """Stop or delete it, again and again until that is acknowledged."""
        for _ in range(TRIES):
            try:
                if errand.order.fate is Fate.STOPPED:
                    errand.stopped_at_attempt = (await self.client.jobs.stop(errand.id)).attempts[-1].number
                else:
                    errand.deleted = True  # an answer may get lost
                    await self.client.jobs.delete(errand.id, force=True)
            except (UnavailableError, ExhaustedError):
                await asyncio.sleep(1.0)
            except UnknownNameError:
                if not errand.deleted:
                    self.story.find(f"{errand.id} was accepted and is not known any more")
                return
            else:
                self.story.tell(
                    f"{errand.order.spec.name} ({errand.id}): told to be {errand.order.fate}",
                    counted=f"jobs {errand.order.fate}",
                )
                return
        self.story.find(f"{errand.id} could not be {errand.order.fate} in {TRIES} tries")

    async def _answered(self) -> bool:
        with suppress(MusterError):
            await self.client.nodes.list()
            return True
        return False

    async def _live(self) -> int:
        try:
            return len([job async for job in self.client.jobs.list(limit=50) if not job.phase.ended])
        except MusterError:
            return 0


def _described(order: Order) -> str:
    env = order.spec.roles[0].env
    roles = " + ".join(f"{role.count} {role.name}" for role in order.spec.roles)
    bad = (
        f", rank {env['CHAOS_BAD_RANK']} ends with {env['CHAOS_BAD_CODE']} up to attempt {env['CHAOS_BAD_ATTEMPTS']}"
        if env["CHAOS_BAD_RANK"] != "-1"
        else ""
    )
    deaf = ", deaf" if env["CHAOS_DEAF"] == "1" else ""
    seconds = int(env["CHAOS_STEPS"]) / int(env["CHAOS_BURST"]) * float(env["CHAOS_PAUSE"])
    restarts = f"{order.spec.restarts.limit}/{order.spec.restarts.infrastructure}"
    silence = f"{order.spec.on_disconnect} {order.spec.timeouts.lost_after.total_seconds():.0f} s"
    return f"{roles}, {seconds:.0f} s, restarts {restarts}, {silence}{bad}{deaf}; to be {order.fate}"
