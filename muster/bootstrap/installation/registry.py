"""What an installation asks of the coordinator."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from muster.bootstrap.installation.plan import Known
from muster.client.client import Client
from muster.domain.errors import ConflictError, MusterError, UnavailableError, UnknownNameError
from muster.domain.fleet.node import NodeView

TOKEN_LIFE = timedelta(minutes=30)
"""How long the join token for one node lives; long enough for a bundle over a slow line."""


LOOK_AGAIN = 0.5
"""Seconds between questions about the same thing."""
GONE_WITHIN = 60.0
"""Seconds until the coordinator gives up a node whose agent has ended."""


class NodeRegistry(Protocol):
    """The nodes of a fleet."""

    async def node(self, name: str) -> NodeView | None:
        """What is known of a node; None: it has not been heard of."""
        ...

    async def admit(self, labels: Mapping[str, str]) -> tuple[str, str]:
        """A join token for one node, and its id."""
        ...

    async def withdraw(self, token: str) -> None:
        """The token with this id counts no more."""
        ...

    async def dismiss(self, name: str) -> None:
        """A node that has joined is sent away and forgotten."""
        ...


class ClientRegistry:
    """The nodes of the coordinator that a client asks."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def node(self, name: str) -> NodeView | None:
        """See Registry."""
        try:
            return await self._client.nodes.get(name)
        except UnknownNameError:
            return None

    async def admit(self, labels: Mapping[str, str]) -> tuple[str, str]:
        """See Registry."""
        secret, token = await self._client.join_tokens.create(ttl=TOKEN_LIFE, uses=1, labels=labels)
        return secret, token.id

    async def withdraw(self, token: str) -> None:
        """See Registry."""
        await self._client.join_tokens.revoke(token)

    async def dismiss(self, name: str) -> None:
        """See Registry."""
        with suppress(UnknownNameError):
            await self._client.nodes.revoke(name)
        with suppress(UnknownNameError):
            await self._client.nodes.remove(name)

    async def known(self) -> Mapping[str, Known]:
        """All that is known of all nodes, by name."""
        views = {str(view.name): view for view in await self._client.nodes.list()}
        try:
            enrolled = {str(node.name): node for node in await self._client.nodes.enrolled()}
        except MusterError as error:
            raise type(error)(f"{error} (installing nodes needs the access `operator` for `*`)") from error
        return {name: Known(view=views.get(name), enrolled=enrolled.get(name)) for name in views.keys() | enrolled}


async def dismiss(registry: NodeRegistry, name: str) -> None:
    """Have the coordinator forget a node whose agent has ended; that it has, it may hear late."""
    try:
        async with asyncio.timeout(GONE_WITHIN):
            while True:
                try:
                    await registry.dismiss(name)
                except ConflictError:
                    await asyncio.sleep(LOOK_AGAIN)
                else:
                    return
    except TimeoutError:
        raise UnavailableError(f"the coordinator still hears from {name}; is its agent running elsewhere?") from None
