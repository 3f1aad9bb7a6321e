"""The secrets of the executions of one node: asked for when they are needed, in memory until they are handed over."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.core.launching.handover import RegistryLogin, handover, login, without_clashes
from agent.logs.mask import MASK_BLOCK, MASK_NOTHING, MOST_MASKED, Mask
from agent.secrets.directories import SecretDirectories
from muster.domain.fleet.secret import DeliveredSecret, Handover
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.secret_use import SECRETS_DIRECTORY, SECRETS_DIRECTORY_VARIABLE

Ask = Callable[[ExecutionId], Awaitable[tuple[DeliveredSecret, ...]]]
"""Gets the secrets of an execution from the coordinator; raises ExecutionError with what it says against that."""


async def nobody(execution: ExecutionId) -> tuple[DeliveredSecret, ...]:
    """No secrets, for agents without a coordinator."""
    del execution
    return ()


class ExecutionSecrets:
    """Asks once for each execution, and only for those that need something."""

    def __init__(self, directories: SecretDirectories | None = None, ask: Ask = nobody) -> None:
        self.directories = directories or SecretDirectories(None)
        self._get = ask
        self._delivered: dict[ExecutionId, tuple[DeliveredSecret, ...]] = {}
        self._handovers: dict[ExecutionId, Handover] = {}
        self._masks: dict[ExecutionId, Mask] = {}
        self._untidy: set[ExecutionId] = set()
        """Executions of which something may be in a directory."""

    async def fetch(self, assignment: Assignment, progress: Callable[[str], None]) -> None:
        """Have what the role of an execution names; raises ExecutionError where that cannot be had, or not be used."""
        if not assignment.role.secrets:
            return
        progress("asking for secrets")
        found = handover(assignment.role, await self._ask(assignment.execution))
        if found.files or assignment.role.runtime is RuntimeKind.DOCKER:
            self.directories.check()
        if not Mask.takes(found.masked):
            size = f"{MOST_MASKED} lines or blocks of {MASK_BLOCK} bytes"
            message = f"secrets: they have more than {size}, too many to be masked"
            raise ExecutionError(FailureKind.INVALID_OPTION, message)
        self._untidy.add(assignment.execution)
        self._handovers[assignment.execution] = found
        self._masks[assignment.execution] = Mask.of(found.masked)

    async def login(self, execution: ExecutionId, image: str) -> RegistryLogin | None:
        """Credentials for pulling the image of an execution; None: it is pulled without."""
        return login(image, await self._ask(execution))

    def added(self, assignment: Assignment, launch: Launch) -> Launch:
        """What an execution is launched with, its secrets included."""
        found = self._handovers.get(assignment.execution)
        if found is None:
            return launch
        secrets = without_clashes(found, assignment.role, launch)
        secrets = replace(secrets, masked=(*secrets.masked, *launch.secrets.masked))
        if not secrets.files:
            return replace(launch, secrets=secrets)
        container = assignment.role.runtime is RuntimeKind.DOCKER
        directory = SECRETS_DIRECTORY if container else str(self.directories.files(assignment.execution))
        return replace(launch, secrets=secrets, env={**launch.env, SECRETS_DIRECTORY_VARIABLE: directory})

    def mask(self, execution: ExecutionId) -> Mask:
        """What the log of an execution does not show."""
        return self._masks.get(execution, MASK_NOTHING)

    def message(self, execution: ExecutionId, text: str) -> str:
        """A text about an execution, without the values of its secrets."""
        return self.mask(execution).message(text)

    def adopt(self, execution: ExecutionId, *, started: bool) -> None:
        """Know again what is masked of an execution of an earlier agent; one that was not started is over."""
        mask = self.directories.mask(execution) if started else None
        if mask is not None:
            self._masks[execution] = mask
            self._untidy.add(execution)

    def handed_over(self, execution: ExecutionId) -> None:
        """Drop the values of an execution that runs: nobody needs them here any more."""
        self._delivered.pop(execution, None)
        self._handovers.pop(execution, None)

    async def clear(self, execution: ExecutionId) -> None:
        """Remove the secrets of an execution that is over and whose log is complete. Harmless when repeated.

        This is repeated at the end of all, as an arming that was interrupted may just have written something.
        """
        self.handed_over(execution)
        self._masks.pop(execution, None)
        if execution in self._untidy:
            await asyncio.to_thread(self.directories.clear, execution)

    async def forget(self, execution: ExecutionId) -> None:
        """Forget an execution that is being cleared away."""
        await self.clear(execution)
        self._untidy.discard(execution)

    def sweep(self) -> None:
        """Clear what is left of executions that were not adopted."""
        self.directories.sweep(self._untidy)

    async def _ask(self, execution: ExecutionId) -> tuple[DeliveredSecret, ...]:
        if execution not in self._delivered:
            self._delivered[execution] = await self._get(execution)
        return self._delivered[execution]
