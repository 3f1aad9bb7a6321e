"""Inputs from the job file to user code, with a real coordinator, a real agent and a real server."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from muster.cli.local.fleet import client_of
from muster.domain.data.job_input import JobInput
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from tests.integration.programs import agent, coordinator
from tests.unit.web_places import WebPlace, web_place

READS = 'cat "$MUSTER_INPUTS_DIR"/words/*; cat "$MUSTER_CONFIG_DIR/inputs.json"'


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the node's user for jobs can get to, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="muster-inputs-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


@pytest.fixture
def web() -> Iterator[WebPlace]:
    with web_place() as found:
        yield found


def job(url: str, script: str = READS, **more: Any) -> JobSpec:
    given = (JobInput(name="words", url=url, **more),)
    role = Role(count=2, command=("/bin/sh", "-c", script), inputs=given)
    return JobSpec(name="with-inputs", roles=(role,), restarts=RestartPolicy(limit=1, infrastructure=0))


async def test_all_ranks_find_an_input_that_its_server_gave_once(place: Path, web: WebPlace) -> None:
    web.files["/some/words.txt"] = b"one two\n"
    web.versions["/some/words.txt"] = '"1"'
    url = f"{web.url}/some/words.txt"
    async with coordinator(place) as login, client_of(login) as client, agent(place, login):
        for _ in range(2):
            submitted = await client.jobs.submit(job(url), queue_anyway=True)
            assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
            printed = [line.text async for line in client.jobs.logs(submitted.id, follow=True) if line.rank == 0]
            assert printed[0] == b"one two"
            [listed] = json.loads(b"\n".join(printed[1:]))["words"]["files"]
            assert (listed["name"], listed["size"], listed["uri"]) == ("words.txt", 8, url)
            assert listed["checksums"] == {"sha256": sha256(b"one two\n").hexdigest()}
            assert listed["path"].endswith("/inputs/words/words.txt")
    assert web.sent == 8


async def test_a_secret_of_the_project_opens_a_server_and_is_nowhere_on_the_disk(place: Path, web: WebPlace) -> None:
    web.files["/words"] = b"one\n"
    web.keys["/words"] = "Bearer swordfish-of-tests"
    async with coordinator(place) as login, client_of(login) as client, agent(place, login):
        given = {"server": web.url.encode(), "token": b"swordfish-of-tests"}
        await client.secrets.set("web", given, kind=SecretKind.HTTP)
        submitted = await client.jobs.submit(job(f"{web.url}/words", "env; " + READS, secret="web"), queue_anyway=True)
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
        printed = [line.text async for line in client.jobs.logs(submitted.id, follow=True)]
        with pytest.raises(InvalidJobError, match=r"is not shown to http://127\.0\.0\.1:1"):
            await client.jobs.submit(job("http://127.0.0.1:1/words", secret="web"), queue_anyway=True)
    assert b"one" in printed
    assert not [each for each in (*printed, *files_below(place)) if b"swordfish-of-tests" in each]


def files_below(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in path.rglob("*") if each.is_file()]


async def test_each_rank_has_the_file_that_a_placeholder_names(place: Path, web: WebPlace) -> None:
    web.files |= {"/part-0": b"one\n", "/part-1": b"two\n"}
    async with coordinator(place) as login, client_of(login) as client, agent(place, login):
        url = f"{web.url}/part-{{{{muster:rank}}}}"
        submitted = await client.jobs.submit(job(url, 'cat "$MUSTER_INPUTS_DIR"/words/*'), queue_anyway=True)
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
        printed = {line.rank: line.text async for line in client.jobs.logs(submitted.id, follow=True)}
    assert printed == {0: b"one", 1: b"two"}


async def test_user_code_cannot_write_into_an_input(place: Path, web: WebPlace) -> None:
    nobody = ("--job-user", "65534:65534")
    web.files["/words"] = b"one\n"
    script = 'echo two > "$MUSTER_INPUTS_DIR/words/words" || echo two > "$MUSTER_INPUTS_DIR/words/more"'
    async with coordinator(place) as login, client_of(login) as client, agent(place, login, *nobody):
        submitted = await client.jobs.submit(job(f"{web.url}/words", script), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.EXIT_CODE


async def test_a_later_attempt_of_a_job_never_gets_other_bytes(place: Path, web: WebPlace) -> None:
    web.files["/words"] = b"one\n"
    web.versions["/words"] = '"1"'
    script = 'read word < "$MUSTER_INPUTS_DIR/words/words"; echo $word; exit 3'
    async with coordinator(place) as login, client_of(login) as client, agent(place, login):
        submitted = await client.jobs.submit(job(f"{web.url}/words", script), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
        printed = {line.text async for line in client.jobs.logs(submitted.id, follow=True)}
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.EXIT_CODE
    assert printed == {b"one"}
    assert web.sent == 4


@pytest.mark.parametrize(
    ("path", "more", "kind", "sentence"),
    [
        ("/nothing", {}, FailureKind.DATA_REFUSED, "there is nothing at"),
        ("/words", {"sha256": "a" * 64}, FailureKind.DATA_REFUSED, "and the job wants aaaa"),
        ("/shut", {}, FailureKind.DATA_REFUSED, "lets nobody in without credentials (HTTP 403)"),
    ],
)
async def test_a_job_whose_input_cannot_be_had_says_why(
    place: Path, web: WebPlace, path: str, more: dict[str, str], kind: FailureKind, sentence: str
) -> None:
    web.files |= {"/words": b"one\n"}
    web.statuses["/shut"] = [403] * 9
    async with coordinator(place) as login, client_of(login) as client, agent(place, login):
        submitted = await client.jobs.submit(job(f"{web.url}{path}", **more), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
    assert ended.phase is JobPhase.FAILED
    assert ended.failure is not None
    assert ended.failure.kind is kind
    assert ended.failure.message.startswith("inputs.words: ") or "inputs.words: " in ended.failure.message
    assert sentence in ended.failure.message


async def test_the_nodes_of_a_gang_cost_its_server_one_download(place: Path, web: WebPlace) -> None:
    web.files["/base"] = bytes(range(256)) * (20 << 10)
    web.versions["/base"] = '"1"'
    whole = job(f"{web.url}/base", 'sha256sum < "$MUSTER_INPUTS_DIR/words/base"')
    [role] = whole.roles
    gang = replace(whole, roles=(replace(role, count=3),), max_per_node=1)
    async with coordinator(place) as login, client_of(login) as client, agent(place, login, "--local-nodes", "3"):
        submitted = await client.jobs.submit(gang, queue_anyway=True)
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
        printed = [line.text async for line in client.jobs.logs(submitted.id, follow=True)]
    assert printed == [f"{sha256(web.files['/base']).hexdigest()}  -".encode()] * 3
    assert web.sent <= 1.05 * len(web.files["/base"])
