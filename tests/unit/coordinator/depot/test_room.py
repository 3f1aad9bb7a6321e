from datetime import UTC, datetime, timedelta

import pytest

from coordinator.depot.room import ProjectRoom, TicketRoom, refuse_full
from coordinator.depot.sweeping import UNNAMED_KEPT, unnamed
from muster.domain.errors import ExhaustedError, PermissionDeniedError
from muster.trust.depot_ticket import DepotOperation, DepotTicket

NOW = datetime(2026, 11, 25, tzinfo=UTC)
TICKET = DepotTicket(
    operation=DepotOperation.PUT,
    ticket="t1",
    project="vision",
    account="anna",
    room=100,
    limit=100,
    not_after=NOW + timedelta(hours=24),
)


def test_a_ticket_has_room_for_so_many_bytes_in_all_its_calls() -> None:
    room = TicketRoom()
    room.take(TICKET, "a", 60)
    with pytest.raises(PermissionDeniedError, match="project vision has room for 100 B more in the depot"):
        room.take(TICKET, "b", 41)
    room.take(TICKET, "c", 40)


def test_an_object_that_comes_again_counts_once() -> None:
    room = TicketRoom()
    room.take(TICKET, "a", 100)
    room.take(TICKET, "a", 100)


def test_an_object_that_comes_again_with_another_size_counts_with_that() -> None:
    room = TicketRoom()
    room.take(TICKET, "a", 10)
    room.take(TICKET, "a", 60)
    room.take(TICKET, "b", 40)
    with pytest.raises(PermissionDeniedError, match="needs 101 B"):
        room.take(TICKET, "c", 1)


def test_what_was_taken_is_forgotten_with_its_ticket() -> None:
    room = TicketRoom()
    room.take(TICKET, "a", 100)
    room.forget(TICKET.not_after - timedelta(seconds=1))
    with pytest.raises(PermissionDeniedError):
        room.take(TICKET, "b", 1)
    room.forget(TICKET.not_after)
    room.take(TICKET, "b", 1)


def test_a_tenth_of_the_disk_stays_free() -> None:
    refuse_full(900, 1000, 1000)
    with pytest.raises(ExhaustedError, match="901 B more do not fit"):
        refuse_full(901, 1000, 1000)


def test_only_old_objects_that_no_record_names_go() -> None:
    there = [
        ("named", NOW - 2 * UNNAMED_KEPT),
        ("old", NOW - UNNAMED_KEPT),
        ("new", NOW - UNNAMED_KEPT + timedelta(seconds=1)),
    ]
    assert unnamed(there, {"named"}, NOW) == ("old",)


def test_a_project_keeps_what_its_jobs_name_and_what_it_has_sent_since() -> None:
    room = ProjectRoom()
    room.take(TICKET, "a", 40)
    room.take(TICKET, "a", 40)
    room.take(TICKET, "b", 10)
    room.looked({"vision": (60, {"a", "c"})}, lambda digest: digest == "b")
    assert room.used("vision") == 70
    room.take(TICKET, "d", 30)
    with pytest.raises(ExhaustedError, match="project vision keeps 100 B in the depot and may keep 100 B; 1 B more"):
        room.take(TICKET, "e", 1)


def test_jobs_that_were_deleted_and_objects_that_are_gone_count_no_more() -> None:
    room = ProjectRoom()
    room.take(TICKET, "a", 40)
    room.looked({"vision": (60, {"c"})}, lambda _: True)
    assert room.used("vision") == 100
    room.looked({}, lambda _: False)
    assert room.used("vision") == 0


def test_who_was_refused_has_the_depot_look_again_soon() -> None:
    looked: list[bool] = []
    room = ProjectRoom()
    room.on_refused = lambda: looked.append(True)
    with pytest.raises(ExhaustedError):
        room.refuse_over(TICKET, 101)
    assert looked == [True]


def test_a_project_that_is_over_its_limit_may_send_what_is_there_already() -> None:
    room = ProjectRoom()
    room.looked({"vision": (200, {"a"})}, lambda _: True)
    room.refuse_over(TICKET, 0)
    assert room.used("speech") == 0
