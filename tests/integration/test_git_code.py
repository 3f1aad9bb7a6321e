"""Code from a repository, with real programs and a real Git server: one commit for all ranks and attempts."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.code import GitCode, JobCode
from muster.domain.errors import InvalidJobError, UnavailableError
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.view import JobView
from tests.git_server import GitServer, git_server
from tests.integration.depots import depot
from tests.integration.programs import agent, coordinator
from tests.integration.relays import until
from tests.integration.sshd import sshd

TOKEN = "t0k3n-of-the-robot"
LIMIT = 120.0
READS = """cat words.txt && echo "$MUSTER_CODE_COMMIT" && env && echo changed > words.txt
test "$MUSTER_ATTEMPT" = 2 || { until test -e "%s"; do sleep 0.1; done; exit 1; }
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the node's user for jobs can get to, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="muster-git-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    with git_server(tmp_path / "server") as found:
        monkeypatch.setenv("SSL_CERT_FILE", str(found.authority))
        found.user, found.token = "robot", TOKEN
        yield found


def job(git: GitCode, script: str, limit: int = 0) -> JobSpec:
    roles = (
        Role(name="first", command=("/bin/sh", "-c", script), code=JobCode(git=git)),
        Role(name="second", command=("/bin/sh", "-c", script), code=JobCode(git=git)),
    )
    return JobSpec(name="with-git", roles=roles, restarts=RestartPolicy(limit=limit, infrastructure=0))


async def submitted(client: Client, spec: JobSpec) -> JobView:
    """The job, as soon as the depot is there."""
    while True:
        try:
            return await client.jobs.submit(spec, queue_anyway=True)
        except UnavailableError:
            await asyncio.sleep(0.05)


async def lines(client: Client, job: str, attempt: int, rank: int) -> list[bytes]:
    return [line.text async for line in client.jobs.logs(job, attempt=attempt, ranks=[rank])]


def without(secret: bytes, *places: Path) -> bool:
    """Whether no file below these directories has a secret in it."""
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    return not [path for path in files if secret in path.read_bytes()]


async def test_all_ranks_and_attempts_have_one_commit_while_the_branch_moves(place: Path, server: GitServer) -> None:
    goes = place / "goes"
    first = server.git("rev-parse", "HEAD")
    git = GitCode(url=server.url, ref="main", path="lib", secret="robot")
    values = {"server": f"127.0.0.1:{server.port}".encode(), "username": b"robot", "token": TOKEN.encode()}
    async with (
        asyncio.timeout(LIMIT),
        coordinator(place) as login,
        depot(place / "coordinator"),
        client_of(login) as client,
        agent(place, login) as node,
    ):
        await client.secrets.set("robot", values, kind=SecretKind.GIT)
        accepted = await submitted(client, job(git, READS % goes, limit=1))
        async for line in client.jobs.logs(accepted.id, follow=True):
            if line.text == first.encode():
                break
        server.link("lib/older", server.url, first)
        second = server.commit({"lib/words.txt": "two\n", "lib/large.txt": server.pointer(b"large\n")})
        goes.touch()
        ended = await client.jobs.wait(accepted.id)
        assert ended.phase is JobPhase.SUCCEEDED, ended.failure
        for attempt in (1, 2):
            for rank in (0, 1):
                printed = await lines(client, accepted.id, attempt, rank)
                assert printed[:2] == [b"one", first.encode()]
                assert TOKEN.encode() not in b"\n".join(printed)
        codes = [role.code for role in ended.spec.roles]
        assert [code.git.commit for code in codes if code is not None and code.git is not None] == [first, first]
        assert len([path for path in server.asked if path.endswith("git-upload-pack")]) <= 2  # its refs, and one commit

        # A new job has what the branch is now, with its submodule and its large file; what a client says of a tree
        # does not count.
        whole = replace(git, submodules=True, lfs=True)
        stale = JobCode(git=whole, tree=codes[0].tree if codes[0] else "", size=1)
        spec = job(whole, "cat words.txt large.txt older/lib/words.txt")
        again = await submitted(client, JobSpec(name="again", roles=(Role(command=spec.roles[0].command, code=stale),)))
        ended = await client.jobs.wait(again.id)
        assert await lines(client, again.id, 1, 0) == [b"two", b"large", b"one"], ended.failure
        found = ended.spec.roles[0].code
        assert found is not None
        assert found.git is not None
        assert found.git.commit == second

        lost = await submitted(client, job(GitCode(url=server.url, ref="gone", secret="robot"), "true"))
        failure = (await client.jobs.wait(lost.id)).failure
        assert failure is not None
        assert failure.kind is FailureKind.DATA_REFUSED
        assert "gone: there is no such ref" in failure.message

        await client.secrets.set("robot", {**values, "token": b"wr0ng-token"}, kind=SecretKind.GIT, replace=True)
        closed = await submitted(client, job(git, "true"))
        failure = (await client.jobs.wait(closed.id)).failure
        assert failure is not None
        assert failure.kind is FailureKind.DATA_REFUSED
        assert "it refuses what it was shown" in failure.message
        assert "wr0ng-token" not in failure.message

        elsewhere = GitCode(url="https://git.example.org/team/train.git", secret="robot")
        with pytest.raises(InvalidJobError, match="is not shown to git"):
            await client.jobs.submit(job(elsewhere, "true"))
    assert TOKEN.encode() not in node.logged
    assert without(TOKEN.encode(), place / "node")


async def test_an_agent_that_is_killed_while_it_fetches_leaves_that_to_the_next_one_and_ssh_opens_the_same(
    place: Path, tmp_path: Path, server: GitServer
) -> None:
    values = {"server": f"127.0.0.1:{server.port}".encode(), "username": b"robot", "token": TOKEN.encode()}
    repositories, wanted = place / "node" / "cache" / "git", server.git("rev-parse", "HEAD")
    server.lets_go.clear()
    with sshd(tmp_path / "sshd") as host:
        async with (
            asyncio.timeout(LIMIT),
            coordinator(place) as login,
            depot(place / "coordinator"),
            client_of(login) as client,
        ):
            await client.secrets.set("robot", values, kind=SecretKind.GIT)
            known = f"{host.host_key.name} {host.host_key.kind} {host.host_key.key}\n"
            opens = {"ssh-key": host.key.read_bytes(), "known-hosts": known.encode()}
            await client.secrets.set("deploy", opens, kind=SecretKind.GIT)
            async with agent(place, login, ending=signal.SIGKILL):
                spec = job(GitCode(url=server.url, ref="main", secret="robot"), "cat lib/words.txt", limit=0)
                spec = replace(spec, restarts=RestartPolicy(infrastructure=3, backoff=timedelta(seconds=1)))
                accepted = await submitted(client, spec)
                await until(lambda: any(path.endswith("git-upload-pack") for path in server.asked))
                assert list(repositories.iterdir())
            server.lets_go.set()
            async with agent(place, login) as node:
                ended = await client.jobs.wait(accepted.id)
                assert ended.phase is JobPhase.SUCCEEDED, ended.failure
                assert await lines(client, accepted.id, ended.attempts[-1].number, 0) == [b"one"]
                assert not list(repositories.iterdir())

                user = os.environ.get("USER", "root")
                url = f"ssh://{user}@127.0.0.1:{host.port}{server.bare}"
                accepted = await submitted(
                    client, job(GitCode(url=url, ref="main", secret="deploy"), "env; cat train.py")
                )
                ended = await client.jobs.wait(accepted.id)
                assert ended.phase is JobPhase.SUCCEEDED, ended.failure
                code = ended.spec.roles[1].code
                assert code is not None
                assert code.git is not None
                assert code.git.commit == wanted
                printed = b"\n".join(await lines(client, accepted.id, 1, 1))
                assert b"print('one')" in printed
    secret = host.key.read_bytes().splitlines()[1]
    assert secret not in printed
    assert secret not in node.logged
    assert without(secret, place / "node")
