"""The mirror is what the feed has told, wherever it began to listen; viewers are told what they may see of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.mirror.mirror import Mirror
from console.mirror.viewing import LIVE_ROWS, LiveView, ViewerRights
from muster.domain.feed import FeedBatch, FeedPart, FeedPlace
from muster.domain.fleet.access import EVERYWHERE, Access, Myself
from muster.domain.jobs.lifecycle import JobPhase
from tests.unit.console.mirrored import ToldFeed, a_job, a_line, a_node, a_project, job_key

ALL = frozenset(FeedPart)
ROOT, RED = ViewerRights("root", None), ViewerRights("ada", frozenset({"red"}))
PROJECT_OF = {"a": "red", "b": "red", "c": "blue", "d": "blue"}

_phases = st.sampled_from([JobPhase.QUEUED, JobPhase.RUNNING, JobPhase.SUCCEEDED])
_changes = st.lists(st.tuples(st.sampled_from("abcd"), _phases | st.none()), max_size=25)
"""Jobs that are in a phase, or gone."""


def told_of(changes: list[tuple[str, JobPhase | None]]) -> list[FeedBatch]:
    """A feed, a batch for each change; the first begins anew."""
    feed, there = ToldFeed(), set[str]()
    feed.tell(anew=True)
    for id_, phase in changes:
        if phase is not None:
            feed.tell(a_job(id_, ord(id_), PROJECT_OF[id_], phase=phase))
            there.add(id_)
        elif id_ in there:
            feed.tell(gone=[job_key(id_)])
            there.discard(id_)
    return feed.told


def mirror_of(batches: list[FeedBatch]) -> Mirror:
    mirror = Mirror()
    for batch in batches:
        mirror.apply(batch)
    return mirror


def phases_in(mirror: Mirror) -> dict[str, Any]:
    return {row.key.name: row.fields["phase"] for row in mirror.of(FeedPart.JOBS)}


def read(view: LiveView, mirror: Mirror) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in view.news(mirror)]


class Page:
    """What a page shows that hears live events, and comes back with the last id."""

    def __init__(self, rights: ViewerRights) -> None:
        self.rights, self.jobs, self.place = rights, dict[str, str](), ""

    def look(self, mirror: Mirror, view: LiveView | None = None) -> None:
        for event in (view or LiveView(self.rights, ALL, self.place)).news(mirror):
            data = json.loads(event.data)
            if data.get("anew"):
                self.jobs = {}
            self.jobs |= {job["id"]: job["phase"] for job in data.get("jobs", ())}
            for gone in data.get("jobs_gone", ()):
                self.jobs.pop(gone, None)
            self.place = event.place or self.place


@given(_changes)
def test_the_mirror_has_what_was_told_last_of_each_thing(changes: list[tuple[str, JobPhase | None]]) -> None:
    there = dict[str, str]()
    for id_, phase in changes:
        if phase is None:
            there.pop(id_, None)
        else:
            there[id_] = str(phase)
    assert phases_in(mirror_of(told_of(changes))) == there


@given(_changes, st.sets(st.integers(0, 25)), st.sampled_from([ROOT, RED]))
def test_a_page_that_looks_now_and_then_shows_what_it_may_see(
    changes: list[tuple[str, JobPhase | None]], looks: set[int], rights: ViewerRights
) -> None:
    mirror, page = Mirror(), Page(rights)
    for number, batch in enumerate(told_of(changes)):
        mirror.apply(batch)
        if number in looks:
            page.look(mirror)
    page.look(mirror)
    assert page.jobs == {id_: phase for id_, phase in phases_in(mirror).items() if rights.sees(PROJECT_OF[id_])}


@given(_changes, st.integers(0, 25))
def test_a_console_that_is_killed_comes_back_to_the_same_mirror_and_pages_go_on(
    changes: list[tuple[str, JobPhase | None]], looked: int
) -> None:
    batches, page = told_of(changes), Page(ROOT)
    page.look(mirror_of(batches[: looked + 1]))
    before = mirror_of(batches)
    newest = {row.key.name: row for row in before.of(FeedPart.JOBS)}
    feed = ToldFeed(revision=batches[-1].place.revision - 1, complete_from=0)
    there = [
        a_job(id_, ord(id_), PROJECT_OF[id_], phase=JobPhase(str(row.fields["phase"]))) for id_, row in newest.items()
    ]
    again = Mirror()
    again.apply(feed.tell(*there, anew=True))
    assert dict(again.rows) == dict(before.rows)
    feed.complete_from = feed.revision
    again.apply(feed.tell())
    page.look(again)
    assert page.jobs == phases_in(before)


def test_a_coordinator_that_was_started_anew_is_believed_alone() -> None:
    mirror, page = Mirror(), Page(ROOT)
    mirror.apply(ToldFeed().tell(a_job("a"), anew=True))
    page.look(mirror)
    mirror.apply(ToldFeed("another-life").tell(a_job("b"), anew=True))
    page.look(mirror)
    assert page.jobs == phases_in(mirror) == {"b": "queued"}


def test_whoever_sees_one_project_is_told_of_it_of_all_nodes_and_of_the_queue_without_others_names() -> None:
    mirror = mirror_of(
        [
            ToldFeed().tell(
                a_job("a"),
                a_job("c", 2, "blue"),
                a_node("n"),
                a_project("red"),
                a_project("blue"),
                queue=[a_line("a"), a_line("c", "blue", 2)],
                anew=True,
            )
        ]
    )
    [told] = read(LiveView(RED, ALL), mirror)
    assert [job["id"] for job in told["jobs"]] == ["a"]
    assert [project["name"] for project in told["projects"]] == ["red"]
    assert [node["name"] for node in told["nodes"]] == ["n"]
    assert [(line["job"], line["name"], line["owner"], line["priority"]) for line in told["queue"]] == [
        ("a", "name-a", "ada", 7),
        ("", "", "", 0),
    ]


def test_what_goes_that_one_may_not_see_is_told_to_nobody() -> None:
    feed, view = ToldFeed(), LiveView(RED, ALL)
    mirror = mirror_of([feed.tell(a_job("a"), a_job("c", 2, "blue"), anew=True)])
    read(view, mirror)
    mirror.apply(feed.tell(gone=[job_key("c")]))
    assert read(view, mirror) == []
    mirror.apply(feed.tell(gone=[job_key("a")]))
    assert read(view, mirror) == [{"jobs_gone": ["a"]}]


def test_who_may_look_at_nothing_is_told_nothing_not_even_of_nodes() -> None:
    mirror = mirror_of([ToldFeed().tell(a_job("a"), a_node("n"), queue=[a_line("a")], anew=True)])
    assert read(LiveView(ViewerRights("nobody", frozenset()), ALL), mirror) == [{"anew": True}]


def test_a_viewer_of_one_part_hears_of_no_other() -> None:
    feed, view = ToldFeed(), LiveView(ROOT, {FeedPart.NODES})
    mirror = mirror_of([feed.tell(a_job("a"), a_node("n"), anew=True)])
    assert [sorted(told) for told in read(view, mirror)] == [["anew", "nodes"]]
    mirror.apply(feed.tell(a_job("b")))
    assert read(view, mirror) == []


def test_lists_of_jobs_are_told_briefly_also_beside_whole_jobs() -> None:
    feed, view = ToldFeed(), LiveView(RED, (), brief_jobs=True)
    mirror = mirror_of([feed.tell(a_job("a", 3), a_job("c", 2, "blue"), a_node("n"), anew=True)])
    [told] = read(view, mirror)
    [row] = told["job_rows"]
    assert (sorted(told), row["id"], row["sequence"], row["project"], row["phase"]) == (
        ["anew", "job_rows"],
        "a",
        3,
        "red",
        "queued",
    )
    assert {"running", "executions", "gpus", "labels", "submitted_at", "summary"} < row.keys()
    [both] = read(LiveView(RED, {FeedPart.JOBS}, brief_jobs=True), mirror)
    assert (both["job_rows"], [job["id"] for job in both["jobs"]]) == ([row], ["a"])
    mirror.apply(feed.tell(gone=[job_key("a")]))
    assert read(view, mirror) == [{"job_rows_gone": ["a"]}]


def test_a_place_of_other_rights_or_of_what_is_forgotten_means_nothing() -> None:
    feed = ToldFeed()
    mirror = mirror_of([feed.tell(a_job("a"), anew=True)])
    [event] = LiveView(RED, ALL).news(mirror)
    assert LiveView(RED, ALL, event.place).news(mirror) == ()
    assert read(LiveView(ROOT, ALL, event.place), mirror)[0]["anew"]
    feed.complete_from = feed.revision + 1
    mirror.apply(feed.tell())
    assert read(LiveView(RED, ALL, event.place), mirror)[0]["anew"]


@pytest.mark.parametrize("place", ["", "x", "..", "a.b.c", "a.b.9999999999999999999999", "life-rights.x.1"])
def test_whatever_a_viewer_shows_is_a_place_or_none(place: str) -> None:
    mirror = mirror_of([ToldFeed().tell(a_job("a"), anew=True)])
    assert read(LiveView(ROOT, ALL, place), mirror)[0]["anew"]


def test_many_rows_come_in_pieces_and_only_the_last_one_is_a_place() -> None:
    mirror = mirror_of([ToldFeed().tell(*(a_job(f"j{number}") for number in range(LIVE_ROWS + 1)), anew=True)])
    events = LiveView(ROOT, ALL).news(mirror)
    assert [len(json.loads(event.data)["jobs"]) for event in events] == [LIVE_ROWS, 1]
    assert [bool(event.place) for event in events] == [False, True]
    assert [json.loads(event.data).get("anew", False) for event in events] == [True, False]


@pytest.mark.parametrize(
    ("grants", "projects", "nothing"),
    [
        ({}, frozenset(), True),
        ({"red": Access.VIEWER}, frozenset({"red"}), False),
        ({"red": Access.ADMIN, "blue": Access.MEMBER}, frozenset({"red", "blue"}), False),
        ({EVERYWHERE: Access.VIEWER}, None, False),
    ],
)
def test_rights_are_those_that_the_coordinator_tells(
    grants: dict[str, Access], projects: frozenset[str] | None, nothing: bool
) -> None:
    rights = ViewerRights.of(Myself(name="ada", kind="user", grants=grants))
    assert (rights.projects, rights.nothing) == (projects, nothing)


def test_a_mirror_that_has_not_caught_up_says_so() -> None:
    feed, mirror = ToldFeed(), Mirror()
    mirror.apply(feed.tell(a_job("a"), anew=True, caught_up=False))
    assert not mirror.caught_up
    mirror.apply(feed.tell())
    assert mirror.caught_up
    assert mirror.place == FeedPlace(instance="life-rights", revision=2)
