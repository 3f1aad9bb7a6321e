"""A run of chaos: jobs flow while things break, everything is mended, and what is left is looked at."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.domain.fleet.node import NodeState
from muster.domain.ids import JobId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import JobView, LogLine
from tests.e2e.chaos import faults, jobs
from tests.e2e.chaos.customers import Customers
from tests.e2e.chaos.damage import Damage, uptime
from tests.e2e.chaos.disks import Disk
from tests.e2e.chaos.leftovers import Strangers, cgroups_of_ours, containers_of_ours, processes_of_ours
from tests.e2e.chaos.story import Story
from tests.e2e.chaos.verdict import UNPROVEN, Job
from tests.e2e.chaos.visitors import Visitors
from tests.e2e.deployment import Deployment
from tests.e2e.fleet import Node

REST_WITHIN = 300.0
"""Seconds after the last fault. A gang that starts again after each of several failures may take some."""

READ_WITHIN = 120.0
LEFT_WITHIN = 60.0
LOOK_EVERY = 1.0
GPUS = 4

GANG_SECONDS = 130.0
"""Seconds for which the gangs run that are there for the set pieces of long runs."""


@dataclass(slots=True)
class Campaign:
    """One run."""

    muster: Deployment
    seed: int
    seconds: float
    story: Story
    disks: Mapping[str, Disk]
    """Disks that can be filled, by place."""
    strangers: list[Strangers] = field(default_factory=list)

    async def run(self) -> None:
        """Everything, from the first agent to the last look; what must not be is in the story's findings."""
        chance = Random(self.seed)
        nodes = [node.name for node in self.muster.fleet.nodes]
        plan = faults.drawn(chance, self.seconds, nodes, list(self.disks))
        self.story.tell(f"seed {self.seed}: {len(plan)} faults in {self.seconds:.0f} s")
        damage = Damage(self.muster, self.disks, self.story)
        self._set_up(damage)
        try:
            async with self._client() as client:
                customers = Customers(client, self.story)
                async with _beside(damage):
                    orders = jobs.drawn(chance, self._stamps, self._mark, max(1.0, self.seconds / 3))
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(customers.order(orders, self.seconds), name="customers")
                        visitors = Visitors(client, self.story, Random(self.seed))
                        tasks.create_task(visitors.come(self.seconds), name="visitors")
                        for number, at in enumerate(faults.gangs_wanted_at(self.seconds), start=1):
                            order = jobs.gang(chance, number, self._stamps, self._mark, GANG_SECONDS)
                            tasks.create_task(customers.order_at(at, order), name=order.spec.name)
                        for fault in plan:
                            tasks.create_task(damage.suffer(fault), name=str(fault))
                    self.story.tell("all is mended; waiting for rest")
                    await self._rest(client)
                await self._look(client, customers, damage)
        finally:
            for strangers in self.strangers:
                strangers.end()

    @property
    def _stamps(self) -> Path:
        return self.muster.directory / "stamps"

    @property
    def _mark(self) -> str:
        """What all user code of this run has in its environment."""
        return f"{self.muster.directory}"

    def _client(self) -> Client:
        return self.muster.client

    def _set_up(self, damage: Damage) -> None:
        self.muster.shared(self._stamps.name)
        damage.start_relay()
        for node in self.muster.fleet.nodes:
            self.strangers.append(Strangers(node))
            damage.start_agent(node)
        self.muster.await_nodes(len(self.muster.fleet.nodes))

    async def _rest(self, client: Client) -> None:
        """Return when nothing is under way any more."""
        unrest = "nobody has looked"
        limit = self.story.now + REST_WITHIN
        while self.story.now < limit:
            unrest = await self._unrest(client)
            if not unrest:
                self.story.tell("all is at rest")
                return
            await asyncio.sleep(LOOK_EVERY)
        self.story.find(f"no rest {REST_WITHIN:.0f} s after the last fault: {unrest}")

    async def _unrest(self, client: Client) -> str:
        """What is still under way; empty if nothing is."""
        try:
            live = [job async for job in client.jobs.list() if not job.phase.ended]
            views = [await client.jobs.get(job.id) async for job in client.jobs.list()]
            nodes = await client.nodes.list()
            attachments = await client.attachments.list()
        except MusterError as error:
            return str(error)
        incomplete = [
            execution.id
            for view in views
            for attempt in view.attempts
            for execution in attempt.executions
            if execution.node is not None and not execution.log_complete
        ]
        unready = [node.name for node in nodes if node.state is not NodeState.READY or node.executions]
        directories = [
            path.name
            for node in self.muster.fleet.nodes
            for path in (self.muster.directory / node.name / "executions").glob("*")
        ]
        return "; ".join(
            f"{what}: {', '.join(map(str, which))}"
            for what, which in (
                ("live jobs", [f"{job.id} ({job.summary})" for job in live]),
                ("incomplete logs", incomplete),
                ("nodes not free or not ready", unready),
                ("directories", directories),
                ("attachments", [f"{each.attachment} to rank {each.rank} of {each.job}" for each in attachments]),
            )
            if which
        )

    async def _look(self, client: Client, customers: Customers, damage: Damage) -> None:
        """Compare what is there with what clients were told and with what user code says."""
        views = {job.id: await client.jobs.get(job.id) async for job in client.jobs.list()}
        self._account(views, customers)
        by_name = {errand.order.spec.name: errand for errand in customers.errands}
        for view in views.values():
            errand = by_name[view.spec.name]
            self._count(view)
            job = Job(
                view=view,
                stamps=errand.order.stamps,
                stopped_at_attempt=errand.stopped_at_attempt,
                lines={attempt.number: await self._lines(client, view, attempt.number) for attempt in view.attempts},
                spells=damage.spells,
                struck=damage.struck,
                booted_at=time.time() - uptime(),
            )
            for wrong in job.wrongs():
                self.story.find(wrong)
            for course in job.courses():
                self.story.counts["attempts that went through an outage of the coordinator"] += any(
                    True for _ in course.went_through()
                )
        self._count_fenced()
        for node in await client.nodes.list():
            free = sum(gpu.usable for gpu in node.inventory.gpus) - len(node.gpus_taken)
            if (free, node.executions, node.cpu_millis_taken) != (GPUS, (), 0):
                self.story.find(f"{node.name} has {free} of {GPUS} GPUs free and runs {node.executions}")
        for place in self.muster.fleet.nodes:
            for left in cgroups_of_ours(self.muster.directory / place.name):
                self.story.find(f"left: {left}")
        await self._clear(client)

    def _account(self, views: "dict[JobId, JobView]", customers: Customers) -> None:
        for errand in customers.errands:
            there = [view.id for view in views.values() if view.spec.name == errand.order.spec.name]
            if errand.id and not errand.deleted and there != [errand.id]:
                self.story.find(f"{errand.id} was acknowledged, and there are {there}")
            if errand.deleted and there:
                self.story.find(f"{errand.id} was deleted and is still there")
            if not errand.id:
                self.story.counts[f"doubtful submits that were {'' if there else 'not '}accepted"] += 1
                if len(there) > 1:
                    self.story.find(f"one submit made the jobs {there}")

    def _count(self, view: JobView) -> None:
        self.story.counts[f"jobs that {'' if view.phase is not JobPhase.STOPPED else 'were '}{view.phase}"] += 1
        self.story.counts["attempts"] += len(view.attempts)
        for attempt in view.attempts:
            if attempt.failure is not None:
                self.story.counts[f"first failures: {attempt.failure.kind}"] += 1
            self.story.counts["executions lost"] += sum(each.state is State.LOST for each in attempt.executions)
        for before in view.attempts[:-1]:
            if before.failure is not None and before.failure.kind is FailureKind.NODE_LOST:
                self.story.counts["new attempts after a node was lost"] += 1
        if UNPROVEN in view.summary:
            self.story.counts["jobs given up for want of a witness"] += 1
        told = f": {view.failure}" if view.failure is not None and view.phase is JobPhase.FAILED else ""
        self.story.tell(f"{view.spec.name} ({view.id}) {view.phase} after {len(view.attempts)} attempts{told}")

    def _count_fenced(self) -> None:
        """What agents cut off; a long run in which nothing was shows nothing about fencing."""
        cut = sum(agent.output.count("execution is cut off") for agent in self.muster.agents.values())
        self.story.counts["executions cut off by their agents"] += cut
        if self.seconds >= faults.LONG and not cut + self.story.counts["executions that a killer ended"]:
            self.story.find("nothing was cut off: this run shows nothing about fencing")

    async def _lines(self, client: Client, view: JobView, attempt: int) -> list[LogLine]:
        async with asyncio.timeout(READ_WITHIN):
            lines = [line async for line in client.jobs.logs(view.id, attempt=attempt)]
        self.story.counts["lines of output"] += len(lines)
        markers = {line.text.decode() for line in lines if line.text.startswith(b"[muster] ")}
        for marker in markers:
            self.story.tell(f"{view.spec.name} attempt {attempt}: {marker}", counted="markers in logs")
        return lines

    async def _clear(self, client: Client) -> None:
        """Delete all jobs and end the agents; then nothing is left but what is other people's."""
        async for job in client.jobs.list():
            await client.jobs.delete(job.id, force=True)
        for agent in self.muster.agents.values():
            await asyncio.to_thread(agent.stop)
        for node in self.muster.fleet.nodes:
            for left in await self._left(node):
                self.story.find(f"left on {node.name}: {left}")
        for strangers in self.strangers:
            for harm in strangers.harm():
                self.story.find(harm)

    async def _left(self, node: Node) -> list[str]:
        """What is still there of ours when programs that end with their agent have had time to do so."""
        limit = self.story.now + LEFT_WITHIN
        while left := [*containers_of_ours(node), *processes_of_ours(node, self._mark)]:
            if self.story.now > limit:
                break
            await asyncio.sleep(LOOK_EVERY)
        return left


@asynccontextmanager
async def _beside(damage: Damage) -> AsyncIterator[None]:
    """Programs that end are started again, as long as the context lasts."""
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(damage.watch(), name="watch")
        try:
            yield
        finally:
            watch.cancel()


def summary(story: Story, seed: int) -> str:
    """The figures of a run, and its verdict as the last line."""
    counts = "\n".join(f"  {count:6d}  {what}" for what, count in sorted(story.counts.items()))
    findings = "\n".join(f"  {finding}" for finding in story.findings) or "  nothing"
    verdict = f"{len(story.findings)} findings" if story.findings else "all well"
    return f"{counts}\nfound:\n{findings}\nseed {seed}, {story.now:.0f} s, {os.cpu_count()} cores: {verdict}"
