"""Rights over HTTP: every route, asked by every kind of caller, as the one table of rights has it."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from console.api.app import ROUTES
from console.api.route import Route
from coordinator.service.rules import RULES, AccessScope, OperationRule
from muster.domain.fleet.access import EVERYWHERE, Access
from tests.integration.consoles import console
from tests.integration.secured import Secured, secured

CALLERS = {
    "stranger": None,
    "viewer": {"vision": Access.VIEWER},
    "member": {"vision": Access.MEMBER},
    "operator": {"vision": Access.OPERATOR},
    "admin": {"vision": Access.ADMIN},
    "outsider": {"speech": Access.ADMIN},
    "fleet operator": {EVERYWHERE: Access.OPERATOR},
    "fleet admin": {EVERYWHERE: Access.ADMIN},
}
"""What each kind of caller is granted; None: it is nobody."""
JOB = {"name": "x", "command": "true", "hold": True, "project": "vision"}
BODIES: dict[str, Any] = {
    "submit_jobs": JOB,
    "check_jobs": JOB,
    "change_job": {"priority": 1},
    "label_node": {"labels": {"rack": "7"}},
    "put_pool": {},
    "pull_image": {"image": "team/none:1"},
    "put_window": {"begins": "2030-01-01T00:00:00Z", "ends": "2030-01-02T00:00:00Z", "labels": {"rack": "7"}},
    "put_quotas": {"projects": {"vision": {"weight": 2}}},
    "put_policy": {"rules": {"workers": {"max": 16}}},
    "put_preset": {"document": {"mounts": ["/data:/data"]}},
    "put_secret": {"values": {"key": "0123"}},
    "put_subscription": {"target": "mail", "to": ["ada@example.com"]},
    "add_account": {"name": "new", "kind": "user"},
    "make_token": {"account": "nobody"},
    "make_join_token": {"uses": 1},
}
NAMES = {
    "node": "none",
    "project": "vision",
    "secret": "none",
    "kind": "user",
    "account": "none",
    "token": "none",
    "pool": "none",
    "window": "none",
    "subscription": "none",
    "attempt": "1",
    "checkpoint": "none",
    "volume": "none",
    "pull": "none",
    "preset_kind": "data",
    "preset": "none",
}
OWN_ACCOUNT = {"make_token", "revoke_token", "put_subscription"}
"""What may be done to what is one's own, or about it, by who may not more: the service looks whose it is."""


def is_allowed(rule: OperationRule, grants: dict[str, Access] | None) -> bool:
    """Whether who is granted this may do, in the project vision, what the rule is about."""
    if grants is None:
        return False
    everywhere = grants.get(EVERYWHERE)
    match rule.scope:
        case AccessScope.KNOWN:
            return True
        case AccessScope.ANYWHERE:
            return any(has.covers(rule.access) for has in grants.values())
        case AccessScope.PROJECT:
            has = everywhere or grants.get("vision")
            return has is not None and has.covers(rule.access)
        case _:
            return everywhere is not None and everywhere.covers(rule.access)


async def asked(http: httpx.AsyncClient, route: Route, job: str) -> httpx.Response:
    path = route.path.format(job=job, **NAMES)
    body = {"action": "stop", "jobs": [job]} if route.id == "act_on_jobs" else BODIES.get(route.id)
    return await http.request(route.verb, path, json=body)


def as_it_should(answer: httpx.Response, route: Route, grants: dict[str, Access] | None) -> bool:
    if grants is None:
        return answer.status_code == 401
    rule = RULES[route.operation]
    if is_allowed(rule, grants):
        return answer.status_code not in {401, 403} or route.id in OWN_ACCOUNT
    hidden = rule.scope is AccessScope.PROJECT  # of a project that one may not look at there is nothing
    return answer.status_code == 403 or (hidden and answer.status_code == 404)


def _is_of_job(route: Route) -> bool:
    return "{job}" in route.path or route.id == "act_on_jobs"


async def held_job(admin: httpx.AsyncClient) -> str:
    """A job of the project vision that nobody has done anything to."""
    answer = await admin.post("/v1/jobs", json=JOB, params={"queue_anyway": True})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def token_of(fleet: Secured, name: str) -> str | None:
    grants = CALLERS[name]
    return None if grants is None else await fleet.user(f"one-{name}".replace(" ", "-"), grants)


@pytest.mark.parametrize("name", CALLERS)
async def test_every_route_asks_what_the_table_of_rights_says(tmp_path: Path, name: str) -> None:
    async with secured(tmp_path) as fleet:
        await fleet.user("first", {"vision": Access.VIEWER, "speech": Access.VIEWER})  # so the projects are there
        token = await token_of(fleet, name)
        async with (
            console(fleet.doors.clients, fleet.authority.certificate) as served,
            served.http(fleet.admin_token) as admin,
            served.http(token) as http,
        ):
            wrong = {}
            for route in ROUTES:
                answer = await asked(http, route, await held_job(admin) if _is_of_job(route) else "")
                if not as_it_should(answer, route, CALLERS[name]):
                    wrong[f"{route.verb} {route.path}"] = (answer.status_code, answer.text)
            assert wrong == {}


async def test_tokens_that_count_no_more_are_refused_at_once(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        secret = await fleet.user("ada", {"vision": Access.VIEWER})
        async with (
            console(fleet.doors.clients, fleet.authority.certificate) as served,
            served.http(secret) as http,
            served.http(fleet.admin_token) as admin,
        ):
            myself = (await http.get("/v1/whoami")).json()
            assert myself["name"] == "ada"
            await admin.delete(f"/v1/tokens/{myself['token']}")
            refused = await http.get("/v1/whoami")
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="muster"')


async def test_who_tries_tokens_is_slowed_down_and_others_are_not(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        secret = await fleet.user("ada", {"vision": Access.VIEWER})
        async with console(fleet.doors.clients, fleet.authority.certificate) as served, served.http(secret) as ada:
            assert (await ada.get("/v1/whoami")).status_code == 200
            answers = []
            for number in range(25):
                async with served.http(f"guess-{number}") as guesser:
                    answers.append(await guesser.get("/v1/whoami"))
            assert [answer.status_code for answer in answers[:20]] == [401] * 20
            assert answers[-1].status_code == 429
            assert int(answers[-1].headers["retry-after"]) >= 1
            assert (await ada.get("/v1/whoami")).status_code == 200


async def test_secrets_go_in_and_never_come_out(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        secret = await fleet.user("ada", {"vision": Access.OPERATOR})
        async with console(fleet.doors.clients, fleet.authority.certificate) as served, served.http(secret) as http:
            stored = await http.put("/v1/projects/vision/secrets/wandb", json={"values": {"key": "very-secret"}})
            wrong = await http.put("/v1/projects/vision/secrets/wandb", json={"values": {"key": ["very-secret"]}})
            listed = await http.get("/v1/projects/vision/secrets")
        assert (stored.status_code, wrong.status_code) == (200, 400)
        assert [each["name"] for each in listed.json()["items"]] == ["wandb"]
        assert not any("very-secret" in answer.text for answer in (stored, wrong, listed))
