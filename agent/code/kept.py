"""Code as a node keeps it: fetched once, there for later, and copied for each execution."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from agent.code.copies import add_files, lay_out
from agent.code.questions import AskForCode
from agent.code.shared import SHARED_CODE_DIRECTORY, SharedCode
from agent.executions.file_faults import data_fault
from agent.swarm.shelf import SwarmAccess
from muster.domain.data.code import JobCode
from muster.domain.data.tree import ContentObject, ContentTree, MalformedTreeError, read_content_tree
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import InlineFile
from muster.domain.quantity import size_text
from muster.rpc.channel import Credentials
from muster.transfer.objects import ObjectFiles
from muster.transfer.progress import adding_up

if TYPE_CHECKING:  # loaded once there is something to fetch
    from muster.transfer.depot_client import DepotClient

log = logging.getLogger(__name__)

CODE_KEPT = 10 * 1024**3
"""Bytes of code that a node keeps for later; what was used longest ago goes first."""

FETCHED_TOGETHER = 256
"""Objects in one question to the depot."""

_PAUSE = 1.0
"""Seconds until a depot that was away is asked again."""


class KeptCode:
    """Keeps what was fetched below a directory of the node. Fetches one code at a time: the next may need the same."""

    def __init__(
        self,
        directory: Path,
        ask: AskForCode,
        coordinator: Callable[[], str],
        credentials: Callable[[], Credentials],
        kept: int = CODE_KEPT,
        swarms: SwarmAccess | None = None,
    ) -> None:
        """Touch nothing yet; what `coordinator` and `credentials` give is asked again for each connection.

        `swarms`: None: nothing comes from other nodes.
        """
        self._swarms = swarms
        self._directory = directory
        self._ask = ask
        self._coordinator = coordinator
        self._credentials = credentials
        self._kept = kept
        self._fetching = asyncio.Lock()
        self._shared = SharedCode(directory.with_name(SHARED_CODE_DIRECTORY))
        self._needed: dict[ExecutionId, ContentTree] = {}
        """The code of executions that are here, as far as its objects were looked at."""
        self._codes: dict[ExecutionId, JobCode] = {}
        """The code of executions that are here, with its tree."""
        self._offering: dict[ExecutionId, asyncio.Task[None]] = {}
        """What tells other nodes that code is here which executions share."""

    async def fetch(self, assignment: Assignment, code: JobCode, progress: Callable[[str], None]) -> None:
        """Have the code of an execution, whose tree is known, on this node; raises ExecutionError where it cannot."""
        execution = assignment.execution
        self._codes[execution] = code
        if not code.writable and await asyncio.to_thread(self._shared.holds, code.tree):
            self._offer_beside(assignment, code)
            return
        async with self._fetching:
            while True:
                try:
                    self._needed[execution] = await self._fetched(assignment, code, progress)
                except UnavailableError as error:  # also where no other node has it
                    progress(f"waiting for the depot: {error}")
                    log.warning("no code yet", extra={"execution": execution, "cause": str(error)})
                except MusterError as error:
                    raise ExecutionError(FailureKind.INVALID_OPTION, f"code: {error}") from error
                except MalformedTreeError as error:
                    raise ExecutionError(FailureKind.INVALID_OPTION, f"code: no tree: {error}") from error
                except OSError as error:
                    raise data_fault("code", error) from error
                else:
                    return
                await asyncio.sleep(_PAUSE)

    def lay_out(self, execution: ExecutionId, into: Path, files: Mapping[str, InlineFile]) -> None:
        """Have a directory with nothing but a copy of the execution's code and these files, by their paths there.

        It belongs to the agent. Raises ExecutionError.
        """
        try:
            lay_out(self._needed[execution], ObjectFiles(self._directory), into)
            add_files(files, into)
        except OSError as error:
            raise data_fault("code", error) from error

    def share(self, execution: ExecutionId, into: Path) -> None:
        """Have a link to what executions share that have the same code as this one. Raises ExecutionError."""
        code, objects = self._codes[execution], ObjectFiles(self._directory)
        try:
            self._shared.show(code.tree, lambda: self._tree(execution, code, objects), objects, into)
        except OSError as error:
            raise data_fault("code", error) from error

    def forget(self, execution: ExecutionId) -> None:
        """Note that an execution needs its code no more."""
        self._needed.pop(execution, None)
        self._codes.pop(execution, None)
        if (offering := self._offering.pop(execution, None)) is not None:
            offering.cancel()

    def _tree(self, execution: ExecutionId, code: JobCode, objects: ObjectFiles) -> ContentTree:
        """The code of an execution with all objects; raises ExecutionError where they are not here any more."""
        tree = self._needed.get(execution) or _known(objects, code.tree)
        if tree is None or _missing(objects, tree):
            message = "code: what this node had of it was changed just now; another attempt fetches it anew"
            raise ExecutionError(FailureKind.RUNTIME, message)
        return tree

    def trim(self, fetched: ContentTree) -> None:
        """Remove what was used longest ago, and neither this code nor another one here needs, where there is too much.

        Raises OSError.
        """
        objects = ObjectFiles(self._directory)
        needed = {name for tree in (fetched, *self._needed.values()) for name in _names(tree)}
        there = sorted(objects.all(), key=lambda each: each[1].st_mtime)
        surplus = sum(about.st_size for _, about in there) - self._kept
        for digest, about in there:
            if surplus <= 0:
                return
            if digest not in needed:
                objects.remove(digest)
                surplus -= about.st_size

    def _offer_beside(self, assignment: Assignment, code: JobCode) -> None:
        """Have other nodes of a gang find what is here, without holding up this one: they may have it, too."""
        if self._swarms is None or assignment.node_count < 2:  # noqa: PLR2004 - there is no other node
            return
        execution = assignment.execution
        offering = asyncio.create_task(self._offered(assignment, code), name=f"code of {execution} for other nodes")
        self._offering[execution] = offering

    async def _offered(self, assignment: Assignment, code: JobCode) -> None:
        """Have other nodes find the code here, as far as its objects are kept."""
        try:
            objects = await asyncio.to_thread(ObjectFiles, self._directory)
            tree = await asyncio.to_thread(_known, objects, code.tree)
            if tree is not None and not await asyncio.to_thread(_missing, objects, tree):
                await asyncio.to_thread(_used, objects, tree)
                await self._gather(assignment, None, objects, tree, lambda _: None)
        except (MusterError, OSError) as error:  # they fetch it elsewhere
            log.info("code is not offered", extra={"execution": assignment.execution, "cause": str(error)})

    async def _fetched(self, assignment: Assignment, code: JobCode, progress: Callable[[str], None]) -> ContentTree:
        execution = assignment.execution
        objects = await asyncio.to_thread(ObjectFiles, self._directory)
        tree = await asyncio.to_thread(_known, objects, code.tree)
        missing = () if tree is None else await asyncio.to_thread(_missing, objects, tree)
        if tree is not None and not missing:
            await asyncio.to_thread(_used, objects, tree)
            await self._gather(assignment, None, objects, tree, progress)
            return tree
        progress("fetching code")
        passed = (await self._ask(execution)).depot
        if passed is None:
            raise UnavailableError("nobody says what opens it")
        from muster.transfer.depot_client import reaching_depot  # noqa: PLC0415 - agents without such jobs do without it

        authority = self._credentials().authority
        async with reaching_depot(passed.depot, passed.ticket, self._coordinator(), authority) as client:
            if tree is None:
                tree = await client.tree(code.tree, code.size)
                await asyncio.to_thread(_keep, objects, tree)
                missing = await asyncio.to_thread(_missing, objects, tree)
            lacking = len(missing)
            await self._gather(assignment, client, objects, tree, progress)
            missing = await asyncio.to_thread(_missing, objects, tree)
            await self._fetch_objects(client, objects, missing, progress)
        await asyncio.to_thread(self.trim, tree)
        log.info("code fetched", extra={"execution": execution, "tree": tree.digest, "objects": lacking})
        return tree

    async def _gather(
        self,
        assignment: Assignment,
        client: "DepotClient | None",
        objects: ObjectFiles,
        tree: ContentTree,
        progress: Callable[[str], None],
    ) -> None:
        """Have objects here with the other nodes that want them; with no depot, all are here, and others find them."""
        if self._swarms is None or assignment.node_count < 2:  # noqa: PLR2004 - there is no other node
            return
        from agent.swarm.depot_origin import DepotOrigin  # noqa: PLC0415 - agents without such jobs do without its hashes
        from agent.swarm.side import WantedContents, shared_objects  # noqa: PLC0415 - as above

        contents = WantedContents(
            objects=tree.objects, directory=self._directory / "parts", whole=objects.place, keep=objects.keep_gathered
        )
        origin = None if client is None else nullcontext(DepotOrigin(client))
        await shared_objects(
            self._swarms,
            assignment,
            tree.digest,
            contents,
            origin,
            lambda detail, _: progress(f"fetching code {detail}"),
        )

    @staticmethod
    async def _fetch_objects(
        client: "DepotClient", objects: ObjectFiles, missing: Sequence[ContentObject], progress: Callable[[str], None]
    ) -> None:
        """Go on with each object from where it was left."""

        def told(done: int, total: int) -> None:
            progress(f"fetching code {size_text(done)} of {size_text(total)}")

        arrived = adding_up(sum(each.size for each in missing), told)
        for at in range(0, len(missing), FETCHED_TOGETHER):
            with ExitStack() as open_ones:
                arriving = [
                    open_ones.enter_context(await asyncio.to_thread(objects.arriving, each.digest, each.size))
                    for each in missing[at : at + FETCHED_TOGETHER]
                ]
                await client.fill(arriving, arrived)


def _known(objects: ObjectFiles, digest: str) -> ContentTree | None:
    """The tree, if this node has it, and as its name says."""
    size = objects.size(digest)
    if size is None:
        return None
    try:
        tree = read_content_tree(b"".join(objects.read(digest, 0, size)))
    except MalformedTreeError:
        tree = None
    if tree is None or tree.digest != digest:
        objects.remove(digest)
        return None
    return tree


def _keep(objects: ObjectFiles, tree: ContentTree) -> None:
    with objects.arriving(tree.digest, len(tree.form)) as arriving:
        arriving.write(tree.form[arriving.offset :])
        arriving.commit()


def _missing(objects: ObjectFiles, tree: ContentTree) -> tuple[ContentObject, ...]:
    return tuple(each for each in tree.objects if objects.size(each.digest) != each.size)


def _used(objects: ObjectFiles, tree: ContentTree) -> None:
    """Note that a tree was used now."""
    for name in _names(tree):
        objects.touch(name)


def _names(tree: ContentTree) -> Iterator[str]:
    yield tree.digest
    yield from (each.digest for each in tree.objects)
