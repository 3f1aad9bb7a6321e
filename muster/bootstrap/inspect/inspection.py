"""Looks at many computers at once."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from muster.bootstrap.inspect.checks import Finding, Situation, check, compare
from muster.bootstrap.inspect.facts import MachineFacts, parse
from muster.bootstrap.inspect.probe import PROBE_LIMIT, Question, script
from muster.bootstrap.request import MachineRequest
from muster.bootstrap.ssh.executor import CommandFailedError, Executor, Shell
from muster.domain.errors import MusterError

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")

Connect = Callable[[MachineRequest], Awaitable[Executor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """A computer that was looked at; or why it could not be."""

    wish: MachineRequest
    shell: Shell | None = None
    facts: MachineFacts | None = None
    problem: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """The name of the node that it is, or would be; the name by which it was given where that is not known."""
        return self.wish.name or (self.facts.hostname if self.facts is not None else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspector:
    """How computers are looked at."""

    connect: Connect
    password: Callable[[], Awaitable[str]]
    """Asks for sudo's password, at most once."""
    coordinator: str | None = None
    agents_port: int = 0
    """The port on which it serves agents; 0: not known."""
    parallel: int = 8
    needs_root: bool = True
    """Whether those are given up where nobody can be root."""
    tell: Callable[[str, str], None] = field(default=lambda *_: None)
    """Hears for each computer what is being done."""

    async def look(
        self, wishes: Sequence[MachineRequest], situation: Callable[[MachineRequest, MachineFacts], Situation]
    ) -> tuple[Inspected, ...]:
        """Each computer with all that is to be said of it, in the same order; their connections stay open."""
        allow_threads(self.parallel)
        seen = await for_each(wishes, self.parallel, self._look)
        known = [each.facts for each in seen if each.facts is not None]
        beside = iter(compare(known))
        return tuple(
            each
            if each.facts is None
            else replace(each, findings=(*check(each.facts, situation(each.wish, each.facts)), *next(beside)))
            for each in seen
        )

    async def _look(self, wish: MachineRequest) -> Inspected:
        self.tell(str(wish.target), "connects")
        try:
            shell = Shell(await self.connect(wish), self.password)
        except MusterError as error:
            return Inspected(wish=wish, problem=str(error))
        self.tell(str(wish.target), "looks")
        try:
            facts = await self._probe(shell, wish)
        except MusterError as error:
            await shell.close()
            return Inspected(wish=wish, problem=str(error))
        except BaseException:
            await shell.close()
            raise
        return Inspected(wish=wish, shell=shell, facts=facts)

    async def _probe(self, shell: Shell, wish: MachineRequest) -> MachineFacts:
        run = shell.root
        try:
            await shell.become_root()
        except MusterError:
            if self.needs_root:
                raise
            run = shell.run
        asked = Question(coordinator=self.coordinator, agents_port=self.agents_port, address=wish.address)
        question = script(asked).encode()
        asked_at = time.time()
        output = await run("exec sh -s", stdin=(question,), limit=PROBE_LIMIT)
        if output.code:
            raise CommandFailedError(f"the probe failed: {output.last_words}")
        return parse(output.out, asked_at=asked_at, answered_at=time.time())


async def close_all(seen: Sequence[Inspected]) -> None:
    """Leave all computers."""
    for each in seen:
        if each.shell is not None:
            with suppress(MusterError):
                await each.shell.close()


async def for_each(items: Sequence[_Item], parallel: int, work: Callable[[_Item], Awaitable[_Answer]]) -> list[_Answer]:
    """The answers in the order of the items; at most so many are worked on at a time."""
    turn = asyncio.Semaphore(parallel)

    async def one(item: _Item) -> _Answer:
        async with turn:
            return await work(item)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one(item), name=f"computer {number}") for number, item in enumerate(items)]
    return [task.result() for task in running]


def allow_threads(parallel: int) -> None:
    """Let so many commands block at a time: a computer that hangs holds up none of the others."""
    threads = 2 * parallel + (os.cpu_count() or 1)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads, thread_name_prefix="ssh"))
