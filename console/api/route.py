"""What the table of routes is made of."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

Handler = Callable[..., Awaitable[Response]]
"""Answers a request; its parameters are those of the request, as FastAPI reads them."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Says that a route answers with a list of these, in pages where there are many."""

    of: Any


@dataclass(frozen=True, slots=True)
class Streamed:
    """Says that a route answers with a list of these, and with a stream of them where that is asked for."""

    of: Any
    text: bool = False
    """Whether it is text unless something else is accepted."""


@dataclass(frozen=True, slots=True)
class TextOf:
    """Says that a route answers with text of a media type, whose form others have laid down."""

    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path and verb, what it does, and what it answers."""

    verb: str
    path: str
    operation: str
    """The operation of the coordinator that it asks for, as the table of rights has it; `console.…`: none."""
    handler: Handler
    answer: Any
    """The type of the value that it answers with; `Listed` or `Streamed` of one, `TextOf` a type; None: nothing."""
    status: HTTPStatus = HTTPStatus.OK
    or_status: HTTPStatus | None = None
    """Another status that says that it went well."""
    body: str = ""
    """The media type of its body, where that is read as it is; else FastAPI knows it."""
    example: str = ""
    """What follows `curl` in the documentation; empty: the path alone. `{job}` and the like are filled in."""

    @property
    def id(self) -> str:
        """The name of the operation in the OpenAPI document: unique, as one operation can have several routes."""
        return self.handler.__name__
