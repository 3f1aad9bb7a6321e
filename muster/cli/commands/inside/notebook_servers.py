"""Where a Jupyter server of an execution is opened: its own files there say with which token."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

_DIRECTORY = "${JUPYTER_RUNTIME_DIR:-${JUPYTER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/jupyter}/runtime}"

FIND = ("sh", "-c", f'cd "{_DIRECTORY}" && cat $(ls -t jpserver-*.json) | head -c 65536')
"""A command that prints what each server has noted of itself, the newest first; a killed one leaves its note behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """What a browser is to open at the address of a forward."""

    scheme: str = "http"
    path: str = "/"

    def url(self, address: str) -> str:
        """The whole of it, at HOST:PORT."""
        return f"{self.scheme}://{address}{self.path}"


def page_at(notes: str, port: int) -> WebPage:
    """The page of the server that listens at this port there, with its token; a plain one where none has noted that."""
    for note in _notes(notes):
        if note.get("port") == port:
            base, token = str(note.get("base_url") or "/"), note.get("token")
            query = f"?token={token}" if token else ""
            return WebPage(scheme="https" if note.get("secure") is True else "http", path=f"{base}{query}")
    return WebPage()


def _notes(text: str) -> Iterator[dict[str, object]]:
    """The JSON objects of a text, which stand one behind the other; what follows nonsense is not read."""
    decoder = json.JSONDecoder()
    text = text.strip()
    while text:
        try:
            said, end = decoder.raw_decode(text)
        except ValueError:
            return
        if isinstance(said, dict):
            yield said
        text = text[end:].lstrip()
