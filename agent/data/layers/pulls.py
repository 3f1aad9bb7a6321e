"""One pull of an image through this node: what it may have, and where its blobs come from. Made for threads."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from threading import Condition, Lock

from agent.data.layers.arriving import ArrivingLayer, LayerFaultError, ReadLayer
from agent.data.layers.files import LayerFiles
from agent.data.layers.manifest import ImageManifest, ManifestError, read_manifest
from agent.data.layers.messages import PullWanted
from agent.data.layers.upstream import RegistryUpstream
from muster.domain.data.tree import ContentObject
from muster.domain.jobs.image import is_image_digest

GATHERED_SILENCE = 300.0
"""Seconds in which more of a blob that other nodes give must have come."""

_WAIT = 1.0


class LoopbackPull:
    """What one pull may have: the image that it is for, and nothing else."""

    def __init__(self, wanted: PullWanted, files: LayerFiles) -> None:
        self.wanted = wanted
        self.user = secrets.token_hex(8)
        self.password = secrets.token_urlsafe(24)
        """Made for this pull alone."""
        self.upstream = RegistryUpstream(wanted.source)
        self.digest = ""
        self.blobs: dict[str, ContentObject] = {}
        """What its manifests name, by digest."""
        self.is_reached = False
        """Whether somebody with its password has asked for something."""
        self.given = 0
        """Bytes that the engine was given."""
        self.fault = ""
        """Why something of it cannot be had at all."""
        self._files = files
        self._manifests: dict[str, ImageManifest | None] = {}
        """Manifests that it may have; None: that was not looked at yet."""
        self.shared = SharedBlobs()

    def open(self) -> Sequence[ContentObject]:
        """Find out what the image consists of; its blobs for this processor.

        Raises ManifestError, FileRefusedError, FileAwayError, NoSpaceForLayersError or OSError.
        """
        self.digest = self._root()
        manifest = self._read(self.digest)
        if manifest.is_index:
            manifest = self._read(manifest.image_for(self.wanted.architecture))
        if not manifest.blobs:
            raise ManifestError("the image has no layers")
        missing = sum(each.size for each in manifest.blobs if self._files.kept(each.digest) is None)
        self._files.make_space(missing, [each.digest for each in manifest.blobs])
        return manifest.blobs

    def manifest(self, digest: str) -> tuple[str, bytes] | None:
        """The type and the content of a manifest; None: this pull may not have it. Raises as `open` does."""
        if digest not in self._manifests:
            return None
        read = self._read(digest)
        content = self._files.content(digest.removeprefix("sha256:"))
        if content is None:  # it has just gone
            content = self._fetched(digest)
        return read.media_type, content

    def _root(self) -> str:
        """The digest of the image, known to be this project's to have."""
        wanted, project = self.wanted, self.wanted.project
        name = f"{wanted.source.host}/{wanted.source.path}"
        by_digest = is_image_digest(wanted.reference)
        known = by_digest and self._files.may_have(project or "", f"{name}@{wanted.reference}")
        digest = wanted.reference if by_digest else ""
        if not known or self._files.content(digest.removeprefix("sha256:")) is None:
            content = self.upstream.manifest(wanted.reference)
            found = f"sha256:{sha256(content).hexdigest()}"
            if digest not in {"", found}:
                raise ManifestError(f"the registry gives another manifest than {digest}")
            read_manifest(content)
            digest = found
            self._files.keep(content)
        if project is not None:
            self._files.note(project, f"{name}@{digest}")
        self._manifests[digest] = None
        return digest

    def _read(self, digest: str) -> ImageManifest:
        known = self._manifests[digest]
        if known is None:
            content = self._files.content(digest.removeprefix("sha256:"))
            known = read_manifest(self._fetched(digest) if content is None else content)
            self._manifests[digest] = known
            for _, image in known.images:
                self._manifests.setdefault(image, None)
            self.blobs |= {each.digest: each for each in known.blobs}
        return known

    def _fetched(self, digest: str) -> bytes:
        content = self.upstream.manifest(digest)
        if f"sha256:{sha256(content).hexdigest()}" != digest:
            raise ManifestError(f"the registry gives another manifest than {digest}")
        self._files.keep(content)
        return content


class GatheredBlob:
    """How much of a blob there is that comes from other nodes, in order from its beginning."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._path = ""
        self._there = 0
        self._over = False

    def there(self, path: str, count: int) -> None:
        """Note that so many bytes are in a file."""
        with self._changed:
            self._path, self._there = path, count
            self._changed.notify_all()

    def end(self) -> None:
        """Note that no more comes."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def more_than(self, offset: int) -> int:
        """How much there is once that is more than an offset; raises LayerFaultError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._there > offset or self._over, GATHERED_SILENCE):
                raise LayerFaultError("no more of it came from other nodes", again=True)
            if self._there <= offset:
                raise LayerFaultError("other nodes give no more of it", again=True)
            return self._there

    def opened(self) -> int | None:
        """A descriptor of its file once something is there; None: nothing came."""
        with suppress(LayerFaultError, OSError):
            self.more_than(0)
            return os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return None


class SharedBlobs:
    """The blobs of one pull that the agent has other nodes give."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._gathered: dict[str, GatheredBlob] = {}
        self._sharing: tuple[int, Callable[[ContentObject], object]] | None = None

    def share(self, smallest: int, wants: Callable[[ContentObject], object]) -> None:
        """Have blobs of so many bytes come by the agent; `wants` tells it of each."""
        self._sharing = (smallest, wants)

    def find(self, blob: ContentObject) -> GatheredBlob | None:
        """A blob that the agent has other nodes give; None: this program fetches it. The agent is told of it once."""
        if self._sharing is None or blob.size < self._sharing[0]:
            return None
        with self._lock:
            known = blob.digest in self._gathered
            gathered = self._gathered.setdefault(blob.digest, GatheredBlob())
        if not known:
            self._sharing[1](blob)
        return gathered

    def there(self, digest: str, path: str, count: int) -> None:
        """Note that so many bytes of a blob are in a file."""
        if (gathered := self._gathered.get(digest)) is not None:
            gathered.there(path, count)

    def leave(self, digest: str) -> None:
        """Note that no more of a blob comes by the agent."""
        if (gathered := self._gathered.get(digest)) is not None:
            gathered.end()

    def end(self) -> None:
        """Have no more blobs come by the agent."""
        for gathered in [*self._gathered.values()]:
            gathered.end()


class BlobsOfNode:
    """All blobs that this node reads for its engine; each is fetched once, whoever wants it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._arriving: dict[str, ArrivingLayer] = {}
        self._wanted_by: dict[str, set[LoopbackPull]] = {}

    def chunks(self, pull: LoopbackPull, files: LayerFiles, blob: ContentObject, offset: int) -> Iterator[bytes]:
        """A blob from an offset; raises LayerFaultError or OSError."""
        read = self._read(pull, files, blob)
        if read is not None:
            return read.chunks(offset)
        with self._lock:
            arriving = self._arriving.get(blob.digest)
            if arriving is None or arriving.is_over:
                if (read := self._read(pull, files, blob)) is not None:
                    return read.chunks(offset)
                if arriving is not None:
                    arriving.stop()
                self._arriving[blob.digest] = arriving = ArrivingLayer(files, pull.upstream, blob)
            self._wanted_by.setdefault(blob.digest, set()).add(pull)
            return arriving.chunks(offset)

    def leave(self, pull: LoopbackPull) -> None:
        """Have nothing more come for a pull that is over."""
        pull.shared.end()
        with self._lock:
            for digest, pulls in [*self._wanted_by.items()]:
                pulls.discard(pull)
                if not pulls:
                    del self._wanted_by[digest]
                    self._arriving.pop(digest).stop()

    def _read(self, pull: LoopbackPull, files: LayerFiles, blob: ContentObject) -> ReadLayer | None:
        """A blob that is here, or comes from other nodes; None: it is to be fetched."""

        def wrong() -> None:
            files.remove(blob.digest)

        gathered = pull.shared.find(blob)
        if (path := files.kept(blob.digest)) is not None:
            with suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                return ReadLayer(blob, descriptor, _all_of(blob), wrong)
        if gathered is None or (given := gathered.opened()) is None:
            return None
        return ReadLayer(blob, given, gathered.more_than, wrong)


def _all_of(blob: ContentObject) -> Callable[[int], int]:
    return lambda _: blob.size
