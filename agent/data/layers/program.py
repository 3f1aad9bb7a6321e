"""The mover of images: `python -m agent.data.layers.program` is a registry on loopback for the node's container engine.

The agent says over two pipes which image is pulled and with which login (`agent.data.mover.answering`). Both are in the
memory of this process alone.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.data.layers.files import LayerFiles, NoSpaceForLayersError
from agent.data.layers.manifest import ManifestError
from agent.data.layers.messages import LayerAsk, wanted_heard
from agent.data.layers.pulls import LoopbackPull
from agent.data.layers.server import LoopbackRegistry
from agent.data.mover.answering import AnsweredWork, Send, answer_agent
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError
from muster.transfer.web_file import FileAwayError, FileRefusedError


def main() -> None:
    """Serve standard input until it ends."""
    answer_agent(LayerWork)


class LayerWork(AnsweredWork):
    """What the mover of images has been asked."""

    def __init__(self, send: Send) -> None:
        super().__init__(send)
        self._registry: LoopbackRegistry | None = None
        self._files: dict[str, LayerFiles] = {}

    async def done(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question. Raises BucketRefusedError, BucketAwayError or OSError."""
        del number
        try:
            return await asyncio.to_thread(self._done, asked)
        except (ManifestError, FileRefusedError, NoSpaceForLayersError) as error:
            raise BucketRefusedError(str(error)) from None
        except FileAwayError as error:
            raise BucketAwayError(str(error)) from None

    def _done(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        match asked["ask"]:
            case LayerAsk.OPEN:
                return self._open(asked)
            case _:
                return self._close(asked["user"])

    def _open(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if self._registry is None:
            self._registry = LoopbackRegistry()
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

    def _close(self, user: str) -> dict[str, Any]:
        pull = None if self._registry is None else self._registry.end(user)
        return {} if pull is None else {"given": pull.given, "refused": pull.fault, "reached": pull.is_reached}


if __name__ == "__main__":
    main()
