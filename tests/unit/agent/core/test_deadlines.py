"""What is noted for the killer comes back as it was, and it is told what is overdue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.deadlines import ExecutionDeadline, Notes, next_look, overdue, read, written

BOOT = "b"
EARLY = ExecutionDeadline(execution="j-1-0", dead_by=10.0, directory="/r/j-1-0")
LATE = ExecutionDeadline(execution="j-1-1", dead_by=20.0, directory="/r/j-1-1", container="muster-j-1-1", socket="/s")
NOTES = Notes(boot=BOOT, agent="a", deadlines=(EARLY, LATE))


@given(
    st.builds(
        Notes,
        boot=st.text(),
        agent=st.text(),
        deadlines=st.lists(
            st.builds(
                ExecutionDeadline, execution=st.text(), dead_by=st.floats(0, 1e9), directory=st.text(), socket=st.text()
            )
        ).map(tuple),
    )
)
def test_notes_are_read_as_they_were_written(notes: Notes) -> None:
    assert read(written(notes)) == notes


def test_what_is_left_of_longer_notes_behind_shorter_ones_is_not_read() -> None:
    """An agent leaves such notes that is killed between writing and cutting off."""
    shorter = Notes(boot=BOOT, agent="a")
    assert read(written(shorter) + written(NOTES)[len(written(shorter)) :]) == shorter


@pytest.mark.parametrize("length", range(0, len(written(NOTES)) - 1, 7))
def test_torn_notes_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read(written(NOTES)[:length])


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"boot": "b", "agent": "a", "deadlines": [{"execution": "x", "dead_by": "soon", "directory": "/r"}]}',
        b'{"boot": "b", "agent": "a", "deadlines": [{"execution": "x", "dead_by": NaN, "directory": "/r"}]}',
        b'{"boot": "b", "agent": "a", "deadlines": [{"execution": "x", "dead_by": 1.0, "directory": 7}]}',
        b'{"boot": "b", "agent": "a", "deadlines": [{"execution": "x", "dead_by": 1'
        + b"0" * 400
        + b', "directory": "/r"}]}',
        b"[" * 100_000,
    ],
)
def test_notes_that_could_not_be_used_are_refused(wrong: bytes) -> None:
    with pytest.raises(ValueError, match=r"these are no notes"):
        read(wrong)


def test_what_must_be_dead_is_overdue_from_its_deadline_on() -> None:
    assert overdue(NOTES, 9.999, BOOT) == ()
    assert overdue(NOTES, 10.0, BOOT) == (EARLY,)
    assert overdue(NOTES, 20.0, BOOT) == (EARLY, LATE)


def test_after_a_restart_of_the_machine_nothing_is_overdue() -> None:
    assert overdue(NOTES, 1000.0, "another") == ()
    assert next_look(NOTES, 1000.0, "another") is None


def test_the_next_look_is_at_the_next_deadline_or_after_a_second() -> None:
    assert next_look(NOTES, 9.5, BOOT) == 0.5
    assert next_look(NOTES, 1.0, BOOT) == 1.0
    assert next_look(NOTES, 30.0, BOOT) == 1.0
    assert next_look(Notes(boot=BOOT, agent="a"), 0.0, BOOT) is None
