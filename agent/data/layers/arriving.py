"""Blobs of images as whoever waits for them reads them: while they come, or from the disk. Blocks; made for threads.

The last bytes of a blob are given only once all of it is what its name says. So no engine has a wrong one whole.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from threading import Condition, Thread

from agent.data.layers.files import LayerFiles
from agent.data.layers.upstream import RegistryUpstream
from muster.domain.data.tree import ContentObject
from muster.domain.errors import MusterError
from muster.transfer.objects import ArrivingObject, WrongContentError
from muster.transfer.web_file import FileAwayError, FileRefusedError, WebFile

log = logging.getLogger(__name__)

LAYER_STALL = 120.0
"""Seconds for which no byte of a layer comes after which its pull ends."""
LAYER_PAUSE = 1.0
"""Seconds until a registry that broke off is asked again."""

_READ = 1024 * 1024
_WAIT = 1.0


class LayerFaultError(MusterError):
    """A blob cannot be given; says why."""

    def __init__(self, text: str, *, again: bool = False) -> None:
        super().__init__(text)
        self.again = again
        """Whether it may be had if it is asked for again."""


class ArrivingLayer:
    """A blob on its way from its registry to the disk, and to all who read it meanwhile."""

    def __init__(self, files: LayerFiles, upstream: RegistryUpstream, layer: ContentObject) -> None:
        """Begin with it. Raises OSError."""
        self._files = files
        self._upstream = upstream
        self._layer = layer
        self._changed = Condition()
        self._there = 0
        self._whole = False
        """Whether all of it came, and holds what its name says."""
        self._fault = ""
        self._stopped = False
        self._file: WebFile | None = None
        arriving = files.arriving(layer.digest, layer.size)
        self._there = arriving.offset
        self._resumed = arriving.offset > 0
        """Whether it goes on with what was there, of which nobody knows whether it is right."""
        self._descriptor = files.opened(layer.digest)
        """What readers read; it stays what it is when the file gets its place."""
        self._thread = Thread(target=self._come, args=(arriving,), name="layer", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether no more comes."""
        return self._whole or bool(self._fault)

    def chunks(self, offset: int) -> Iterator[bytes]:
        """All of it from an offset, as it comes; raises LayerFaultError. Its file is held from now on."""
        return self._chunks(os.dup(self._descriptor), offset)

    def _chunks(self, descriptor: int, offset: int) -> Iterator[bytes]:
        try:
            while offset < self._layer.size:
                there = self._more_than(offset)
                data = os.pread(descriptor, min(_READ, there - offset), offset)
                if not data:
                    raise LayerFaultError("its file became shorter", again=True)
                yield data
                offset += len(data)
        finally:
            os.close(descriptor)

    def stop(self) -> None:
        """Have no more of it come; what is there is gone on with later."""
        self._stopped = True
        if (file := self._file) is not None:
            file.stop()
        self._thread.join()
        os.close(self._descriptor)

    def _more_than(self, offset: int) -> int:
        """How much may be read, which is more than an offset; raises LayerFaultError."""
        with self._changed:
            while True:
                if self._fault:
                    raise LayerFaultError(self._fault, again=self._resumed)
                there = self._layer.size if self._whole else min(self._there, self._layer.size - 1)
                if self._layer.size <= _READ and not self._whole:
                    there = 0  # so what is wrong with a small one is said in words
                if there > offset:
                    return there
                self._changed.wait(_WAIT)

    def _come(self, arriving: ArrivingObject) -> None:
        """Have all of it come. No error leaves the thread."""
        try:
            with arriving:
                self._fill(arriving)
                arriving.check()
                self._tell(whole=True)
                arriving.place()  # not synced: what a crash leaves of it is found out when it is read
        except (WrongContentError, FileRefusedError, FileAwayError) as error:
            self._tell(fault=str(error))
        except OSError as error:
            self._tell(fault=f"the node cannot keep it: {error.strerror or error}")

    def _fill(self, arriving: ArrivingObject) -> None:
        """Write what is missing. Raises WrongContentError, FileRefusedError, FileAwayError or OSError."""
        last = time.monotonic()
        while arriving.offset < arriving.size:
            before = arriving.offset
            try:
                self._read(arriving)
            except FileAwayError as error:
                now = time.monotonic()
                last = now if arriving.offset > before else last
                if self._stopped or now - last > LAYER_STALL:
                    raise
                log.warning("a registry broke off", extra={"blob": self._layer.digest, "cause": str(error)})
                with self._changed:
                    self._changed.wait(LAYER_PAUSE)

    def _read(self, arriving: ArrivingObject) -> None:
        """Write as much as the registry gives now; the same."""
        if self._stopped:
            raise FileAwayError("nobody wants it any more")
        with self._upstream.blob(self._layer.digest, arriving.offset, arriving.size) as file:
            self._file = file
            skipped = arriving.offset - file.offset
            while arriving.offset < arriving.size:
                if self._stopped:
                    raise FileAwayError("nobody wants it any more")
                data = file.read()
                if not data:
                    raise FileAwayError("the registry gave less than the blob has")
                rest, skipped = data[max(0, skipped) :], max(0, skipped - len(data))
                if rest:
                    arriving.write(rest)
                    self._tell()

    def _tell(self, *, whole: bool = False, fault: str = "") -> None:
        with self._changed:
            self._whole, self._fault = whole, fault
            self._there = self._there if fault else max(self._there, os.fstat(self._descriptor).st_size)
            self._changed.notify_all()


class ReadLayer:
    """A blob whose file is on the node, whole or filled meanwhile by the agent; hashed while it is read."""

    def __init__(
        self, layer: ContentObject, descriptor: int, there: Callable[[int], int], wrong: Callable[[], object]
    ) -> None:
        """`there` waits until more than an offset may be read, says how much, and raises LayerFaultError.

        `wrong` is called where it holds something else. The descriptor is this reader's own.
        """
        self._layer = layer
        self._descriptor = descriptor
        self._there = there
        self._wrong = wrong

    def chunks(self, offset: int) -> Iterator[bytes]:
        """All of it from an offset; raises LayerFaultError."""
        found, at = sha256(), 0
        try:
            while at < self._layer.size:
                data = os.pread(self._descriptor, min(_READ, self._there(at) - at), at)
                if not data:
                    break
                found.update(data)
                at += len(data)
                if at == self._layer.size and found.hexdigest() != self._layer.digest:
                    break
                if at > offset:
                    yield data[max(0, offset - (at - len(data))) :]
            else:
                return
        finally:
            with suppress(OSError):
                os.close(self._descriptor)
        self._wrong()
        raise LayerFaultError(f"what is kept as {self._layer.digest} holds something else", again=True)
