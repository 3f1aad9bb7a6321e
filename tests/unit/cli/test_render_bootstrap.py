"""What is shown of computers that become nodes."""

import io

from rich.console import Console, RenderableType

from muster.bootstrap.inspect.checks import Finding, Severity
from muster.bootstrap.inspect.inspection import Inspected
from muster.bootstrap.installation.outcome import Outcome, Status
from muster.bootstrap.installation.plan import Await, MachinePlan
from muster.bootstrap.installation.work import Candidate
from muster.bootstrap.request import MachineRequest
from muster.bootstrap.ssh.target import Target
from muster.cli.output.bootstrap import InstallProgress, document_of, findings_table, outcomes_table, plans
from muster.cli.output.documents import Format, text_of

WARNING = Finding(id="docker", severity=Severity.WARNING, sentence="no Docker Engine", remedy="install it")
ERROR = Finding(id="gpu", severity=Severity.ERROR, sentence="no driver", remedy="install one")
SEEN = Inspected(wish=MachineRequest(target=Target(host="a", user="ops")))


def _text(shown: RenderableType) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_plans_tell_findings_and_steps_and_for_blocked_ones_no_steps() -> None:
    planned = Candidate(seen=SEEN, plan=MachinePlan(name="n", findings=(WARNING,), steps=(Await(name="n"),)))
    blocked = Candidate(seen=SEEN, plan=MachinePlan(name="n", findings=(ERROR,), steps=(Await(name="n"),)))
    settled = Candidate(seen=SEEN, plan=MachinePlan(name="n", findings=(), steps=()))
    lost = Candidate(seen=Inspected(wish=SEEN.wish, problem="no answer"), plan=None)
    assert _text(plans([planned, blocked, settled, lost])) == [
        "ops@a -> n",
        "  warning: no Docker Engine",
        "    -> install it",
        "  1. start muster-agent and wait until n is ready",
        "ops@a -> n",
        "  error: no driver",
        "    -> install one",
        "ops@a -> n",
        "  1. nothing; all is as it should be",
        "ops@a",
        "  error: no answer",
    ]


def test_findings_stand_with_their_remedies() -> None:
    assert _text(findings_table([("a", (WARNING,)), ("b", (ERROR,))])) == [
        "HOST           CHECK   FOUND",
        "a     warning  docker  no Docker Engine",
        "                       -> install it",
        "b     error    gpu     no driver",
        "                       -> install one",
    ]


def test_outcomes_say_what_is_left() -> None:
    failed = Outcome(host="a", node="n", status=Status.FAILED, message="no room", seconds=3.2, left=("/opt/x",))
    assert _text(outcomes_table([failed])) == [
        "HOST  NODE  RESULT  TIME  DETAIL",
        "a     n     failed   3 s  no room; left: /opt/x",
    ]
    document = document_of([failed], dry_run=False)
    assert (document["succeeded"], document["dry_run"]) == (False, False)
    assert '"status": "failed"' in text_of(document, Format.JSON)


def test_on_a_terminal_progress_is_a_table_that_goes_away() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    progress = InstallProgress(console)
    with progress.shown():
        progress.tell("ops@a", "sends the bundle")
    assert isinstance(console.file, io.StringIO)
    assert "sends the bundle" in console.file.getvalue()
