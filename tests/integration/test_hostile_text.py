"""Text of strangers, users and nodes: refused where it names something, harmless wherever it is shown."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from muster.cli.program import program
from muster.client.endpoint import Login, keep_login
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.node import Cordon
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.explanation import Explanation, NodeRefusal
from muster.domain.jobs.job import InlineFile, JobSpec, Mount, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import trust_pb2, trust_pb2_grpc
from tests.hostile_text import FORGED, HOSTILE, harm_in, made_hostile
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster
from tests.integration.fleet import running_fleet
from tests.integration.secured import secured
from tests.unit.cli import values
from tests.unit.cli.values import attempt, execution, line

TITLE = "\x1b]0;title\x07"
SENT = HOSTILE.translate(dict.fromkeys((0, 0xDC9B, 0xD800))) + FORGED
"""Half characters cannot be sent, and NUL nowhere be given to a program."""
ROLE = Role(image="img", command=("true",))


def job(**options: Any) -> JobSpec:
    return JobSpec(name="train", roles=(replace(ROLE, **options),))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (job(image=f"img{TITLE}"), "roles[0].image"),
        (job(workdir=f"/{TITLE}"), "roles[0].workdir"),
        (job(user=f"1\u202e{TITLE}"), "roles[0].user"),
        (job(env={f"A{TITLE}": "1"}), "roles[0].env"),
        (job(resources=Resources(gpus=1, gpu_model=f"H\n{TITLE}")), "roles[0].resources.gpu_model"),
        (job(files=(InlineFile(path=f"a{TITLE}", content=b""),)), "roles[0].files[0].path"),
        (job(mounts=(Mount(source=f"/{TITLE}", target="/a"),)), "roles[0].mounts[0].source"),
        (replace(job(), node_labels={"pool": f"a{TITLE}"}), "node_labels.pool"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_a_job_that_names_something_invisibly_is_refused(tmp_path: Path, spec: JobSpec, field: str) -> None:
    async with running_fleet(tmp_path) as fleet:
        with pytest.raises(InvalidJobError, match=f"^{re.escape(field)}") as refused:
            await fleet.client.jobs.submit(spec, queue_anyway=True, dry_run=True)

        assert harm_in(str(refused.value)) == []


async def test_commands_and_values_of_variables_are_the_users_own_text(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        taken = await fleet.client.jobs.submit(
            job(command=("sh", "-c", f"echo a\n\techo {TITLE}"), env={"A": TITLE}), queue_anyway=True
        )

        assert (await fleet.client.jobs.get(taken.id)).spec.roles[0].env == {"A": TITLE}


async def test_reasons_notes_and_labels_are_of_visible_text(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        for asked in (
            admin.nodes.cordon("a", reason=f"disk{TITLE}"),
            admin.tokens.create(note=f"mine{TITLE}"),
            admin.join_tokens.create(labels={"pool": f"a\n{TITLE}"}),
        ):
            with pytest.raises(InvalidJobError, match=r"(reason|note|labels) has the character \\"):
                await asked


async def test_a_stranger_writes_nothing_to_the_terminal_of_an_admin(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, fleet.client() as admin:
        async with open_channel(fleet.doors.clients, Credentials(authority=fleet.authority.certificate)) as channel:
            stub: Any = trust_pb2_grpc.JoinServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Join(trust_pb2.JoinRequest(token="x", node=SENT))
        entries = [each for each in await admin.audit.list() if each.what == "nodes.join"]

        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert [harm_in(each.target) for each in entries] == [[]]
        assert entries[0].target.startswith(r"[red]a[/red]")
        assert len(entries[0].target) == 200


@pytest.mark.parametrize("words", [("show",), ("nodes", "show"), ("stop",), ("why",), ("logs",)], ids=" ".join)
async def test_what_is_unknown_is_quoted_harmlessly(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with secured(tmp_path / "fleet") as fleet:
        authority = fleet.authority.certificate.decode()
        keep_login(tmp_path, Login(address=fleet.doors.clients, authority=authority, token=fleet.admin_token))
        called, environment = (*words, SENT), {"MUSTER_HOME": str(tmp_path)}
        shown = await asyncio.to_thread(CliRunner().invoke, program(called), called, env=environment)

    assert shown.exit_code != 0
    assert "[red]a[/red]" in shown.output
    assert harm_in(shown.output) == []


@pytest.fixture
def muster() -> Iterator[Muster]:
    failure = made_hostile(replace(values.EXIT_3, node=None), SENT)
    failed = replace(execution(0, State.FAILED, failure=failure, detail=SENT), gpus=())
    shown = values.job(
        JobPhase.FAILED, replace(attempt(failed), failure=failure), summary=SENT, started=1, ended=3, failure=failure
    )
    role = Role(command=("sh", "-c", SENT), image=f"img{SENT}", workdir=f"/{SENT}", env={"A": SENT})
    node = replace(
        values.node("a", replace(values.gpu(0, SENT), model=SENT)), cordon=Cordon(since=values.START, reason=SENT)
    )
    node = replace(
        node, agent_version=SENT, inventory=replace(node.inventory, labels={SENT: SENT}, os=SENT, gpu_problem=SENT)
    )
    canned = Canned(
        jobs=[replace(shown, id=JobId("j7k2"), spec=replace(shown.spec, roles=(role,), node_labels={SENT: SENT}))],
        nodes=[node],
        explanation=Explanation(
            summary=SENT, phase=JobPhase.QUEUED, failure=failure, refusals=(NodeRefusal(node=NodeId("a"), reason=SENT),)
        ),
    )
    with serving(canned) as address:
        yield Muster(canned, address)


@pytest.mark.parametrize("form", [(), ("-o", "json"), ("-o", "yaml")], ids=["table", "json", "yaml"])
@pytest.mark.parametrize(
    "words",
    [("jobs",), ("show", "j7k2"), ("why", "j7k2"), ("wait", "j7k2"), ("nodes",), ("nodes", "show", "a")],
    ids=" ".join,
)
def test_no_command_shows_a_character_that_acts_or_hides(
    muster: Muster, words: tuple[str, ...], form: tuple[str, ...]
) -> None:
    shown = muster(*words, *form)

    assert not shown.stderr
    assert r"[link=http://x]b[/link]:bomb:" in shown.output
    assert harm_in(shown.output) == []
    assert [each for each in shown.output.splitlines() if each.startswith("error: forged")] == []


@pytest.mark.parametrize(
    "words", [("stop", "j7k2"), ("delete", "j7k2"), ("jobs",), ("run", "--", "true")], ids=" ".join
)
def test_a_refusal_that_quotes_somebody_is_harmless(muster: Muster, words: tuple[str, ...]) -> None:
    muster.canned.refusals = [(grpc.StatusCode.INVALID_ARGUMENT, f"no {SENT.replace(FORGED, '')}")] * 3

    shown = muster(*words)

    assert "[red]a[/red]" in shown.output
    assert harm_in(shown.output) == []


def test_lines_of_logs_are_documents_with_escapes_and_pass_as_they_are_into_pipes(muster: Muster) -> None:
    printed = SENT.encode().replace(b"\n", b"")
    muster.canned.logs = [[line(printed)]] * 2

    document, raw = muster("logs", "j7k2", "-o", "json"), muster("logs", "j7k2", "--no-prefix")

    assert harm_in(document.stdout) == []
    assert json.loads(document.stdout)["text"].encode() == printed
    assert raw.stdout_bytes == printed + b"\n"
