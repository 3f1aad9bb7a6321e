"""The page that a browser gets: the same for everybody, under a policy that runs its own script and nothing else."""

from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'"
)
"""What the page may load and do: nothing of others, no script or style within it, no text that becomes a script."""
PAGE_FILES: Mapping[str, str] = {
    "/": "page.html",
    "/jobs/{job}": "page.html",
    "/page.js": "page.js",
    "/page.css": "page.css",
}
"""Files by the path of their route; the page finds the name of a job in its address."""

_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_CONTENT = {name: (Path(__file__).parent / name).read_bytes() for name in PAGE_FILES.values()}


async def show_page_file(request: Request) -> Response:
    """The page on which people sign in, its script or its style."""
    name = PAGE_FILES[request.scope["route"].path]
    media_type = f"{_TYPES[Path(name).suffix]}; charset=utf-8"
    return Response(_CONTENT[name], HTTPStatus.OK, {"Content-Security-Policy": PAGE_POLICY}, media_type)
