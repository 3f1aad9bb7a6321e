"""The book of open attachments: what is in it, how many more there may be, and what the audit log has of each."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from coordinator.service.attaching.attachment_limits import AttachmentLimits
from coordinator.service.attaching.forwards import ELSEWHERE, FORWARD_REST, FORWARDS_EACH
from coordinator.service.attaching.held import LONGEST_ABOUT, HeldAttachment, about, said_of
from coordinator.service.attaching.open_book import AttachmentBook
from coordinator.service.causes import TooFastError
from muster.daemon.rates import Rate
from muster.domain.attachments.request import (
    AttachmentRequest,
    CommandRequest,
    ConnectionRequest,
    FilesRequest,
    KeptShellsRequest,
    MainProgramRequest,
    TerminalSize,
)
from muster.domain.errors import ExhaustedError
from muster.domain.fleet.access import AuditEntry
from muster.domain.ids import ExecutionId, JobId, NodeId
from tests.unit.coordinator.service.attached import AT, JUPYTER, LS, elsewhere, held, later, report

FAST = Rate(burst=100_000, per_second=100_000)


def results(entries: Sequence[AuditEntry]) -> list[tuple[str, str]]:
    return [(entry.what, entry.result) for entry in entries]


def filled(limits: AttachmentLimits, *there: HeldAttachment) -> AttachmentBook:
    book = AttachmentBook(limits)
    for each in there:
        assert book.refusal_for(each, 0.0) is None
        book.add(each)
    return book


# what the audit log has


def test_a_command_is_told_when_it_begins_and_when_it_has_ended() -> None:
    book = AttachmentBook()
    request = CommandRequest(words=("mysql", "--password=hunter2"), env=("TOKEN=hunter2",))
    (began,) = book.add(held("a1", request, rank=3))
    (ended,) = book.end(report("a1", moved=(1, 2048), code=7), later(125))

    assert began == AuditEntry(
        at=AT,
        who="ada",
        what="attachments.open",
        target="j-dev",
        origin="ipv4:10.0.0.1:ada",
        result="ok, rank 3 on gpu-3, command mysql (2 words)",
    )
    assert ended == AuditEntry(
        at=later(125),
        who="ada",
        what="attachments.end",
        target="j-dev",
        origin="ipv4:10.0.0.1:ada",
        result="ok, rank 3 on gpu-3, command mysql (2 words), 125 s, 1 byte in, 2048 bytes out, exit code 7",
    )


def test_the_end_names_its_cause_where_that_is_not_the_end_of_the_command() -> None:
    book = filled(AttachmentLimits(), held("a1"), held("a2", FilesRequest()))
    assert results(book.end(report("a1", code=255, text="the agent of gpu-0 was restarted"), later(1))) == [
        (
            "attachments.end",
            "ok, rank 0 on gpu-0, command ls (2 words), 1 s, 0 bytes in, 0 bytes out, the agent of gpu-0 was restarted",
        )
    ]
    assert results(book.end(report("a2", moved=(5, 6)), later(2))) == [
        ("attachments.end", "ok, rank 0 on gpu-0, files, 2 s, 5 bytes in, 6 bytes out")
    ]


def test_the_connections_of_a_forward_are_one_beginning_and_one_sum() -> None:
    book = AttachmentBook()
    beginnings = [entry for number in range(3) for entry in book.add(held(f"c{number}", JUPYTER))]
    assert results(beginnings) == [("attachments.open", "ok, rank 0 on gpu-0, forward 127.0.0.1:8888")]
    assert [book.end(report(f"c{number}", moved=(10, 100)), later(30)) for number in range(3)] == [()] * 3
    # Another one comes while the forward rests.
    assert book.settle(later(30) + FORWARD_REST - timedelta(seconds=1)) == ()
    assert book.add(held("c3", JUPYTER)) == ()
    assert book.settle(later(30) + FORWARD_REST) == ()
    book.end(report("c3", moved=(0, 7)), later(100))

    (ended,) = book.settle(later(100) + FORWARD_REST)
    assert (ended.what, ended.at) == ("attachments.end", later(100))
    assert ended.result == (
        "ok, rank 0 on gpu-0, forward 127.0.0.1:8888, 4 connections, 100 s, 30 bytes in, 307 bytes out"
    )
    assert book.settle(later(10_000)) == ()
    assert len(book.add(held("c4", JUPYTER))) == 1


def test_other_ports_ranks_jobs_and_accounts_are_other_forwards() -> None:
    book = AttachmentBook()
    connections = (
        held("1", JUPYTER),
        held("2", ConnectionRequest(port=6006)),
        held("3", ConnectionRequest(port=8888, host="::1")),
        held("4", JUPYTER, rank=1),
        held("5", JUPYTER, job="train"),
        held("6", JUPYTER, account="bob"),
    )
    assert all(len(book.add(each)) == 1 for each in connections)
    assert len(book.close(later(9))) == len(connections)


def test_who_tries_every_port_does_not_flood_the_audit_log() -> None:
    book = AttachmentBook(AttachmentLimits(opened=FAST))
    entries: list[AuditEntry] = []
    for port in range(1, 1001):
        entries += book.add(held(f"c{port}", ConnectionRequest(port=port)))
        entries += book.end(report(f"c{port}", moved=(1, 0)), AT)
    assert len(entries) == FORWARDS_EACH + 1
    assert entries[-1].result == f"ok, rank 0 on gpu-0, forward {ELSEWHERE}"
    ended = book.settle(AT + FORWARD_REST)
    assert len(ended) == FORWARDS_EACH + 1
    assert f"forward {ELSEWHERE}, {1000 - FORWARDS_EACH} connections" in ended[-1].result


def test_forwards_are_told_when_the_coordinator_ends_and_their_connections_may_end_later() -> None:
    book = filled(AttachmentLimits(), held("c1", JUPYTER), held("c2", JUPYTER))
    book.end(report("c1", moved=(3, 4)), later(10))
    assert results(book.close(later(60))) == [
        (
            "attachments.end",
            "ok, rank 0 on gpu-0, forward 127.0.0.1:8888, 2 connections, 60 s, 3 bytes in, 4 bytes out",
        )
    ]
    assert book.end(report("c2"), later(61)) == ()
    assert book.settle(later(100_000)) == ()


@pytest.mark.parametrize(
    ("request_", "listed", "audited"),
    [
        (CommandRequest(), "shell", "shell"),
        (CommandRequest(terminal=TerminalSize(rows=2, columns=2)), "shell", "shell"),
        (CommandRequest(words=("PASSWORD=hunter2 env",), line=True), "shell", "a line for the shell"),
        (CommandRequest(words=("bash",)), "bash", "command bash (1 word)"),
        (CommandRequest(kept="main"), "main", "kept shell main"),
        (CommandRequest(words=("a\x1b[2J\udcff",)), "a\\x1b[2J\\xff", "command a\\x1b[2J\\xff (1 word)"),
        (ConnectionRequest(port=80), "127.0.0.1:80", "forward 127.0.0.1:80"),
        (ConnectionRequest(port=80, host="::1"), "[::1]:80", "forward [::1]:80"),
        (FilesRequest(), "", "files"),
        (MainProgramRequest(), "main program", "main program"),
        (KeptShellsRequest(), "kept shells", "list of kept shells"),
        (KeptShellsRequest(end="work"), "work", "end of kept shell work"),
    ],
)
def test_an_attachment_has_words_without_secrets(request_: AttachmentRequest, listed: str, audited: str) -> None:
    assert (about(request_), said_of(request_)) == (listed, audited)


@pytest.mark.parametrize("word", ["x" * 1000, "\x1b" * 1000, "\x1b" * LONGEST_ABOUT, "x" * (LONGEST_ABOUT + 1)])
def test_a_long_word_is_cut(word: str) -> None:
    shown = about(CommandRequest(words=(word,)))
    assert len(shown) == LONGEST_ABOUT
    assert shown.endswith("…")


def test_a_word_that_just_fits_is_not_cut() -> None:
    assert about(CommandRequest(words=("x" * LONGEST_ABOUT,))) == "x" * LONGEST_ABOUT


# limits


def test_an_execution_that_is_full_names_who_holds_it() -> None:
    limits = AttachmentLimits(execution=4, opened=FAST)
    book = filled(limits, held("1"), held("2"), held("3", FilesRequest()), held("4", account="bob"))
    refused = book.refusal_for(held("5", account="cy"), 0.0)
    assert refused is not None
    assert refused.sentence == (
        "rank 0 of dev has 4 attachments open, as many as there may be: ada 3, bob 1; "
        "`muster attachments dev` lists them"
    )
    assert refused.retry_after == 0
    error = refused.error()
    assert isinstance(error, ExhaustedError)
    assert not isinstance(error, TooFastError)
    assert str(error) == refused.sentence
    assert book.refusal_for(held("5", account="cy", rank=1), 0.0) is None
    book.end(report("1"), AT)
    assert book.refusal_for(held("5", account="cy"), 0.0) is None


def test_connections_have_room_beside_all_others() -> None:
    limits = AttachmentLimits(execution=1, execution_connections=2, opened=FAST)
    book = filled(limits, held("c1", JUPYTER), held("c2", JUPYTER), held("a1"))
    refused = book.refusal_for(held("c3", JUPYTER), 0.0)
    assert refused is not None
    assert refused.sentence.startswith("rank 0 of dev has 2 connections open, as many as there may be: ada 2;")
    refused = book.refusal_for(held("a2"), 0.0)
    assert refused is not None
    assert "has 1 attachment open," in refused.sentence


def test_an_account_that_is_full_is_told_its_jobs_of_the_same_project_alone() -> None:
    limits = AttachmentLimits(account=3, opened=FAST)
    other = elsewhere(held("3", job="secret"), "sound")
    book = filled(limits, held("1"), held("2", job="train"), other)
    refused = book.refusal_for(held("4", job="new"), 0.0)
    assert refused is not None
    assert refused.sentence == (
        "ada has 3 attachments open, as many as one account may have: dev 1, train 1, other projects 1; "
        "`muster attachments` lists them"
    )
    assert book.refusal_for(held("4", account="bob"), 0.0) is None
    assert book.refusal_for(held("c", JUPYTER), 0.0) is None


def test_of_connections_an_account_may_have_ten_times_as_many() -> None:
    limits = AttachmentLimits(account=1, execution_connections=100, opened=FAST)
    book = filled(limits, *(held(f"c{number}", JUPYTER) for number in range(10)))
    refused = book.refusal_for(held("c10", JUPYTER), 0.0)
    assert refused is not None
    assert refused.sentence.startswith("ada has 10 connections open, as many as one account may have: dev 10;")


def test_a_refusal_names_the_largest_holders_and_counts_the_others() -> None:
    names = [*"aaaabbbccd", *"efgh"]
    limits = AttachmentLimits(execution=len(names), opened=FAST)
    book = filled(limits, *(held(str(number), account=name) for number, name in enumerate(names)))
    refused = book.refusal_for(held("z"), 0.0)
    assert refused is not None
    assert ": a 4, b 3, c 2, d 1, e 1, others 3;" in refused.sentence


def test_who_opens_too_many_in_a_short_time_hears_when_to_try_again() -> None:
    limits = AttachmentLimits(opened=Rate(burst=2, per_second=0.5))
    book = filled(limits, held("1"), held("2"))
    refused = book.refusal_for(held("3"), 0.0)
    assert refused is not None
    assert (refused.sentence, refused.retry_after) == ("ada opens too many attachments", 2.0)
    error = refused.error()
    assert isinstance(error, TooFastError)
    assert (str(error), error.retry_after) == ("ada opens too many attachments; try again in 2 s", 2)
    assert book.refusal_for(held("3", account="bob"), 0.0) is None
    assert book.refusal_for(held("3"), 2.0) is None
    assert book.refusal_for(held("4"), 2.0) is not None


def test_a_refusal_for_want_of_room_does_not_count_as_an_opening() -> None:
    limits = AttachmentLimits(execution=1, opened=Rate(burst=2, per_second=0.001))
    book = filled(limits, held("1"))
    for _ in range(10):
        refused = book.refusal_for(held("2"), 0.0)
        assert refused is not None
        assert not refused.retry_after
    assert book.refusal_for(held("2", rank=1), 0.0) is None


def test_the_user_of_muster_up_is_never_too_fast() -> None:
    book = AttachmentBook(AttachmentLimits(opened=Rate(burst=1, per_second=0.001)))
    assert [book.refusal_for(held(str(number), account="local"), 0.0) for number in range(10)] == [None] * 10


# what is in it


def test_an_attachment_that_is_there_is_not_told_again_and_one_that_is_not_does_not_end() -> None:
    book = AttachmentBook()
    assert len(book.add(held("a1"))) == 1
    assert book.add(held("a1")) == ()
    assert len(book) == 1
    assert book.end(report("a2"), AT) == ()
    assert book.get("a1") == held("a1")
    assert len(book.end(report("a1"), AT)) == 1
    assert book.end(report("a1"), AT) == ()
    assert book.get("a1") is None


def test_what_a_new_stream_of_a_node_does_not_serve_has_ended_if_its_agent_had_heard_of_it() -> None:
    book = AttachmentBook()
    served, forgotten, just_opened = (held(name, LS) for name in ("a1", "a2", "a3"))
    for each in (served, forgotten, just_opened):
        book.add(each)
    book.told("a1")
    book.told("a2")
    assert book.unserved(served.opened.node, {"a1"}) == (forgotten,)


class Life(RuleBasedStateMachine):
    """Any attachments that are opened and end, against lists that are looked through."""

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.now = AT
        self.there: dict[str, HeldAttachment] = {}
        self.made = 0
        self.entries: list[AuditEntry] = []
        self.moved: Counter[bool] = Counter()
        """Bytes of connections, and of all others, that reports have told."""

    @initialize(limit=st.integers(1, 3))
    def begin(self, limit: int) -> None:
        self.limits = AttachmentLimits(account=limit, execution=2, execution_connections=5, opened=FAST)
        self.book = AttachmentBook(self.limits)

    @rule(
        target=names,
        request=st.sampled_from([LS, FilesRequest(), JUPYTER, ConnectionRequest(port=22)]),
        account=st.sampled_from(["ada", "bob"]),
        job=st.sampled_from(["dev", "train"]),
        rank=st.integers(0, 1),
    )
    def open(self, request: AttachmentRequest, account: str, job: str, rank: int) -> str:
        self.made += 1
        new = held(f"a{self.made}", request, account=account, job=job, rank=rank, since=self.now)
        alike = [each for each in self.there.values() if each.is_connection == new.is_connection]
        here = sum(each.execution == new.execution for each in alike)
        own = sum(each.opened.account == account for each in alike)
        full = here >= self.limits.of_execution(new) or own >= self.limits.of_account(new)
        refused = self.book.refusal_for(new, (self.now - AT).total_seconds())
        assert (refused is not None) == full
        if not full:
            self.there[new.attachment] = new
            self.entries += self.book.add(new)
        return new.attachment

    @rule(name=consumes(names), moved=st.integers(0, 9))
    def end(self, name: str, moved: int) -> None:
        gone = self.there.pop(name, None)
        self.entries += self.book.end(report(name, moved=(moved, moved)), self.now)
        if gone is not None:
            self.moved[gone.is_connection] += moved

    @rule(seconds=st.integers(1, 700))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self.entries += self.book.settle(self.now)

    @invariant()
    def all_are_found_under_everything_that_they_are_asked_for(self) -> None:
        there = list(self.there.values())
        assert list(self.book) == there
        assert len(self.book) == len(there)
        for job in ("dev", "train"):
            assert list(self.book.of_job(JobId(f"j-{job}"))) == [e for e in there if e.opened.job_name == job]
            for rank in (0, 1):
                execution = ExecutionId(f"j-{job}-1-{rank}")
                assert list(self.book.of_execution(execution)) == [e for e in there if e.execution == execution]
        for account in ("ada", "bob"):
            assert list(self.book.of_account(account)) == [e for e in there if e.opened.account == account]
        for rank in (0, 1):
            node = NodeId(f"gpu-{rank}")
            assert list(self.book.of_node(node)) == [e for e in there if e.opened.node == node]

    def teardown(self) -> None:
        for name in list(self.there):
            self.end(name, 1)
        self.entries += self.book.settle(self.now + FORWARD_REST)
        assert len(self.book) == 0
        assert self.book.close(self.now) == ()
        self._each_beginning_has_its_end()
        self._all_bytes_are_told()

    def _each_beginning_has_its_end(self) -> None:
        open_: Counter[tuple[str, str, str]] = Counter()
        for entry in self.entries:
            said = re.sub(r"(, \d+ connections?)?, \d+ s, .*", "", entry.result)
            open_[entry.who, entry.target, said] += 1 if entry.what == "attachments.open" else -1
            most = 1 if "forward" in said else self.limits.execution
            assert 0 <= open_[entry.who, entry.target, said] <= most
        assert not any(open_.values())

    def _all_bytes_are_told(self) -> None:
        told: Counter[bool] = Counter()
        for entry in self.entries:
            if found := re.search(r"(\d+) bytes? in, (\d+) bytes? out", entry.result):
                assert found[1] == found[2]
                told["forward" in entry.result] += int(found[1])
        assert told == self.moved


TestLife = Life.TestCase


def test_times_are_taken_from_whoever_asks() -> None:
    moment: datetime = later(-5)
    book = AttachmentBook()
    book.add(held("a1"))
    (ended,) = book.end(report("a1"), moment)
    assert " 0 s, " in ended.result
