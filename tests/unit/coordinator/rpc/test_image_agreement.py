"""How the nodes of a job agree on an image: one finds it out, the others are told once it is known."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

import pytest

from coordinator.rpc.agents.images.agreement import ImageAgreement
from coordinator.trust.caller import Caller, CallerKind
from muster.domain.errors import InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.features import ALL_FEATURES, ONE_IMAGE
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.image import FoundImage, ImagePass
from muster.domain.jobs.job import JobSpec
from tests.builders import World, spec
from tests.unit.coordinator.engines import all_else_has_had_its_turn, engine_on, working

APP = "team/app:1"
FOUND = FoundImage(image=APP, digest=f"sha256:{'a' * 64}")
NOT_YET, FINDS, KNOWN = ImagePass(), ImagePass(finds=True), ImagePass(found=FOUND)


def with_images(*images: str | None) -> JobSpec:
    """A job with a role of one execution for each image."""
    whole = spec(1)
    [role] = whole.roles
    return replace(whole, roles=tuple(replace(role, name=f"r{n}", image=image) for n, image in enumerate(images)))


class Gang(NamedTuple):
    """A job that prepares on one node."""

    agreement: ImageAgreement
    node: Caller
    ranks: tuple[ExecutionId, ...]

    async def told(self, rank: int, found: FoundImage | None = None) -> ImagePass:
        return await self.agreement.told(self.node, self.ranks[rank], found)


@asynccontextmanager
async def gang(wanted: JobSpec, patience: float = 60.0, features: frozenset[str] = ALL_FEATURES) -> AsyncIterator[Gang]:
    w = World(("a", 0))
    w.connect("a", features=features)
    job = w.submit(wanted)
    ranks = tuple(w.rank(job, rank).id for rank in range(wanted.size))
    engine = engine_on(w.store)
    async with working(engine):
        node = Caller(kind=CallerKind.NODE, name="node/a", node=NodeId("a"))
        yield Gang(ImageAgreement(engine, patience), node, ranks)


async def test_the_first_rank_with_an_image_finds_it_out_for_the_others() -> None:
    async with gang(with_images(None, APP, "other:1", APP)) as it:
        assert await it.told(1) == FINDS
        assert await it.told(2) == FINDS
        assert await it.told(1, FOUND) == KNOWN
        assert await it.told(3) == KNOWN
        assert await it.told(3, replace(FOUND, digest=f"sha256:{'b' * 64}")) == KNOWN


async def test_who_waits_is_told_as_soon_as_it_is_known() -> None:
    async with gang(with_images(APP, APP, APP)) as it:
        waiting = [asyncio.ensure_future(it.told(rank)) for rank in (1, 2)]
        await all_else_has_had_its_turn()
        assert not any(each.done() for each in waiting)
        await it.told(0, FOUND)
        assert await asyncio.gather(*waiting) == [KNOWN, KNOWN]


async def test_who_waits_too_long_for_one_call_asks_again() -> None:
    async with gang(with_images(APP, APP), patience=0.0) as it:
        assert await it.told(1) == NOT_YET


async def test_a_node_that_cannot_find_it_out_is_not_waited_for() -> None:
    async with gang(with_images(APP, APP), features=ALL_FEATURES - {ONE_IMAGE}) as it:
        assert await it.told(1) == FINDS


async def test_only_who_finds_it_out_is_heard() -> None:
    async with gang(with_images(APP, APP, None)) as it:
        with pytest.raises(InvalidJobError, match="not the one"):
            await it.told(1, FOUND)
        with pytest.raises(InvalidJobError, match="not the one"):
            await it.told(0, replace(FOUND, image="other:1"))
        with pytest.raises(UnknownNameError, match="no container"):
            await it.told(2)
        with pytest.raises(PermissionDeniedError):
            await it.agreement.told(replace(it.node, node=NodeId("b")), it.ranks[0], FOUND)
