"""Lists from the mirror: with the caller's own rights, asked anew for each of them."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many_encoded
from console.api.asking import AsCaller, Doorkeeper
from console.mirror.follower import MirrorFollower
from console.mirror.mirror import Mirror
from console.mirror.rows import MirrorRow
from console.mirror.viewing import ViewerRights
from console.mirror.wanted import LONGEST_CONDITION, RowsWanted, conditions_of, order_of
from console.upstream.callers import Callers
from muster.client.client import Client
from muster.domain.errors import UnavailableError
from muster.domain.feed import FeedPart

CAUGHT_UP_WITHIN = 3.0
"""Seconds for which a list waits for what its caller has just changed."""

Where = Annotated[
    Sequence[str],
    Query(
        description="A condition like `phase==running`; the operators are `== != <= >= =@ !@ =^ =$`. All have to hold."
    ),
]
Sort = Annotated[
    str,
    Query(
        max_length=LONGEST_CONDITION,
        description="Fields to sort by, like `-submitted_at,name`; `-`: the greatest first.",
    ),
]


@dataclass(frozen=True, slots=True)
class MirrorView:
    """The mirror as one caller may see it."""

    client: Client
    follower: MirrorFollower | None
    has_changed: bool
    """Whether the caller has changed something a moment ago, which the mirror may not have heard of."""

    async def rows(
        self, part: FeedPart, fields: Collection[str], where: Sequence[str], sort: str, size: int, page: str
    ) -> "RowsAnswer | None":
        """The answer of the mirror; None: the coordinator has to be asked, which is as good where nothing is sorted.

        Raises UnavailableError where only the mirror could answer, and it cannot.
        """
        wanted = RowsWanted(conditions=conditions_of(where, fields), order=order_of(sort, fields), size=size, page=page)
        needed = bool(where or sort)
        if not needed and (self.has_changed or self._now() is None):
            return None
        rights = ViewerRights.of(await self.client.accounts.myself())
        if rights.nothing or self.has_changed:
            if not needed:
                return None
            await self._catch_up()
        mirror = self._now()
        if mirror is None:
            if needed:
                raise UnavailableError(NO_MIRROR)
            return None
        return RowsAnswer(mirror, rights, wanted, part)

    def _now(self) -> Mirror | None:
        return None if self.follower is None else self.follower.current

    async def _catch_up(self) -> None:
        """Have the mirror know what the caller has changed; raises what the coordinator says to who sees nothing."""
        async with aclosing(self.client.fleet.feed(())) as places:
            place = (await anext(places)).place
        if self.follower is not None and not await self.follower.has_reached(place.revision, CAUGHT_UP_WITHIN):
            raise UnavailableError(NO_MIRROR)


@dataclass(frozen=True, slots=True)
class RowsAnswer:
    """A list that the mirror answers."""

    mirror: Mirror
    rights: ViewerRights
    wanted: RowsWanted
    part: FeedPart

    def of(self, is_wanted: Callable[[MirrorRow], bool] = lambda _: True) -> Response:
        """The page of those rows that are wanted and that the caller may see."""
        seen: Iterable[MirrorRow] = (row for row in self.mirror.of(self.part) if self.rights.sees(row.scope))
        rows, following = self.wanted.of(row for row in seen if is_wanted(row))
        return many_encoded([row.data for row in rows], following)


NO_MIRROR = (
    "this console has no picture of the fleet at the moment: "
    "it is started with --token-file, and has to reach the coordinator"
)


async def _view(request: Request, client: AsCaller) -> MirrorView:
    callers: Callers = request.app.state.callers
    now = asyncio.get_running_loop().time()
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    return MirrorView(client, request.app.state.follower, callers.changed_lately(doorkeeper.token_of(request), now))


FromMirror = Annotated[MirrorView, Depends(_view)]
"""The mirror, as whoever asks may see it."""
