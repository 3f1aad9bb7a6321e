"""Wakes up whoever waits for something to change, without queues that could grow."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from muster.domain.event import StorySubject
from muster.domain.ids import ExecutionId, JobId, NodeId


class SampledNode(NamedTuple):
    """A node of which a sample may come; empty: any node."""

    node: NodeId


ANY_NODE = SampledNode(NodeId(""))
ANY_STORY = StorySubject("*")
"""Fires when the story of anything may have gone on: of a job, a node or the fleet."""


class RecordsOf(NamedTuple):
    """Records of which any may change."""

    whom: str


ANY_RECORD = RecordsOf("anybody")
SUBSCRIPTIONS = RecordsOf("subscriptions")
"""Fires when there is something to tell consoles: another subscription, or a test that is to be sent."""

Key = JobId | ExecutionId | StorySubject | SampledNode | RecordsOf
"""A job fires when its records changed durably, an execution when its log grew, a subject when its story went on.

A sampled node fires when a sample of it came, records when any of them changed durably.
"""


class Listener:
    """Which of its keys fired since it was last asked."""

    def __init__(self) -> None:
        self._fired: set[Key] = set()
        self._event = asyncio.Event()

    def note(self, key: Key) -> None:
        """A key fired."""
        self._fired.add(key)
        self._event.set()

    async def wait(self) -> set[Key]:
        """Wait until at least one key has fired; those that have."""
        await self._event.wait()
        self._event.clear()
        fired, self._fired = self._fired, set()
        return fired


class Signals:
    """Listeners by key; a key that fires often while nobody looks counts once."""

    def __init__(self) -> None:
        self._listeners: dict[Key, set[Listener]] = {}

    @contextmanager
    def listen(self, *keys: Key) -> Iterator[Listener]:
        """A listener to these keys, from now on."""
        listener = Listener()
        for key in keys:
            self.follow(listener, key)
        try:
            yield listener
        finally:
            for key in keys:
                self.unfollow(listener, key)

    def follow(self, listener: Listener, key: Key) -> None:
        """Have a listener hear of one key more, until `unfollow`."""
        self._listeners.setdefault(key, set()).add(listener)

    def unfollow(self, listener: Listener, key: Key) -> None:
        """Have a listener hear of a key no longer that it followed."""
        self._listeners[key].discard(listener)
        if not self._listeners[key]:
            del self._listeners[key]

    def fire(self, key: Key) -> None:
        """Something about the key changed."""
        for listener in self._listeners.get(key, ()):
            listener.note(key)
