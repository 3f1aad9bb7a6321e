"""Requests of all kinds that the OpenAPI document allows, and others that it does not, by callers of five kinds."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from muster.domain.fleet.access import Access
from tests.integration.consoles import console
from tests.integration.secured import secured

EACH = 1
"""Requests of each operation by each caller that the document allows, and as many that it does not."""
ANSWERED_WITHIN = 30.0
ENDLESS = {"/v1/live"}
"""What never ends; see test_live_jobs."""
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


async def test_whatever_is_asked_is_answered_as_the_document_says(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        tokens = [
            fleet.admin_token,
            await fleet.user("operator", {"vision": Access.OPERATOR}),
            await fleet.user("viewer", {"vision": Access.VIEWER}),
            "muster_0123456789",  # that nobody has made
            "",
        ]
        async with (
            console(
                fleet.doors.clients, fleet.authority.certificate, token=fleet.admin_token, state=tmp_path / "console"
            ) as served,
            served.http(fleet.admin_token) as admin,
        ):
            document = (await admin.get("/v1/openapi.json")).json()
            job = {"name": "x", "command": "true", "hold": True, "project": "vision"}
            name = (await admin.post("/v1/jobs", json=job, params={"queue_anyway": True})).json()["id"]
            found = await asyncio.to_thread(wrong_answers, document, served.url, tokens, name)
    assert found == []


def wrong_answers(document: dict[str, Any], url: str, tokens: Sequence[str], job: str) -> list[str]:
    """What was answered otherwise than the document says, to whom; `job` is one that there is."""
    schema, found = schemathesis.openapi.from_dict(document), list[str]()
    operations = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    assert len(operations) > 80
    for operation in operations:
        for mode in MODES if operation.path not in ENDLESS else ():

            @settings(
                max_examples=EACH,
                phases=[Phase.generate],
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Case[Any]) -> None:
                if "job" in case.path_parameters:
                    case.path_parameters["job"] = job
                for token in tokens:
                    shown = {"Authorization": f"Bearer {token}"} if token else {}
                    answer = case.call(base_url=url, headers=shown, timeout=ANSWERED_WITHIN)
                    try:
                        case.validate_response(answer, checks=CHECKS)
                    except FailureGroup as failures:
                        found.append(f"{token[:12]}: {failures}")

            with suppress(Unsatisfiable):  # nothing that could be said wrongly
                ask()
    return found
