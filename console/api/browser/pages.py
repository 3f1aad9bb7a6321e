"""Pages over HTTP: their files, and the one page that finds in its address what it is to show.

They run under a policy that allows their own scripts and styles, and nothing else.
"""

from functools import cache
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from console.api.browser.page_files import INDEX, PageFile, page_files

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What a page may load and do: nothing of others, no script or style within it, no text that becomes a script."""
PAGES_PATH = "/{path:path}"
"""The route of all paths that nobody else answers."""
_API = "v1/"
_FOR_EVER = "public, max-age=31536000, immutable"
_ASKED_EACH_TIME = "no-cache"


async def show_page_file(request: Request, path: str) -> Response:
    """A file of the pages, or the page itself for whatever a person asks for: the page knows what there is."""
    files = _files()
    found = files.get(path)
    if found is None:
        if path.startswith(_API) or "text/html" not in request.headers.get("accept", ""):
            raise HTTPException(HTTPStatus.NOT_FOUND)
        found = files[INDEX]
    return _sent(request, found)


def _sent(request: Request, file: PageFile) -> Response:
    headers = {
        "Cache-Control": _FOR_EVER if file.lasts else _ASKED_EACH_TIME,
        "Content-Security-Policy": PAGE_POLICY,
        "ETag": file.tag,
        "Vary": "Accept-Encoding",
    }
    known = request.headers.get("if-none-match", "")
    if file.tag in {each.strip().removeprefix("W/") for each in known.split(",")}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)


@cache
def _files() -> dict[str, PageFile]:
    """Read when the first browser comes: most consoles of tests never meet one."""
    return dict(page_files())
