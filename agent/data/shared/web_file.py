"""A file behind a URL that several nodes of an attempt want: each fetches a share of it, and gives it to the others."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from agent.data.cache import GatheredInput, InputCache, place_of
from agent.swarm.shelf import SwarmAccess
from agent.swarm.side import joined_swarm, progress_text
from agent.swarm.web_origin import WebOrigin
from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.data.tree import ContentObject
from muster.domain.gangs.plan import Assignment
from muster.transfer.web_access import WebAccess
from muster.transfer.web_file import FileAwayError, FileRefusedError, PartHere, WebFile, is_strong

log = logging.getLogger(__name__)

SMALLEST_SHARED = 1024 * 1024
"""Bytes of the smallest file that nodes give to each other; a smaller one each node fetches by itself."""

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file that an execution waits for."""

    assignment: Assignment
    input: JobInput
    counts: FoundInput | None
    """What it must hold; None: nobody has said so yet."""
    access: WebAccess

    @property
    def kept_as(self) -> str:
        """What the cache calls it."""
        return kept_as(self.assignment, self.input)


class SharedFile:
    """Gathers one file at a time into the cache of a node."""

    def __init__(self, cache: InputCache, access: SwarmAccess) -> None:
        self._cache = cache
        self._access = access
        self.arrived = 0
        """Bytes of the last file that came."""

    async def fetch(self, wanted: WantedFile, progress: Told) -> FoundInput | None:
        """Have a file here with the other nodes; None: this node must fetch it by itself.

        Raises OriginAwayError, OSError, or ExecutionError where the disk is full.
        """
        assignment, each, counts = wanted.assignment, wanted.input, wanted.counts
        swarm = await joined_swarm(self._access, assignment, each.shared_as())
        if swarm is None:
            return None
        patience = assignment.stall.total_seconds()
        try:
            seen = await asyncio.to_thread(_look, wanted, patience)
        except (FileAwayError, FileRefusedError):
            return None  # whoever fetches it alone says why
        if seen is None or (counts is not None and counts.version not in {"", seen.version}):
            return None
        known = await asyncio.to_thread(self._cache.known, wanted.kept_as, assignment.project)
        if known is not None and (known.version, known.size) == (seen.version, seen.size):
            return None
        expected = each.sha256 if counts is None else counts.sha256
        content = _content(seen)
        directory = self._cache.directory / "parts"
        hashes = {content.digest: expected} if expected else {}
        parts = await swarm.parts(directory, [content], lambda _: None, hashes)
        lacking = sum(parts.length(piece) for piece in range(parts.pieces.count) if piece not in parts.here)
        await asyncio.to_thread(self._cache.make_space, lacking, each.name)
        origin = WebOrigin(each.url, wanted.access, seen.version, patience)
        try:
            gathered = await swarm.gather([content], parts, origin, self._telling(each, seen.size, progress))
        except FileRefusedError as error:
            log.info("a file is not shared", extra={"execution": assignment.execution, "cause": str(error)})
            return None
        found = FoundInput(
            url=each.origin,
            size=seen.size,
            sha256=await asyncio.to_thread(parts.sha256, content.digest),
            version=seen.version,
        )
        believes = gathered.is_believed and found.sha256 != expected
        believed_by = assignment.project if believes else ""
        await asyncio.to_thread(
            parts.settle,
            lambda _, path: self._taken(GatheredInput(path), wanted, found, believed_by),
        )
        about = {"execution": assignment.execution, "bytes": found.size, "from_peers": gathered.from_peers}
        log.info("input gathered", extra=about)
        return found

    async def offer(self, assignment: Assignment, each: JobInput, found: FoundInput) -> None:
        """Have the other nodes find a file here that this node had already."""
        if not is_strong(found.version) or found.size < SMALLEST_SHARED:
            return
        swarm = await joined_swarm(self._access, assignment, each.shared_as())
        if swarm is None:
            return
        content, place = _content(found), await asyncio.to_thread(place_of, self._cache, found.sha256, found.size)
        if place is not None:
            with suppress(OSError):  # it may have gone
                parts = await swarm.parts(self._cache.directory / "parts", [content], lambda _: place)
                swarm.offer([content], parts)

    def _taken(self, gathered: GatheredInput, wanted: WantedFile, found: FoundInput, believed_by: str) -> Path:
        kept = replace(found, url=wanted.kept_as)
        self._cache.take(gathered, kept, wanted.assignment.execution, believed_by)
        place = place_of(self._cache, found.sha256, found.size)
        if place is None:
            raise FileNotFoundError(f"{found.sha256} was removed")
        return place

    def _telling(self, each: JobInput, total: int, progress: Told) -> Callable[[int, int], None]:
        def told(there: int, from_peers: int) -> None:
            self.arrived = there
            progress(f"fetching input {each.name} {progress_text(there, total, from_peers)}")

        return told


def kept_as(assignment: Assignment, each: JobInput) -> str:
    """What the cache calls a file: what a secret opens is kept for its project alone."""
    return f"{assignment.project} {each.origin}" if each.secret else each.url


def _look(wanted: WantedFile, patience: float) -> FoundInput | None:
    """What a server says of its file; None: it gives no parts of it, or too little is known of its version."""
    with WebFile(wanted.input.url, PartHere(end=1), patience, wanted.access) as file:
        if not file.is_part or not is_strong(file.version) or file.size is None or file.size < SMALLEST_SHARED:
            return None
        return FoundInput(url=wanted.input.origin, size=file.size, sha256="", version=file.version)


def _content(found: FoundInput) -> ContentObject:
    """The name that all nodes give one version of a file, whose hash nobody knows yet."""
    named = f"{found.url}\0{found.version}\0{found.size}"
    return ContentObject(digest=sha256(named.encode()).hexdigest(), size=found.size)
