"""The inputs of the executions of one node, for which nothing is loaded until the first job has some."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.data.held import HeldInput
from agent.swarm.shelf import SwarmAccess
from muster.domain.data.job_input import FoundInput
from muster.domain.data.upload import DepotPass
from muster.domain.fleet.secret import DeliveredSecret
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.lean.absent import AGENTS_DO_WITHOUT, take_back
from muster.rpc.channel import Credentials

if TYPE_CHECKING:  # it loads OpenSSL, for its hashes
    from agent.data.agreed import AskForInputs, AskForKeys
    from agent.data.cache import InputCache
    from agent.data.fetching import InputFetching
    from agent.data.trees import AskForTree

INPUT_CACHE = "inputs"
"""The directory of inputs that are kept, in that of all that the node keeps."""
LAYER_CACHE = "layers"
"""The one of layers of images beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """What a node may keep of inputs."""

    directory: Path
    executions: Path
    size: int | None = None
    """Most bytes; None: half of the file system."""
    keep_free: int = 10
    """Percent of the file system that stay free."""


async def no_coordinator(
    execution: ExecutionId, found: Sequence[FoundInput], asked: Sequence[str]
) -> Sequence[FoundInput]:
    """No inputs, for agents without a coordinator."""
    del found, asked
    raise ExecutionError(FailureKind.RUNTIME, f"inputs: nobody tells this agent what those of {execution} are")


async def no_keys(execution: ExecutionId) -> Sequence[DeliveredSecret]:
    """No secrets of stores, for agents without a coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"inputs: nobody tells this agent what opens the stores of {execution}")


async def no_tree(execution: ExecutionId, tree: str) -> DepotPass:
    """No outputs of other jobs, for agents without a coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"inputs: nobody tells this agent where {tree} of {execution} is")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputQuestions:
    """What the coordinator is asked for inputs."""

    found: "AskForInputs" = no_coordinator
    tree: "AskForTree" = no_tree
    keys: "AskForKeys" = no_keys


class InputStore:
    """Has the inputs of executions fetched, and knows where they lie."""

    def __init__(
        self,
        settings: CacheSettings,
        ask: InputQuestions = InputQuestions(),
        coordinator: Callable[[], str] = str,
        credentials: Callable[[], Credentials] = Credentials,
        swarms: SwarmAccess | None = None,
    ) -> None:
        """Touch nothing yet; what `coordinator` and `credentials` give is asked again for each connection."""
        self._settings = settings
        self._ask = ask
        self._coordinator = coordinator
        self._credentials = credentials
        self._swarms = swarms
        self._fetching: InputFetching | None = None
        self._held: dict[ExecutionId, Mapping[str, HeldInput]] = {}

    async def fetch(self, assignment: Assignment, progress: Callable[[str], None]) -> None:
        """Have the inputs of an execution on this node; raises ExecutionError where that cannot be had."""
        if not assignment.role.inputs:
            return
        progress("fetching inputs")
        values = assignment.early_values
        own = tuple(each.filled(values.fill) for each in assignment.role.inputs)
        assignment = replace(assignment, role=replace(assignment.role, inputs=own))
        self._held[assignment.execution] = await self._loaded().fetch(assignment, progress)

    def held(self, execution: ExecutionId) -> Mapping[str, HeldInput]:
        """The inputs of an execution by their names."""
        return self._held.get(execution, {})

    def listed(self, assignment: Assignment, directories: Mapping[str, str]) -> bytes:
        """The file that tells user code what there is, in Valohai's form; `directories`: where it sees each."""
        held = self.held(assignment.execution)
        listed: dict[str, Any] = {}
        for each in assignment.role.inputs:
            files = [
                {
                    "name": file.path.rpartition("/")[2],
                    "path": f"{directories[each.name]}/{file.path}",
                    "size": file.size,
                    "uri": file.uri,
                    "checksums": {"sha256": file.sha256},
                    "metadata": [file.metadata] if file.metadata else [],
                }
                for file in held[each.name].files
            ]
            listed[each.name] = {"files": files}
        return f"{json.dumps(listed, indent=2)}\n".encode()

    def forget(self, execution: ExecutionId) -> None:
        """Note that an execution needs its inputs no more."""
        if self._held.pop(execution, None) is not None:
            self._loaded().cache.release(execution)
        if self._swarms is not None:
            self._swarms.shelf.forget(execution)

    def cache(self) -> "InputCache":
        """What the node keeps of inputs; loaded for that."""
        return self._loaded().cache

    def _loaded(self) -> "InputFetching":
        if self._fetching is None:
            take_back(AGENTS_DO_WITHOUT)  # servers of inputs are spoken to over TLS
            from agent.data.bucket_inputs import BucketSide  # noqa: PLC0415 - agents without such jobs do without its hashes
            from agent.data.cache import InputCache  # noqa: PLC0415 - as above
            from agent.data.fetching import InputFetching  # noqa: PLC0415 - as above
            from agent.data.layers.files import layers_go_first  # noqa: PLC0415 - as above
            from agent.data.mover.mover import Mover  # noqa: PLC0415 - as above
            from agent.data.trees import TreeAccess  # noqa: PLC0415 - as above

            given = self._settings
            goes_first = layers_go_first(given.directory.with_name(LAYER_CACHE))
            cache = InputCache(given.directory, given.executions, given.size, given.keep_free, goes_first=goes_first)
            access = TreeAccess(ask=self._ask.tree, coordinator=self._coordinator, credentials=self._credentials)
            buckets = BucketSide(keys=self._ask.keys, tell=self._ask.found, mover=Mover())
            self._fetching = InputFetching(
                cache, self._ask.found, self._ask.keys, trees=access, buckets=buckets, swarms=self._swarms
            )
        return self._fetching
