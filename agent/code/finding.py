"""Code from a repository: fetched by the node of one rank, put into the depot, and then the same tree for all."""

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent.code.questions import CodeQuestions
from agent.executions.file_faults import data_fault
from muster.domain.data.code import GitCode, GitUrl, JobCode, git_text, is_server_of, read_git_url
from muster.domain.data.upload import CodePass
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.quantity import format_duration
from muster.rpc.channel import Credentials
from muster.transfer.depot_client import reaching_depot
from muster.transfer.folder import FolderError
from muster.transfer.git.access import GitKeys, keys_shown_to
from muster.transfer.git.faults import GitAwayError, GitMissingError, GitRefusedError
from muster.transfer.git.repository import FetchedCommit, GitFetch, GitLimits, Opens

log = logging.getLogger(__name__)

COMMIT_PAUSE = 1.0
"""Seconds until it is asked again whether another node has fetched the code; doubled up to LONGEST_COMMIT_PAUSE."""
LONGEST_COMMIT_PAUSE = 5.0
GIT_PAUSE = 2.0
"""Seconds until a repository that had no answer is asked again; doubled each time, up to LONGEST_GIT_PAUSE."""
LONGEST_GIT_PAUSE = 30.0

Told = Callable[[str], None]


class CodeFinding:
    """Finds out which tree the code of a job is that is in a repository."""

    def __init__(
        self,
        directory: Path,
        ask: CodeQuestions,
        coordinator: Callable[[], str],
        credentials: Callable[[], Credentials],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Below `directory` repositories lie while they are fetched; what a former agent has left there goes."""
        self._directory = directory
        self._ask = ask
        self._coordinator = coordinator
        self._credentials = credentials
        self._clock = clock
        shutil.rmtree(directory, ignore_errors=True)

    async def found(self, assignment: Assignment, progress: Told) -> JobCode:
        """The code with its commit and its tree, which is in the depot. Raises ExecutionError."""
        try:
            async with asyncio.timeout(assignment.fetch.total_seconds()):
                return (await self._found(assignment, progress)).code
        except TimeoutError:
            message = f"code: it was not here after {format_duration(assignment.fetch)} (timeouts.fetch)"
            raise ExecutionError(FailureKind.DATA, message) from None

    async def _found(self, assignment: Assignment, progress: Told) -> CodePass:
        pause = COMMIT_PAUSE
        while True:
            shown = await self._ask.shown(assignment.execution)
            if not shown.code.is_awaited:
                return shown
            if shown.is_to_be_fetched:
                break
            progress("waiting for the commit, which another node of the job fetches")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_COMMIT_PAUSE)
        git = shown.code.git
        assert git is not None
        try:
            return await self._fetched(assignment, git, progress)
        except OSError as error:
            raise data_fault("code", error) from error

    async def _fetched(self, assignment: Assignment, git: GitCode, progress: Told) -> CodePass:
        execution, named = assignment.execution, f"code: {git_text(git)}"
        opens = await self._opens(execution, git)
        await asyncio.to_thread(self._directory.mkdir, mode=0o700, parents=True, exist_ok=True)
        place = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._directory))
        try:
            progress(f"fetching code from {git_text(git)}")
            found = await self._patiently(assignment, git, opens, place, progress)
            progress("sending code to the depot")
            await self._sent(execution, found, progress)
        except GitRefusedError as error:
            raise ExecutionError(FailureKind.DATA_REFUSED, f"{named}: {error}") from None
        except GitMissingError as error:
            raise ExecutionError(FailureKind.RUNTIME, f"{named}: {error}") from None
        except FolderError as error:
            raise ExecutionError(FailureKind.RUNTIME, f"{named}: {error}") from None
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        log.info("code fetched from its repository", extra={"execution": execution, "commit": found.commit})
        code = JobCode(git=replace(git, commit=found.commit), tree=found.tree.digest, size=len(found.tree.form))
        return await self._ask.fetched(execution, code)

    async def _patiently(
        self, assignment: Assignment, git: GitCode, opens: Opens, place: Path, progress: Told
    ) -> FetchedCommit:
        """Fetch a commit, and ask again for as long as a repository may be away."""
        stall, pause, begin, tries = assignment.stall.total_seconds(), GIT_PAUSE, self._clock(), 0
        limits = GitLimits(seconds=assignment.fetch.total_seconds(), stall=stall)
        while True:
            within = place / str(tries)
            within.mkdir(mode=0o700)
            try:
                return await _in_thread(GitFetch(git, opens, within, limits))
            except GitAwayError as error:
                progress(f"waiting for {git_text(git)}: {error}")
                log.warning("no code yet", extra={"execution": assignment.execution, "cause": str(error)})
                if self._clock() + pause - begin > stall:
                    message = (
                        f"code: {git_text(git)}: {error}; it was away for {format_duration(assignment.stall)} "
                        "(timeouts.stall)"
                    )
                    raise ExecutionError(FailureKind.DATA, message) from None
                await asyncio.to_thread(shutil.rmtree, within, ignore_errors=True)
            await asyncio.sleep(pause)
            pause, tries = min(2 * pause, LONGEST_GIT_PAUSE), tries + 1

    async def _sent(self, execution: ExecutionId, found: FetchedCommit, progress: Told) -> None:
        """Have a commit in the depot, for as long as the execution may wait for that."""
        pause = GIT_PAUSE
        while True:
            depot = (await self._ask.shown(execution)).depot
            if depot is None or not depot.allowed:
                return  # somebody else has been faster
            authority = self._credentials().authority
            try:
                async with reaching_depot(depot.depot, depot.ticket, self._coordinator(), authority) as client:
                    await client.send_tree(found.tree, found.files)
            except UnavailableError as error:
                progress(f"waiting for the depot: {error}")
            except MusterError as error:
                if isinstance(error, FolderError):
                    raise
                raise ExecutionError(FailureKind.INVALID_OPTION, f"code: {error}") from error
            else:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_GIT_PAUSE)

    async def _opens(self, execution: ExecutionId, git: GitCode) -> Opens:
        """What opens a repository and its submodules; nothing of it is on the disk of the node."""
        url = read_git_url(git.url)
        if not git.secret or url is None:
            return _nothing
        given = {each.name: each.values for each in await self._ask.keys(execution)}
        values = given.get(git.secret, {})
        if not url.is_ssh and not is_server_of(values.get("server", b"").decode(errors="replace"), url):
            message = f"code: the secret {git.secret!r} is not for {url.host} any more, and is not shown to it"
            raise ExecutionError(FailureKind.DATA_REFUSED, message)
        return lambda server: keys_shown_to(server, values)


def _nothing(server: GitUrl) -> GitKeys:
    """What a server is shown without a secret."""
    del server
    return GitKeys()


async def _in_thread(fetch: GitFetch) -> FetchedCommit:
    """Fetch; whoever cancels waits until git has ended."""
    work = asyncio.ensure_future(asyncio.to_thread(fetch.run))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        fetch.stop()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()
        raise
