"""Attempts that a coordinator has in its database alone, as clients see them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.core.records import Job
from coordinator.rpc.server import serving_locally
from coordinator.store.records.sql import SqlStore
from muster.client.client import Client
from muster.domain.errors import UnknownNameError
from muster.domain.ids import execution_id
from muster.domain.jobs.job import DEFAULT_PROJECT, Role
from muster.domain.jobs.lifecycle import State
from muster.rpc.channel import Credentials
from tests.contract.records import AT, attempt, execution, job, puts
from tests.integration.fleet import SECRET
from tests.integration.parts import working_parts

OFTEN: Job = replace(
    job("a"),
    spec=replace(job("a").spec, name="often", project=DEFAULT_PROJECT, roles=(Role(count=2),)),
    attempt=30,
    ended_at=AT,
)
"""A job that has ended with its thirtieth attempt."""


@asynccontextmanager
async def client_of_what_was_stored(directory: Path) -> AsyncIterator[Client]:
    """A client of a coordinator that finds this job when it starts."""
    numbers = range(1, OFTEN.attempt + 1)
    attempts = [replace(attempt("a", number), ended_at=AT) for number in numbers]
    attempts[3] = replace(attempts[3], executions_dropped=True)
    stored = (number for number in numbers if number != attempts[3].number)
    members = (execution("a", number, rank, state=State.RUNNING) for number in stored for rank in range(2))
    ended = (replace(member, state=State.SUCCEEDED, log_complete=True) for member in members)
    store = SqlStore.open(directory / "coordinator.db")
    store.commit(puts(OFTEN, *attempts, *ended))
    store.close()
    async with (
        working_parts(directory) as parts,
        serving_locally(parts, "127.0.0.1:0", SECRET) as address,
        Client(address, Credentials(token=SECRET)) as client,
    ):
        yield client


async def test_a_client_gets_the_executions_of_an_attempt_that_is_in_the_database_alone(tmp_path: Path) -> None:
    async with client_of_what_was_stored(tmp_path) as client:
        at_hand = await client.jobs.get("often")
        old = await client.jobs.get("often", attempt=5)

    assert [each.number for each in at_hand.attempts if each.executions] == [1, *range(11, 31)]
    assert [each.number for each in old.attempts if each.executions] == [5]
    assert [(each.id, each.state) for each in old.attempts[4].executions] == [
        (execution_id(OFTEN.id, 5, rank), State.SUCCEEDED) for rank in range(2)
    ]


async def test_a_client_learns_which_executions_were_dropped_and_which_attempts_never_were(tmp_path: Path) -> None:
    async with client_of_what_was_stored(tmp_path) as client:
        dropped = (await client.jobs.get("often", attempt=4)).attempts[3]
        with pytest.raises(UnknownNameError, match="job a has no attempt 31; its newest is 30"):
            await client.jobs.get("often", attempt=31)

    assert (dropped.number, dropped.executions, dropped.executions_dropped) == (4, (), True)
