"""The mover of images: `python -m agent.data.layers.program` is a registry on loopback for the node's container engine.

The agent says over two pipes which image is pulled and with which login (`agent.data.mover.answering`). Both are in the
memory of this process alone.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agent.data.layers.files import LayerFiles, NoSpaceForLayersError
from agent.data.layers.manifest import ManifestError
from agent.data.layers.messages import LayerAsk, wanted_heard
from agent.data.layers.pulls import LoopbackPull
from agent.data.layers.server import LoopbackRegistry
from agent.data.mover.answering import AnsweredWork, Send, answer_agent
from muster.domain.data.tree import ContentObject
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError
from muster.transfer.web_file import FileAwayError, FileRefusedError

LAYER_THREADS = 32
"""Questions of the agent that the mover of images works on at the same time."""


def main() -> None:
    """Serve standard input until it ends."""
    answer_agent(LayerWork)


class LayerWork(AnsweredWork):
    """What the mover of images has been asked."""

    def __init__(self, send: Send) -> None:
        super().__init__(send)
        self._registry: LoopbackRegistry | None = None
        self._wanted: dict[str, asyncio.Queue[ContentObject]] = {}
        """What the engine has asked for, by the users of pulls whose layers are shared."""
        self._threads = ThreadPoolExecutor(LAYER_THREADS, thread_name_prefix="asked")

    async def done(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question. Raises BucketRefusedError, BucketAwayError or OSError."""
        del number
        loop, user = asyncio.get_running_loop(), asked.get("user", "")
        if asked["ask"] == LayerAsk.WANTED:
            return await self._next(user)
        if asked["ask"] == LayerAsk.SHARE:
            self._share(user, asked["smallest"], loop)
            return {}
        self._registry = self._registry or LoopbackRegistry()
        try:
            return await loop.run_in_executor(self._threads, self._done, asked)
        except (ManifestError, FileRefusedError, NoSpaceForLayersError) as error:
            raise BucketRefusedError(str(error)) from None
        except FileAwayError as error:
            raise BucketAwayError(str(error)) from None

    def _done(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        match asked["ask"]:
            case LayerAsk.OPEN:
                return self._open(asked)
            case LayerAsk.THERE:
                if (pull := self._pull(asked["user"])) is not None:
                    pull.shared.there(asked["digest"], asked["path"], asked["count"])
                return {}
            case LayerAsk.LEAVE:
                if (pull := self._pull(asked["user"])) is not None:
                    pull.shared.leave(asked["digest"])
                return {}
            case LayerAsk.READ:
                return self._read(asked)
            case _:
                return self._close(asked["user"])

    def _open(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert self._registry is not None
        files = LayerFiles(Path(asked["directory"]), asked["keep_free"])
        pull = LoopbackPull(wanted_heard(asked), files)
        blobs = pull.open()
        self._registry.begin(pull, files)
        return {
            "name": f"127.0.0.1:{self._registry.port}/{pull.wanted.source.on_loopback}@{pull.digest}",
            "user": pull.user,
            "password": pull.password,
            "digest": pull.digest,
            "blobs": [[each.digest, each.size] for each in blobs],
        }

    def _pull(self, user: str) -> LoopbackPull | None:
        return None if self._registry is None else self._registry.pull(user)

    def _share(self, user: str, smallest: int, loop: asyncio.AbstractEventLoop) -> None:
        if (pull := self._pull(user)) is not None:
            wanted = self._wanted[user] = asyncio.Queue[ContentObject]()
            pull.shared.share(smallest, lambda blob: loop.call_soon_threadsafe(wanted.put_nowait, blob))

    async def _next(self, user: str) -> dict[str, Any]:
        """What the engine has asked for next; nothing where the pull is over."""
        if user not in self._wanted:
            return {"over": True}
        blob = await self._wanted[user].get()
        return {"blob": [blob.digest, blob.size]}

    def _read(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if (pull := self._pull(asked["user"])) is None:
            raise FileAwayError("the pull is over")
        with Path(asked["into"]).open("wb", buffering=0) as into:
            for digest, start, end in asked["parts"]:
                with pull.upstream.blob(digest, start, end) as file:
                    if not file.is_part and start:
                        raise FileRefusedError("the registry gives no parts of blobs")
                    left = end - start
                    while left and (data := file.read()):
                        into.write(data[:left])
                        left -= len(data[:left])
        return {}

    def _close(self, user: str) -> dict[str, Any]:
        self._wanted.pop(user, None)
        pull = None if self._registry is None else self._registry.end(user)
        return {} if pull is None else {"given": pull.given, "refused": pull.fault, "reached": pull.is_reached}


if __name__ == "__main__":
    main()
