"""Whether what lies in a state directory is one whole fleet."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.fleet.evidence import OLDER, Beginning, Evidence, FleetRecord, beginning
from coordinator.fleet.place import StatePlace, copied

WHOLE = Evidence(
    record=FleetRecord(id="f", made=True, key="k", authority=True),
    database="f",
    key="k",
    keys="f",
    certificate=True,
    private_key=True,
    other=("admin-token", "logs"),
)
BEFORE_FLEET_IDS = replace(WHOLE, record=None, database=OLDER, keys=None)
HERE = StatePlace(machine="m", path="/a", filesystem=1, inode=10)


def test_an_empty_directory_is_a_first_start() -> None:
    assert beginning(Evidence()) is Beginning.FIRST


def test_a_whole_fleet_goes_on() -> None:
    assert beginning(WHOLE) is Beginning.AGAIN


def test_a_fleet_of_one_user_has_no_authority_to_miss() -> None:
    local = replace(WHOLE, record=FleetRecord(id="f", made=True, key="k"), keys=None)
    assert beginning(replace(local, certificate=False, private_key=False)) is Beginning.AGAIN


def test_a_fleet_from_before_fleet_ids_gets_one() -> None:
    assert beginning(BEFORE_FLEET_IDS) is Beginning.UPGRADE


def test_a_database_from_before_an_upgrade_may_be_put_back() -> None:
    assert beginning(replace(WHOLE, database=OLDER)) is Beginning.AGAIN


def test_a_first_start_that_was_interrupted_goes_on() -> None:
    begun = FleetRecord(id="f")
    assert beginning(Evidence(record=begun)) is Beginning.FIRST
    assert beginning(Evidence(record=begun, database="f", key="k", private_key=True)) is Beginning.FIRST


@pytest.mark.parametrize(
    ("lost", "problem"),
    [
        ({"database": None}, "coordinator.db is missing or empty"),
        ({"database": "g"}, "coordinator.db is of another fleet (g)"),
        ({"key": None}, "fleet.key is missing"),
        ({"key": "other"}, "fleet.key is another one"),
        ({"certificate": False}, "trust/authority.pem is missing"),
        ({"private_key": False}, "trust/authority.key is missing"),
        ({"keys": None}, "trust/fleet-id is missing"),
        ({"keys": "g"}, "the keys in trust are of another fleet (g)"),
        ({"record": None}, "fleet.json is missing, but coordinator.db of the fleet f is here"),
    ],
)
def test_what_is_missing_or_of_another_fleet_is_named(lost: dict[str, Any], problem: str) -> None:
    assert beginning(replace(WHOLE, **lost)) == (problem,)


def test_all_that_is_missing_is_named_at_once() -> None:
    gone = replace(WHOLE, database=None, key=None, certificate=False, private_key=False, keys=None)
    assert beginning(gone) == (
        "coordinator.db is missing or empty",
        "fleet.key is missing",
        "trust/authority.pem and trust/authority.key are missing",
        "trust/fleet-id is missing",
    )


def test_what_a_fleet_left_is_no_first_start() -> None:
    left = "fleet.key, trust/authority.pem, trust/authority.key, admin-token, logs"
    problem = f"coordinator.db is missing or empty, but {left} of a fleet are here"
    assert beginning(replace(BEFORE_FLEET_IDS, database=None)) == (problem,)
    assert beginning(replace(BEFORE_FLEET_IDS, key=None)) == ("fleet.key is missing",)
    assert beginning(replace(BEFORE_FLEET_IDS, certificate=False)) == ("trust/authority.pem is missing",)


def test_a_lost_write_ahead_log_outweighs_everything_else() -> None:
    problems = beginning(replace(WHOLE, log_lost=True))
    assert isinstance(problems, tuple)
    assert problems[0].startswith("coordinator.db-wal is gone")


def test_a_restore_that_did_not_end_is_named() -> None:
    assert beginning(Evidence(half_restored=True)) == ("a restore began here and did not end: run it again",)


@pytest.mark.parametrize(
    ("now", "original_there"),
    [
        (HERE, True),
        (replace(HERE, path="/b"), False),  # renamed
        (replace(HERE, machine="n"), False),  # its disk is in another computer, or its container is another one
        (replace(HERE, filesystem=2), True),  # the kernel counts disks anew
        (replace(HERE, inode=11, filesystem=2, path="/b"), False),  # moved to another file system
        (replace(HERE, inode=11), True),  # put back in the same place from an archive
        (StatePlace(machine="", path="/a", filesystem=2, inode=11), True),  # a container without a name of its own
    ],
)
def test_a_directory_that_was_moved_starts(now: StatePlace, original_there: bool) -> None:
    assert copied(HERE, now, original_there=original_there) == ""


def test_a_copy_beside_its_original_does_not_start() -> None:
    copy = replace(HERE, inode=11, path="/b")
    assert copied(HERE, copy, original_there=True) == "it is a copy of /a, which is still there"


def test_a_copy_on_another_computer_asks_first() -> None:
    copy = StatePlace(machine="n", path="/a", filesystem=3, inode=12)
    assert copied(HERE, copy, original_there=True) == "it was last used on another computer, as /a"
