"""Code from a Git repository for a gang: its server is asked for the commit once, the depot gives it to the rest."""

import asyncio
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from ssl import create_default_context

from bench.figures import Bar
from bench.fleet import READY_WITHIN, Fleet, gang
from bench.programs import ended_at_exit, run, serving, start
from bench.scratch import PROGRAMS
from bench.setting import Setting, Turns
from muster.domain.data.code import GitCode, JobCode
from muster.trust.certificates import issue_server, make_authority
from muster.trust.files import write_private

FILES = 500
GIT_WITHIN = 60.0


def _fetches(ranks: int) -> str:
    return f"{ranks} ranks on {ranks} nodes with code from a repository of {FILES} files: fetches from its server"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository behind a server, and the certificate by which the server is known."""

    url: str
    authority: Path
    work: Path
    bare: Path

    def commit(self, number: int) -> str:
        """Change one file in a new commit of `main`; its name."""
        (self.work / "lib" / "f0.py").write_text(f"{number}\n", encoding="utf-8")
        return _committed(self.work, self.bare)

    async def fetches(self) -> int:
        """How often somebody has fetched a commit."""
        return int(await asyncio.to_thread(self._asked))

    def _asked(self) -> bytes:
        context = create_default_context(cafile=self.authority)
        address = f"{self.url.partition('/repository')[0]}/fetches"
        with urllib.request.urlopen(address, timeout=READY_WITHIN, context=context) as answer:  # noqa: S310 - as origin
            found: bytes = answer.read()
        return found


def certificates(directory: Path) -> Path:
    """Where the certificate of a server's authority is from now on; agents have to be told before they start."""
    now = datetime.now(UTC)
    authority = make_authority(now)
    shown = issue_server(authority, ["127.0.0.1"], now)
    write_private(directory / "server.pem", shown.certificate + shown.key)
    (directory / "authority.pem").write_bytes(authority.certificate)
    return directory / "authority.pem"


@asynccontextmanager
async def repository(directory: Path) -> AsyncIterator[Repository]:
    """A repository that is served for as long as this lasts, in a directory that has `certificates`."""
    work, bare, ready = directory / "work", directory / "served" / "repository.git", directory / "address"
    log = directory / "git-origin.log"
    (work / "lib").mkdir(parents=True)
    for number in range(FILES):
        (work / "lib" / f"f{number}.py").write_text(f"{number}\n" * 100, encoding="utf-8")
    _git(work, "init", "--quiet", "--initial-branch=main")
    _git(directory, "init", "--quiet", "--bare", "--initial-branch=main", bare)
    _committed(work, bare)
    async with ended_at_exit() as programs:
        command = [sys.executable, PROGRAMS / "git_origin.py", bare.parent, directory / "server.pem", ready]
        programs.append(start(command, log))
        address = await serving(programs[0], ready, log, READY_WITHIN)
        yield Repository(f"{address}/repository.git", directory / "authority.pem", work, bare)


async def measure_fetches(setting: Setting, muster: Fleet, found: Repository) -> None:
    """A gang with a rank on each node, whose code is a commit that nobody has fetched yet."""
    ranks = len(muster.agents)
    await setting.quiet(f"data: code from a repository, for {ranks} nodes")
    turns, bar = Turns(setting.repeats(2, 1)), Bar(figure=_fetches(ranks), limit=1)
    for turn in turns:
        found.commit(turn)
        before = await found.fetches()
        code = JobCode(git=GitCode(url=found.url, ref="main"), writable=False)
        job = (await muster.client.jobs.submit(gang(ranks, "true", code=code))).id
        await muster.ended(job)
        turns.keep({bar.figure: float(await found.fetches() - before)})
        await muster.settled(job)
    setting.findings.take(bar.figure, turns.found[bar.figure], "")
    setting.findings.absolute(bar, bar.figure)


def _committed(work: Path, bare: Path) -> str:
    _git(work, "add", "--all")
    _git(work, "commit", "--quiet", "--message", "more")
    _git(work, "push", "--quiet", bare, "HEAD:refs/heads/main")
    return _git(work, "rev-parse", "HEAD").strip()


def _git(where: Path, *words: str | Path) -> str:
    who = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    for each in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{each}_NAME": "bench", f"GIT_{each}_EMAIL": "bench@example.org"}
    return run(["git", "-C", where, *words], GIT_WITHIN, who)
