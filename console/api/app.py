"""The application: every route of the table, the OpenAPI document that describes them, and what stands before them."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from console.alerts.alert_watch import AlertWatch
from console.api.answers import EVENTS_TYPE, JSON_TYPE, LINES_TYPE
from console.api.arranging.checkpoints import CHECKPOINT_ROUTES
from console.api.arranging.images import IMAGE_ROUTES
from console.api.arranging.jobs import SEVERAL_ROUTES
from console.api.arranging.notifications import NOTIFICATION_ROUTES
from console.api.arranging.places import PLACE_ROUTES
from console.api.arranging.volumes import VOLUME_ROUTES
from console.api.asking import Doorkeeper
from console.api.browser.pages import PAGES_PATH, show_page_file
from console.api.fleet import FLEET_ROUTES
from console.api.following import FOLLOWING_ROUTES
from console.api.history.differences import DIFFERENCE_ROUTES
from console.api.history.series import HISTORY_ROUTES
from console.api.jobs import JOB_ROUTES
from console.api.limits import Threshold
from console.api.mirrored.alerts import ALERT_ROUTES
from console.api.mirrored.live import LIVE_ROUTES
from console.api.mirrored.live_seats import LiveSeats
from console.api.problems import PROBLEM, answer_error, answer_fault, answer_http, answer_wrong_parts
from console.api.prometheus import PROMETHEUS_ROUTES
from console.api.route import Listed, Route, Streamed, TextOf
from console.api.schemas import JOB_FILE, REFERENCE, answers_of, type_of
from console.api.sessions.cookies import CookieSetting
from console.api.sessions.session import SessionSeal
from console.api.shapes.shaping import CSV_TYPE, ShapingLists
from console.api.sharing import SHARING_ROUTES
from console.api.signing.provider import LOGIN_ROUTES
from console.api.signing.sessions import SESSION_ROUTES
from console.api.trust import TRUST_ROUTES
from console.events.failing.streaks import DeliveryStreaks
from console.mirror.follower import MirrorFollower
from console.telemetry.gangs.watcher import GangWatcher
from console.telemetry.history.recorder import HistoryRecorder
from console.telemetry.runs.run_counts import RunCounts
from console.upstream.callers import Callers
from console.watched.follows import SharedFollows
from muster import __version__
from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.jobfile import job_schema

_PLACE = re.compile(r"\{(\w+)\}")


async def show_openapi(request: Request) -> Response:
    """Describe this API: an OpenAPI 3.1 document, from which clients in other languages are made."""
    return JSONResponse(described(request.app))


async def show_job_schema() -> Response:
    """Describe job files: a JSON Schema, for editors and forms."""
    return JSONResponse(job_schema())


async def show_health() -> Response:
    """Say that the console is alive."""
    return JSONResponse({"status": "alive"})


async def show_readiness(request: Request) -> Response:
    """Say whether the console reaches its coordinator; 503 where it does not."""
    callers: Callers = request.app.state.callers
    reaches = await callers.reaches_coordinator()
    status = HTTPStatus.OK if reaches else HTTPStatus.SERVICE_UNAVAILABLE
    return JSONResponse({"status": "ready" if reaches else "waits for the coordinator"}, int(status))


PUBLIC_ROUTES = (
    Route(verb="GET", path="/v1/openapi.json", operation="console.openapi", handler=show_openapi, answer=dict),
    Route(verb="GET", path="/v1/schema/job.json", operation="console.schema", handler=show_job_schema, answer=dict),
    *SESSION_ROUTES,
    *LOGIN_ROUTES,
    Route(verb="GET", path="/healthz", operation="console.health", handler=show_health, answer=dict),
    Route(verb="GET", path="/readyz", operation="console.readiness", handler=show_readiness, answer=dict),
)
"""What anybody may ask: none of it says anything of a fleet."""

ROUTES = (
    *JOB_ROUTES,
    *FOLLOWING_ROUTES,
    *HISTORY_ROUTES,
    *DIFFERENCE_ROUTES,
    *LIVE_ROUTES,
    *ALERT_ROUTES,
    *FLEET_ROUTES,
    *SHARING_ROUTES,
    *TRUST_ROUTES,
    *PROMETHEUS_ROUTES,
    *PLACE_ROUTES,
    *NOTIFICATION_ROUTES,
    *SEVERAL_ROUTES,
    *CHECKPOINT_ROUTES,
    *VOLUME_ROUTES,
    *IMAGE_ROUTES,
)
"""What is asked with a token."""

DESCRIBED = (*ROUTES, *SESSION_ROUTES, *LOGIN_ROUTES)
"""What the OpenAPI document describes in full."""


class ConsoleParts(NamedTuple):
    """What a console with a token of its own answers from; None: it has that not."""

    follower: MirrorFollower | None = None
    """Keeps up to date what is answered from memory."""
    history: HistoryRecorder | None = None
    """What was used."""
    watcher: GangWatcher | None = None
    """Which rank differs."""
    follows: SharedFollows | None = None
    """Streams about single jobs, each for all who look."""
    alerts: AlertWatch | None = None
    """What somebody should look at."""
    own: Client | None = None
    """Asks with the console's own token, for people who sign in."""
    runs: RunCounts | None = None
    """How attempts end, and how fast they start."""
    streaks: DeliveryStreaks | None = None
    """How deliveries end."""
    certificate_ends: datetime | None = None
    """When the certificate ends that it shows, if it shows one."""


NO_PARTS = ConsoleParts()
"""The parts of a console without a token of its own."""


def application(
    callers: Callers,
    hosts: Collection[str],
    seal: SessionSeal,
    origin: str = "",
    parts: ConsoleParts = NO_PARTS,
) -> Any:  # noqa: ANN401 - an ASGI application
    """The application that asks the coordinator through `callers`, and answers under the names `hosts`.

    Sessions are sealed with `seal`. `origin` is how browsers reach it; empty: as they say. What is not among its
    own `parts` is asked of the coordinator, or cannot be answered.
    """
    app = FastAPI(title="Muster", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.callers = callers
    app.state.follower = parts.follower
    app.state.history = parts.history
    app.state.watcher = parts.watcher
    app.state.follows = parts.follows
    app.state.alerts = parts.alerts
    app.state.runs = parts.runs
    app.state.seats = LiveSeats()
    app.state.answered = Counter()
    app.state.streaks = parts.streaks
    app.state.certificate_ends = parts.certificate_ends
    app.state.doorkeeper = Doorkeeper(callers, seal, origin, parts.own)
    for route in (*PUBLIC_ROUTES, *ROUTES):
        app.add_api_route(
            route.path,
            route.handler,
            methods=[route.verb],
            operation_id=route.id,
            summary=_summary(route),
            description="\n".join((route.handler.__doc__ or "").splitlines()[2:]).strip(),
            tags=[route.operation.partition(".")[0]],
            status_code=int(route.status),
            response_model=None,
        )
    app.add_api_route(PAGES_PATH, show_page_file, include_in_schema=False)  # last, as every path fits
    app.add_exception_handler(MusterError, answer_error)
    app.add_exception_handler(RequestValidationError, answer_wrong_parts)
    app.add_exception_handler(HTTPException, answer_http)
    app.add_exception_handler(Exception, answer_fault)
    return Threshold(ShapingLists(CookieSetting(app)), hosts, app.state.answered)


def described(app: FastAPI) -> Mapping[str, Any]:
    """The OpenAPI document; made once."""
    if app.openapi_schema is None:
        app.openapi_schema = _document(app)
    return app.openapi_schema


def _document(app: FastAPI) -> dict[str, Any]:
    document = app.openapi()
    answers, definitions = answers_of(DESCRIBED)
    shared = document.setdefault("components", {})
    shared["schemas"] = {**shared.get("schemas", {}), **definitions, "Problem": _PROBLEM_SCHEMA}
    for unused in ("HTTPValidationError", "ValidationError"):
        shared["schemas"].pop(unused, None)
    shared["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "An API token of Muster."}
    }
    document["security"] = [{"token": []}]
    for route in PUBLIC_ROUTES:
        document["paths"][route.path][route.verb.lower()]["security"] = []
    for route in DESCRIBED:
        found = document["paths"][route.path][route.verb.lower()]
        schema = answers.get(type_of(route.answer))
        found["responses"] = {
            str(int(route.status)): {"description": _summary(route), **_content(route, schema)},
            **({str(int(route.or_status)): {"description": route.or_status.phrase}} if route.or_status else {}),
            "default": {"description": "What went wrong.", "content": {PROBLEM: {"schema": _reference("Problem")}}},
        }
        if isinstance(route.answer, Listed | Streamed):
            found.setdefault("parameters", []).append(_FIELDS)
        if route.body:
            content = {route.body: {"schema": {"type": "string"}}, JSON_TYPE: {"schema": _reference(JOB_FILE)}}
            found["requestBody"] = {"required": True, "content": content, "description": _SEVERAL_JOBS}
    return document


def _content(route: Route, schema: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a JSON Schema
    match route.answer:
        case None:
            return {}
        case TextOf(media_type=media_type):
            return {"content": {media_type: {}}}
        case Listed():
            return {"content": {JSON_TYPE: {"schema": _list_of(schema)}, CSV_TYPE: {"schema": {"type": "string"}}}}
        case Streamed(text=text):
            streamed = {LINES_TYPE: {"schema": schema}, EVENTS_TYPE: {"schema": {"type": "string"}}}
            whole = (
                {"text/plain": {"schema": {"type": "string"}}} if text else {JSON_TYPE: {"schema": _list_of(schema)}}
            )
            return {"content": whole | streamed}
        case _:
            return {"content": {JSON_TYPE: {"schema": schema}}}


_SEVERAL_JOBS = (
    "A job file, as YAML or JSON. Several are accepted all together or not at all: documents with `---` between them, "
    "or a list of them in JSON."
)
_FIELDS: Mapping[str, Any] = {
    "name": "fields",
    "in": "query",
    "required": False,
    "description": "The only fields of each item that are wanted, with commas between them, like `id,spec.name`.",
    "schema": {"type": "string"},
}
"""What all lists take, as the answer is shaped after it was made."""


def _list_of(schema: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a JSON Schema
    return {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": schema},
            "next": {"type": "string", "description": "Where to go on; empty: that was all."},
        },
        "required": ["items", "next"],
    }


def _reference(model: str) -> Mapping[str, str]:
    return {"$ref": REFERENCE.format(model=model)}


def _summary(route: Route) -> str:
    return (route.handler.__doc__ or "").splitlines()[0]


_PROBLEM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "What went wrong, as RFC 9457 has it.",
    "properties": {
        "type": {"type": "string", "description": "urn:muster:problem: and a word."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "The sentence that the command line says, too."},
        "issues": {
            "type": "array",
            "description": "Each fault, with its place: line and column of a job file, or the part of the request.",
            "items": {"type": "object"},
        },
    },
    "required": ["type", "title", "status", "detail", "issues"],
}
