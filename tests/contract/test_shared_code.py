"""Code that executions share, in every runtime: user code runs in it and cannot write to it."""

from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.code.store import CODE_CACHE, CodeStore
from agent.executions.owner import let_through
from agent.logs.spool import LogSpool
from muster.domain.data.code import CODE_DIRECTORY, JobCode
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree, content_tree
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import Role
from muster.transfer.objects import ObjectFiles
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import Place, Trial, assignment_for, directory_for, ignored, launch_for, shell

WORDS = b"one\n"


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


def kept(cache: Path) -> ContentTree:
    """Code as a node has it that has fetched it before."""
    entry = ContentEntry(path="words.txt", kind=ContentKind.FILE, size=len(WORDS), content=sha256(WORDS).hexdigest())
    tree = content_tree([entry])
    for digest, content in ((entry.content, WORDS), (tree.digest, tree.form)):
        with ObjectFiles(cache).arriving(digest, len(content)) as arriving:
            arriving.write(content)
            arriving.commit()
    return tree


async def test_user_code_runs_in_code_that_it_cannot_change(place: Place, tmp_path: Path) -> None:
    tree, store = kept(tmp_path / CODE_CACHE), CodeStore(tmp_path / CODE_CACHE)
    role = Role(
        command=shell("cat words.txt; [ $(id -u) = 0 ] && ! grep -q muster/code /proc/mounts && exit 1; touch more"),
        code=JobCode(tree=tree.digest, size=len(tree.form), writable=False),
        image=place.image,
        workdir=CODE_DIRECTORY if place.image else None,
    )
    assignment = assignment_for(role)
    own = directory_for(tmp_path, assignment.execution)
    let_through(own)
    await store.fetch(assignment, ignored)
    store.share(assignment, own.code)
    async with place.runtime() as runtime:
        with closing(LogSpool(own.log)) as spool:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            try:
                it = Trial(sandbox, spool, own, launch_for(assignment))
                assert await it.run() == Exit(code=1)
                assert it.printed()[0] == b"one"
            finally:
                await sandbox.remove()
    assert [path.name for path in own.code.iterdir()] == ["words.txt"]
