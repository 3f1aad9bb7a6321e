"""Every rendering with text in every field that acts on a terminal, hides there, or forges lines."""

import inspect
import io
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import Any

import pytest
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from muster.bootstrap.inspect.checks import Finding, Severity
from muster.bootstrap.inspect.inspection import Inspected
from muster.bootstrap.installation.outcome import Outcome, Status
from muster.bootstrap.installation.plan import Await, MachinePlan
from muster.bootstrap.installation.work import Candidate
from muster.bootstrap.request import MachineRequest
from muster.bootstrap.ssh.target import Target
from muster.cli.commands.sharing import quota_tables as render_quotas
from muster.cli.context import report
from muster.cli.output import bootstrap as render_bootstrap
from muster.cli.output import executions as render_executions
from muster.cli.output import jobs as render_jobs
from muster.cli.output import nodes as render_nodes
from muster.cli.output import progress as render_progress
from muster.cli.output import screen as terminal
from muster.cli.output import tables as render_tables
from muster.cli.output import trust as render_trust
from muster.cli.output.documents import Format, line_of, text_of
from muster.cli.output.job_sentences import changes, verdict_words
from muster.domain.attachments.request import AttachmentKind, OpenedAttachment
from muster.domain.errors import InvalidJobError
from muster.domain.fleet import access
from muster.domain.fleet.node import Cordon, Inventory, NodeState, RuntimeOffer
from muster.domain.fleet.quota import AmountBounds, Amounts, QuotaTerms, QuotaUnit, UnitKind, UnitTerms
from muster.domain.fleet.standing_view import PoolStandingView, QueueLine, UnitStandingView
from muster.domain.fleet.window import Window
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.explanation import Awaited, Explanation, NodeRefusal
from muster.domain.jobs.job import Role, RuntimeKind
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.hostile_text import FORGED, HOSTILE, harm_in, made_hostile
from tests.unit.cli import values
from tests.unit.cli.values import START, at, attempt, execution

FAILED = attempt(
    execution(0, State.CHECKED_IN, detail="waits"),
    execution(1, State.FAILED, failure=values.EXIT_3),
    placed=1,
    checked_in=2,
)
JOB = replace(
    values.job(JobPhase.FAILED, replace(FAILED, failure=values.EXIT_3), summary="failed", failure=values.EXIT_3),
    spec=replace(values.SPEC, roles=(Role(command=("a",), image="b", workdir="/c", user="d", env={"e": "f"}),)),
)
WINDOW = Window(name="w", begins=START, ends=START, nodes=(NodeId("n"),), labels={"a": "b"}, project="p", reason="fans")
NODE = replace(
    values.node("a", values.gpu(0, "is ill")),
    state=NodeState.LOST,
    executions=(ExecutionId("j-1-0"),),
    cordon=Cordon(since=START, reason="disk"),
    agent_version="1",
    inventory=Inventory(
        cpus=8,
        memory=2**30,
        gpus=(values.gpu(0, "is ill"),),
        gpu_problem="no driver",
        gpu_driver="5",
        cuda="12",
        os="os",
        kernel="6",
        architecture="x",
        addresses=("10.0.0.1",),
        labels={"pool": "a"},
        runtimes=(RuntimeOffer(kind=RuntimeKind.DOCKER, problem="is away"),),
    ),
)
WHY = Explanation(
    summary="waits",
    phase=JobPhase.QUEUED,
    refusals=(NodeRefusal(node=NodeId("a"), reason="is cordoned"),),
    awaited=(Awaited(rank=0, node=NodeId("a"), state=State.PREPARING, detail="pulls"),),
    failure=values.EXIT_3,
)
ACCOUNT = access.Account(
    name="a", kind=access.AccountKind.USER, created_at=START, grants={"p": access.Access.ADMIN}, identity="i"
)
TOKEN = access.IssuedToken(id="t", account="a", note="n", created_at=START)
JOIN_TOKEN = access.IssuedJoinToken(
    id="t", created_by="a", created_at=START, expires_at=START, uses_left=1, labels={"pool": "a"}
)
PROJECT = access.Project(name="p", created_at=START, permissions=access.Permissions(host_paths=("/data",)))
ENROLLED = access.EnrolledNode(name=NodeId("n"), key="k", enrolled_at=START, token="t", labels={"pool": "a"})
ENTRY = access.AuditEntry(at=START, who="w", what="Join", target="n", origin="ipv4:1", result="refused")
ATTACHMENT = OpenedAttachment(
    attachment="a",
    job=JobId("j"),
    job_name="train",
    rank=0,
    node=NodeId("n"),
    account="anna",
    kind=AttachmentKind.COMMAND,
    about="bash",
    since=START,
    bytes_in=1,
    bytes_out=2,
)
FINDING = Finding(id="docker", severity=Severity.ERROR, sentence="is not there", remedy="install it")
SEEN = Inspected(wish=MachineRequest(target=Target(host="a", user="ops")), problem="no answer", findings=(FINDING,))
BLOCKED = Candidate(seen=SEEN, plan=MachinePlan(name="n", findings=(FINDING,), steps=(Await(name="n"),)))
PLANNED = Candidate(seen=SEEN, plan=MachinePlan(name="n", findings=(), steps=(Await(name="n"),)))
OUTCOME = Outcome(host="a", node="n", status=Status.FAILED, message="no room", left=("/x",))

UNIT = UnitStandingView(
    unit=QuotaUnit(
        name="d", kind=UnitKind.DEPARTMENT, terms=UnitTerms(everywhere=QuotaTerms(weight=2, quota=AmountBounds(gpus=1)))
    ),
    pools=(
        PoolStandingView(
            pool="p",
            weight=1,
            rank=0,
            quota=Amounts(1),
            limit=Amounts(1),
            share=Amounts(1),
            held=Amounts(1),
            guaranteed=Amounts(1),
            waiting=Amounts(1),
        ),
    ),
)
QUEUED = QueueLine(
    position=1,
    job=JobId("j"),
    name="n",
    project="p",
    owner="o",
    pool="p",
    job_class=JobClass.SPARE,
    priority=0,
    tier="spare",
    size=Amounts(1000),
    since=START,
    reason="room",
)

LATER = at(99)
DRAWN: Mapping[Callable[..., Any], Callable[[], RenderableType]] = {
    render_jobs.jobs_table: lambda: render_jobs.jobs_table([made_hostile(JOB)], LATER, wide=True),
    render_jobs.job_details: lambda: render_jobs.job_details(made_hostile(JOB), LATER),
    render_jobs.roster_table: lambda: render_jobs.roster_table(made_hostile(FAILED)),
    render_jobs.failure_block: lambda: render_jobs.failure_block(made_hostile(values.EXIT_3)),
    render_jobs.explanation: lambda: render_jobs.explanation(made_hostile(WHY), LATER),
    render_jobs.verdict: lambda: render_jobs.verdict(made_hostile(JOB)),
    render_nodes.windows_table: lambda: render_nodes.windows_table([made_hostile(WINDOW)]),
    render_nodes.nodes_table: lambda: render_nodes.nodes_table([made_hostile(NODE)], LATER, wide=True),
    render_nodes.node_details: lambda: render_nodes.node_details(made_hostile(NODE), LATER),
    render_progress.progress: lambda: render_progress.progress(made_hostile(JOB), LATER),
    render_trust.accounts_table: lambda: render_trust.accounts_table([made_hostile(ACCOUNT)]),
    render_trust.tokens_table: lambda: render_trust.tokens_table([made_hostile(TOKEN)], LATER),
    render_trust.join_tokens_table: lambda: render_trust.join_tokens_table([made_hostile(JOIN_TOKEN)], LATER),
    render_trust.enrolled_nodes_table: lambda: render_trust.enrolled_nodes_table([made_hostile(ENROLLED)]),
    render_quotas.shared_projects_table: lambda: render_quotas.shared_projects_table(
        [made_hostile(PROJECT)], {made_hostile(PROJECT).name: UNIT}
    ),
    render_quotas.standings_table: lambda: render_quotas.standings_table([made_hostile(UNIT)]),
    render_quotas.terms_table: lambda: render_quotas.terms_table([made_hostile(UNIT.unit)]),
    render_quotas.departments_table: lambda: render_quotas.departments_table([made_hostile(UNIT)]),
    render_quotas.queue_table: lambda: render_quotas.queue_table([made_hostile(QUEUED)]),
    render_trust.project_facts: lambda: render_trust.project_facts(made_hostile(PROJECT)),
    render_trust.audit_table: lambda: render_trust.audit_table([made_hostile(ENTRY)]),
    render_bootstrap.findings_table: lambda: render_bootstrap.findings_table([(HOSTILE, [made_hostile(FINDING)])]),
    render_bootstrap.plans: lambda: render_bootstrap.plans([made_hostile(BLOCKED), made_hostile(PLANNED)]),
    render_bootstrap.outcomes_table: lambda: render_bootstrap.outcomes_table([made_hostile(OUTCOME)]),
    render_tables.listing: lambda: render_tables.listing([HOSTILE], [[HOSTILE + FORGED]]),
    render_tables.sentences: lambda: render_tables.sentences([HOSTILE], [[HOSTILE + FORGED]]),
    render_executions.executions_table: lambda: render_executions.executions_table(made_hostile(FAILED), LATER),
    render_executions.kept_shells_table: lambda: render_executions.kept_shells_table([(0, HOSTILE + FORGED, 7, True)]),
    render_executions.attachments_table: lambda: render_executions.attachments_table([made_hostile(ATTACHMENT)], LATER),
    render_tables.facts: lambda: render_tables.facts([(HOSTILE, HOSTILE)]),
    render_tables.shown: lambda: render_tables.shown(HOSTILE + FORGED),
    render_tables.joined: lambda: render_tables.joined(HOSTILE, HOSTILE + FORGED),
    render_tables.word: lambda: render_tables.word(State.FAILED),
}
KINDS = ("Table", "Text", "Group", "Renderable")
MODULES = (
    render_bootstrap,
    render_executions,
    render_jobs,
    render_nodes,
    render_progress,
    render_quotas,
    render_tables,
    render_trust,
)
VALUES = (JOB, NODE, WHY, ACCOUNT, TOKEN, JOIN_TOKEN, PROJECT, UNIT, QUEUED, ENROLLED, ENTRY, OUTCOME)


def printed(act: Callable[[], object]) -> str:
    """What reaches a pipe, on either stream."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        act()
    return out.getvalue()


def drawn(renderable: RenderableType) -> str:
    """What reaches a pipe of something that Rich draws."""
    return printed(lambda: terminal.screen().print(renderable))


@pytest.mark.parametrize("draw", DRAWN.values(), ids=[each.__name__ for each in DRAWN])
def test_what_is_drawn_has_no_character_that_acts_or_hides(draw: Callable[[], RenderableType]) -> None:
    shown = drawn(draw())

    assert harm_in(shown) == []
    assert [line for line in shown.splitlines() if line.startswith("error: forged")] == []


@pytest.mark.parametrize("draw", [draw for function, draw in DRAWN.items() if function is not render_tables.word])
def test_markup_in_a_text_is_text(draw: Callable[[], RenderableType]) -> None:
    shown = drawn(draw())

    assert "[red]a[/red][link=http://x]b[/link]:bomb:" in shown
    assert "💣" not in shown


def test_no_rendering_is_forgotten_here() -> None:
    drawing = {
        function
        for module in MODULES
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and not name.startswith("_")
        and function.__module__ == module.__name__
        and any(
            word in str(inspect.signature(function).return_annotation)
            for word in ("Table", "TextTable", "Text", "Group", "Rend")
        )
    }

    assert drawing == set(DRAWN)


def test_a_console_shows_what_a_table_has_forgotten_to() -> None:
    table = Table()
    table.add_column(HOSTILE)
    table.add_row(Text(HOSTILE))

    assert harm_in(drawn(table)) == []
    assert harm_in(drawn(HOSTILE)) == []


@pytest.mark.parametrize("value", VALUES, ids=[type(each).__name__ for each in VALUES])
def test_documents_have_escapes_of_their_own_and_say_the_same(value: object) -> None:
    hostile = made_hostile(value)
    as_json, as_yaml, as_line = text_of(hostile, Format.JSON), text_of(hostile, Format.YAML), line_of(hostile)

    assert harm_in(as_json) == harm_in(as_yaml) == harm_in(as_line) == []
    assert json.loads(as_json) == json.loads(as_line)


def test_sentences_are_of_one_line_each() -> None:
    hostile = made_hostile(JOB)
    lines = [*changes(None, replace(hostile, phase=JobPhase.PREPARING), LATER), "".join(verdict_words(hostile))]

    def say_all() -> None:
        for each in lines:
            terminal.say(each)

    shown = printed(say_all)

    assert harm_in(shown) == []
    assert len(shown.splitlines()) == len(lines) > 2


def test_errors_that_quote_what_others_wrote_are_harmless() -> None:
    shown = printed(lambda: report(InvalidJobError(f"the job {HOSTILE} is not valid")))

    assert harm_in(shown) == []
    assert shown.startswith("error: the job [red]a[/red]")


def test_notes_are_harmless() -> None:
    assert harm_in(printed(lambda: terminal.print_dim(HOSTILE + FORGED))) == []


def test_what_is_done_to_a_machine_is_told_in_one_line() -> None:
    progress = render_bootstrap.InstallProgress(terminal.screen(err=True))
    shown = printed(lambda: progress.tell(HOSTILE + FORGED, HOSTILE + FORGED))

    assert harm_in(shown) == []
    assert len(shown.splitlines()) == 1
