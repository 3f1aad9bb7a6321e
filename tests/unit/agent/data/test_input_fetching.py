"""Inputs from a server with all its faults to the cache of a node."""

import asyncio
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agent.data.cache import InputCache
from agent.data.fetching import InputFetching
from coordinator.clock import wall_time
from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.fleet.secret import DeliveredSecret, SecretKind
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId, JobId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Network, Role
from muster.trust.certificates import issue_server, make_authority
from tests.unit.web_places import WebPlace, web_place

WORDS = b"some words " * 1000


@dataclass
class Job:
    """What the coordinator knows of the inputs of one job."""

    noted: dict[str, FoundInput] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Values of those of kind `http`, by their names."""

    async def told(
        self, execution: ExecutionId, found: Sequence[FoundInput], asked: Sequence[str]
    ) -> Sequence[FoundInput]:
        del execution
        for each in found:
            self.noted.setdefault(each.url, each)
        return tuple(self.noted[url] for url in asked if url in self.noted)

    async def opens(self, execution: ExecutionId) -> Sequence[DeliveredSecret]:
        del execution
        return [
            DeliveredSecret(name=name, kind=SecretKind.HTTP, values={key: it.encode() for key, it in values.items()})
            for name, values in self.secrets.items()
        ]


@pytest.fixture
def web() -> Iterator[WebPlace]:
    with web_place() as found:
        found.files["/words"] = WORDS
        found.versions["/words"] = '"1"'
        yield found


def node(path: Path, job: Job) -> InputFetching:
    return InputFetching(InputCache(path / "inputs", path / "executions", keep_free=0), job.told, job.opens)


def assignment(path: Path, web: WebPlace, name: str = "a", place: str = "/words", **more: Any) -> Assignment:
    """An execution with one input."""
    (path / "executions" / name).mkdir(parents=True, exist_ok=True)
    return Assignment(
        execution=ExecutionId(name),
        job=JobId("j"),
        job_name="j",
        attempt=1,
        rank=0,
        world_size=1,
        local_rank=0,
        local_world_size=1,
        node_rank=0,
        node_count=1,
        network=Network.HOST,
        role=Role(command=("x",), inputs=(JobInput(name="in", url=f"{web.url}{place}", **more),)),
        stall=timedelta(milliseconds=500),
    )


async def fetched(fetching: InputFetching, of: Assignment) -> bytes:
    """What the file of the input holds."""
    [held] = (await fetching.fetch(of, ignored)).values()
    [path] = held.directory.iterdir()
    return path.read_bytes()


def ignored(detail: str) -> None:
    del detail


def files_below(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in path.rglob("*") if each.is_file()]


async def refused(fetching: InputFetching, of: Assignment) -> tuple[FailureKind, str]:
    with pytest.raises(ExecutionError) as no:
        await fetching.fetch(of, ignored)
    return no.value.kind, str(no.value)


async def test_executions_that_come_together_share_one_fetch(tmp_path: Path, web: WebPlace) -> None:
    fetching = node(tmp_path, Job())
    both = await asyncio.gather(*(fetched(fetching, assignment(tmp_path, web, name)) for name in "ab"))
    assert both == [WORDS, WORDS]
    assert web.asked == [("/words", "")]


async def test_another_job_asks_whether_the_file_is_still_the_same_and_fetches_nothing(
    tmp_path: Path, web: WebPlace
) -> None:
    for name in "ab":
        assert await fetched(node(tmp_path, Job()), assignment(tmp_path, web, name)) == WORDS
    assert len(web.asked) == 2
    assert web.sent == len(WORDS)


async def test_a_new_version_is_fetched_by_another_job(tmp_path: Path, web: WebPlace) -> None:
    assert await fetched(node(tmp_path, Job()), assignment(tmp_path, web)) == WORDS
    web.files["/words"], web.versions["/words"] = b"other", '"2"'
    assert await fetched(node(tmp_path, Job()), assignment(tmp_path, web, "b")) == b"other"


async def test_a_break_is_gone_on_with_where_it_was(tmp_path: Path, web: WebPlace) -> None:
    web.cuts["/words"] = [4000]
    patient = replace(assignment(tmp_path, web), stall=timedelta(seconds=20))
    assert await fetched(node(tmp_path, Job()), patient) == WORDS
    assert web.asked == [("/words", ""), ("/words", "bytes=4000-")]
    assert web.sent == len(WORDS)


async def test_a_break_of_a_file_without_a_version_begins_anew(tmp_path: Path, web: WebPlace) -> None:
    web.cuts["/words"] = [4000]
    del web.versions["/words"]
    patient = replace(assignment(tmp_path, web), stall=timedelta(seconds=20))
    assert await fetched(node(tmp_path, Job()), patient) == WORDS
    assert web.asked == [("/words", ""), ("/words", "")]


async def test_a_file_whose_size_nobody_tells_is_fetched(tmp_path: Path, web: WebPlace) -> None:
    web.unsized.add("/words")
    assert await fetched(node(tmp_path, Job()), assignment(tmp_path, web)) == WORDS


async def test_redirections_are_followed_but_not_for_ever_nor_to_addresses_of_the_link(
    tmp_path: Path, web: WebPlace
) -> None:
    web.redirects |= {"/there": "/words", "/round": "/round", "/file": "file:///etc/passwd"}
    assert await fetched(node(tmp_path, Job()), assignment(tmp_path, web, place="/there")) == WORDS
    kind, why = await refused(node(tmp_path, Job()), assignment(tmp_path, web, place="/round"))
    assert kind is FailureKind.DATA_REFUSED
    assert "leads on to other places more than 5 times" in why
    kind, why = await refused(node(tmp_path, Job()), assignment(tmp_path, web, place="/file"))
    assert kind is FailureKind.DATA_REFUSED
    assert "which is no web page" in why


async def test_a_node_of_the_same_job_refuses_another_version_before_it_fetches_it(
    tmp_path: Path, web: WebPlace
) -> None:
    job = Job()
    await fetched(node(tmp_path / "first", job), assignment(tmp_path / "first", web))
    web.files["/words"], web.versions["/words"] = b"other", '"2"'
    sent = web.sent
    kind, why = await refused(node(tmp_path / "second", job), assignment(tmp_path / "second", web))
    assert kind is FailureKind.DATA_REFUSED
    assert 'has changed since this job began with 11000 bytes, version "1": 5 bytes, version "2"' in why
    assert web.sent - sent <= len(b"other")


async def test_a_node_of_the_same_job_refuses_other_bytes_of_the_same_version(tmp_path: Path, web: WebPlace) -> None:
    job = Job()
    await fetched(node(tmp_path / "first", job), assignment(tmp_path / "first", web))
    web.files["/words"] = WORDS.upper()
    kind, why = await refused(node(tmp_path / "second", job), assignment(tmp_path / "second", web))
    assert kind is FailureKind.DATA_REFUSED
    assert sha256(WORDS).hexdigest() in why
    assert sha256(WORDS.upper()).hexdigest() in why


async def test_a_later_attempt_on_the_same_node_asks_the_server_nothing(tmp_path: Path, web: WebPlace) -> None:
    job = Job()
    await fetched(node(tmp_path, job), assignment(tmp_path, web))
    web.files.clear()
    assert await fetched(node(tmp_path, job), assignment(tmp_path, web, "b")) == WORDS


async def test_another_hash_than_the_job_names_is_refused(tmp_path: Path, web: WebPlace) -> None:
    kind, why = await refused(node(tmp_path, Job()), assignment(tmp_path, web, sha256="a" * 64))
    assert kind is FailureKind.DATA_REFUSED
    assert f"holds {sha256(WORDS).hexdigest()}, and the job wants {'a' * 64}" in why


async def test_a_query_is_in_no_message(tmp_path: Path, web: WebPlace) -> None:
    _, why = await refused(node(tmp_path, Job()), assignment(tmp_path, web, place="/gone?signature=x"))
    assert f"there is nothing at {web.url}/gone (HTTP 404)" in why
    assert "signature" not in why


async def test_a_server_that_stays_away_is_given_up_after_the_stall(tmp_path: Path, web: WebPlace) -> None:
    web.statuses["/words"] = [503] * 99
    kind, why = await refused(node(tmp_path, Job()), assignment(tmp_path, web))
    assert kind is FailureKind.DATA
    assert "has no answer now (HTTP 503); 0 B are here, and no more came in 0.5s (timeouts.stall)" in why


async def test_what_takes_longer_than_all_inputs_may_is_given_up(tmp_path: Path, web: WebPlace) -> None:
    web.statuses["/words"] = [503] * 99
    hurried = replace(assignment(tmp_path, web), fetch=timedelta(milliseconds=200), stall=timedelta(minutes=5))
    kind, why = await refused(node(tmp_path, Job()), hurried)
    assert kind is FailureKind.DATA
    assert why == "inputs: they were not all here after 0.2s (timeouts.fetch)"


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"token": "swordfish"}, "Bearer swordfish"),
        ({"username": "ada", "password": "swordfish"}, "Basic YWRhOnN3b3JkZmlzaA=="),
    ],
)
async def test_a_server_is_shown_the_secret_that_is_for_it(
    tmp_path: Path, web: WebPlace, values: dict[str, str], shown: str
) -> None:
    job = Job(secrets={"web": {"server": web.url, **values}})
    web.keys["/words"] = shown
    assert await fetched(node(tmp_path, job), assignment(tmp_path, web, secret="web")) == WORDS
    assert list(job.noted) == [f"web@{web.url}/words"]
    _, why = await refused(node(tmp_path, Job()), assignment(tmp_path, web, "b"))
    assert "lets nobody in without credentials (HTTP 401); name the secret that opens it" in why
    assert not any(b"swordfish" in content for content in files_below(tmp_path))


async def test_what_a_secret_opens_is_kept_for_its_project_and_asked_for_with_it(tmp_path: Path, web: WebPlace) -> None:
    web.keys["/words"] = "Bearer right"
    right = Job(secrets={"web": {"server": web.url, "token": "right"}})
    assert await fetched(node(tmp_path, right), assignment(tmp_path, web, secret="web")) == WORDS
    wrong = Job(secrets={"web": {"server": web.url, "token": "wrong"}})
    kind, why = await refused(node(tmp_path, wrong), assignment(tmp_path, web, "b", secret="web"))
    assert kind is FailureKind.DATA_REFUSED
    assert why == f"inputs.in: {web.url}/words refuses the secret 'web' (HTTP 401)"


async def test_a_secret_is_shown_to_no_server_to_which_its_own_leads_on(tmp_path: Path, web: WebPlace) -> None:
    with web_place() as elsewhere:
        elsewhere.files["/words"] = WORDS
        elsewhere.redirects["/back"] = f"{web.url}/words"
        web.redirects |= {"/there": f"{elsewhere.url}/words", "/around": f"{elsewhere.url}/back"}
        job = Job(secrets={"web": {"server": web.url, "token": "swordfish"}})
        assert await fetched(node(tmp_path, job), assignment(tmp_path, web, place="/there", secret="web")) == WORDS
        assert (web.shown, elsewhere.shown) == (["Bearer swordfish"], [""])
        web.keys["/words"] = "Bearer swordfish"
        _, why = await refused(node(tmp_path, job), assignment(tmp_path, web, "b", "/around", secret="web"))
        host = web.url.removeprefix("http://")
        assert f"leads on to {host}, which is not shown the secret 'web' and lets nobody in (HTTP 401)" in why
        assert (web.shown, elsewhere.shown) == (["Bearer swordfish", "Bearer swordfish", ""], ["", ""])


async def test_a_secret_that_is_gone_is_told_of(tmp_path: Path, web: WebPlace) -> None:
    kind, why = await refused(node(tmp_path, Job()), assignment(tmp_path, web, secret="web"))
    assert kind is FailureKind.INVALID_OPTION
    assert why == "inputs.in: the project has no secret 'web' of kind http any more"


async def test_a_server_with_an_authority_of_its_own_is_believed_by_its_ca(tmp_path: Path) -> None:
    authority = make_authority(wall_time())
    shown = issue_server(authority, ["127.0.0.1"], wall_time())
    (tmp_path / "server.pem").write_bytes(shown.certificate + shown.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with web_place(context) as web:
        web.files["/words"] = WORDS
        _, why = await refused(node(tmp_path, Job()), assignment(tmp_path, web))
        assert "shows a certificate that this node does not believe" in why
        assert "name a secret of kind http with its certificate as `ca`" in why
        job = Job(secrets={"web": {"server": web.url, "ca": authority.certificate.decode()}})
        assert await fetched(node(tmp_path, job), assignment(tmp_path, web, secret="web")) == WORDS
        no_ca = Job(secrets={"web": {"server": web.url, "ca": "quark"}})
        _, why = await refused(node(tmp_path, no_ca), assignment(tmp_path, web, "b", secret="web"))
        assert "the secret 'web' cannot be used: its ca is no certificate" in why


def several(path: Path, web: WebPlace, *places: str, rank: int = 0, ranks: int = 1, split: bool = False) -> Assignment:
    """An execution with one input of several URLs."""
    one = assignment(path, web, f"of-{rank}")
    urls = tuple(f"{web.url}{place}" for place in places)
    role = replace(one.role, inputs=(JobInput(name="in", urls=urls, split=split),))
    return replace(one, role=role, role_rank=rank, role_size=ranks)


async def names(fetching: InputFetching, of: Assignment) -> list[str]:
    """What the files of the input are called, as they are listed."""
    [held] = (await fetching.fetch(of, ignored)).values()
    assert {each.name for each in held.directory.iterdir()} == {each.path for each in held.files}
    return [each.path for each in held.files]


async def test_what_several_urls_hold_is_one_input_in_their_order(tmp_path: Path, web: WebPlace) -> None:
    web.files |= {"/x/b": b"two", "/a": b"three"}
    job, told = Job(), list[str]()
    of = several(tmp_path, web, "/words", "/x/b", "/a")
    [held] = (await node(tmp_path, job).fetch(of, told.append)).values()
    assert [(each.path, each.size, each.uri) for each in held.files] == [
        ("words", len(WORDS), f"{web.url}/words"),
        ("b", 3, f"{web.url}/x/b"),
        ("a", 5, f"{web.url}/a"),
    ]
    assert (held.directory / "a").read_bytes() == b"three"
    assert set(job.noted) == {each.uri for each in held.files}
    assert "fetching input in 3 B of 3 B (URL 2 of 3)" in told


async def test_each_execution_fetches_its_part_of_several_urls_alone(tmp_path: Path, web: WebPlace) -> None:
    web.files |= {"/1": b"1", "/2": b"22", "/3": b"333"}
    parts = [
        await names(node(tmp_path, Job()), several(tmp_path, web, "/3", "/1", "/2", rank=rank, ranks=2, split=True))
        for rank in range(2)
    ]
    assert parts == [["3", "1"], ["2"]]
    assert [path for path, _ in web.asked] == ["/3", "/1", "/2"]


async def test_two_urls_that_name_one_file_are_refused_before_anything_is_fetched(
    tmp_path: Path, web: WebPlace
) -> None:
    kind, why = await refused(node(tmp_path, Job()), several(tmp_path, web, "/1/a?key=x", "/2/a"))
    assert kind is FailureKind.DATA_REFUSED
    assert why == (
        f"inputs.in: '{web.url}/1/a (URL 1)' and '{web.url}/2/a (URL 2)' would both lie at 'a'; take two inputs with a "
        "directory of their own"
    )
    assert web.asked == []


async def test_the_one_of_several_urls_that_cannot_be_had_is_named(tmp_path: Path, web: WebPlace) -> None:
    _, why = await refused(node(tmp_path, Job()), several(tmp_path, web, "/words", "/gone"))
    assert f"inputs.in: there is nothing at {web.url}/gone (HTTP 404)" in why
