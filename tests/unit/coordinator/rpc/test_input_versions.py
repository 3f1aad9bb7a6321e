"""What nodes are told of the inputs of a job: what counts for the URLs that they ask for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from coordinator.rpc.agents.input_versions import InputVersions
from coordinator.trust.caller import Caller, CallerKind
from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.errors import InvalidJobError
from muster.domain.ids import ExecutionId, NodeId
from tests.builders import World, spec
from tests.unit.coordinator.engines import engine_on, working

URLS = ("https://example.org/a-{{muster:rank}}", "https://example.org/b")
NODE = Caller(kind=CallerKind.NODE, name="node/a", node=NodeId("a"))


def found(url: str, digit: str = "1") -> FoundInput:
    return FoundInput(url=url, size=1, sha256=digit * 64)


@asynccontextmanager
async def prepared() -> AsyncIterator[tuple[InputVersions, ExecutionId]]:
    """A job whose input has two URLs, of which a secret opens both."""
    w = World(("a", 0))
    whole = spec(1)
    [role] = whole.roles
    given = JobInput(name="in", urls=URLS, secret="web")
    job = w.submit(replace(whole, roles=(replace(role, inputs=(given,)),)))
    engine = engine_on(w.store)
    async with working(engine):
        yield InputVersions(engine), w.rank(job, 0).id


async def test_a_node_hears_of_the_urls_that_it_asks_for_and_of_all_where_it_names_none() -> None:
    async with prepared() as (versions, execution):
        first, second = found("web@https://example.org/a-0"), found("web@https://example.org/b")
        for each in (first, second):
            assert await versions.told(NODE, execution, (each,), (each.url,)) == (each,)
        assert await versions.told(NODE, execution, (found(second.url, "2"),), (second.url,)) == (second,)
        assert await versions.told(NODE, execution, ()) == (first, second)
        assert await versions.told(NODE, execution, (), ("https://example.org/other",)) == ()


async def test_a_url_of_another_job_is_refused() -> None:
    async with prepared() as (versions, execution):
        with pytest.raises(InvalidJobError, match="has no input with such a URL"):
            await versions.told(NODE, execution, (found("web@https://example.org/a-1"),))
