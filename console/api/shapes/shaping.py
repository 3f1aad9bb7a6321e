"""Lists in other shapes: with some fields alone, and as CSV for spreadsheets."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from console.api.answers import JSON_TYPE
from console.api.problems import refusal

CSV_TYPE = "text/csv"
MOST_FIELDS = 100
"""Fields that one list is asked for."""
LONGEST_FIELD = 200
"""Characters of the name of a field."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How texts begin that spreadsheets take for formulas."""
_LIST = b'{"items":'


class ShapingLists:
    """An application whose lists can be had with some `fields` alone, and as CSV where that is accepted."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        fields = fields_of(QueryParams(scope["query_string"]).getlist("fields"))
        as_csv = _accepts_csv(Headers(scope=scope).get("accept", ""))
        if fields is None:
            detail = f"`fields` has at most {MOST_FIELDS} names of at most {LONGEST_FIELD} characters"
            await refusal(HTTPStatus.BAD_REQUEST, "invalid", detail)(scope, receive, send)
        elif not fields and not as_csv:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _Shaper(scope, send, fields, as_csv=as_csv).send)


class _Shaper:
    """The answer to one request, which is held until it is whole if it is a list, and passed on at once if not."""

    def __init__(self, scope: Scope, send: Send, fields: Sequence[str], *, as_csv: bool) -> None:
        self._scope = scope
        self._send = send
        self._fields = fields
        self._as_csv = as_csv
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._finish(self._start)

    async def _finish(self, start: Message) -> None:
        body = self._body
        headers = MutableHeaders(scope=start)
        if body.startswith(_LIST):
            found = json.loads(body)
            if self._as_csv:
                body = csv_of(found["items"], self._fields).encode()
                headers["content-type"] = f"{CSV_TYPE}; charset=utf-8"
                if found["next"]:
                    headers["link"] = f'<{_next(self._scope, found["next"])}>; rel="next"'
            else:
                found["items"] = [selected(each, self._fields) for each in found["items"]]
                body = json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
            headers["content-length"] = str(len(body))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def fields_of(said: Sequence[str]) -> tuple[str, ...] | None:
    """The names of fields that a request says, with commas between them; None: they are too many, or too long."""
    names = tuple(dict.fromkeys(name for each in said for name in each.split(",") if name))
    too_long = any(len(name) > LONGEST_FIELD for name in names)
    return None if len(names) > MOST_FIELDS or too_long else names


def selected(item: Any, fields: Sequence[str]) -> Any:  # noqa: ANN401 - a JSON value
    """The fields of an item that are asked for, as far as it has them; `spec.name` is a field within another."""
    if not isinstance(item, dict):
        return item
    found: dict[str, Any] = {}
    for field in fields:
        value = _at(item, field.split("."))
        if value is not _ABSENT:
            *outer, last = field.split(".")
            place = found
            for name in outer:
                place = place.setdefault(name, {})
            place[last] = value
    return found


def csv_of(items: Sequence[Any], fields: Sequence[str]) -> str:
    """Items as CSV with a line of names: these fields, or all that any item has; lists and maps are JSON."""
    names = list(fields) or list(dict.fromkeys(name for each in items if isinstance(each, dict) for name in each))
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(names)
    for each in items:
        writer.writerow([_cell(_at(each, name.split("."))) for name in names])
    return written.getvalue()


_ABSENT = object()


def _at(item: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 - a JSON value
    for name in path:
        if not isinstance(item, Mapping) or name not in item:
            return _ABSENT
        item = item[name]
    return item


def _cell(value: Any) -> str:  # noqa: ANN401 - a JSON value
    if value is _ABSENT or value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _accepts_csv(accept: str) -> bool:
    return CSV_TYPE in {each.partition(";")[0].strip().lower() for each in accept.split(",")}


def _is_json(start: Message) -> bool:
    return start["status"] == HTTPStatus.OK and Headers(raw=start["headers"]).get("content-type") == JSON_TYPE


def _next(scope: Scope, page: str) -> str:
    """Where the next part of a list is."""
    kept = [(name, value) for name, value in parse_qsl(scope["query_string"].decode("ascii")) if name != "page"]
    return f"?{urlencode([*kept, ('page', page)])}"
