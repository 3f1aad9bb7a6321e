"""Sessions: read by the console that wrote them, until they have rested for too long."""

from pathlib import Path

import pytest

from console.api.sessions.session import KEY_FILE, LONGEST_REST, RENEWED_AFTER, Session, SessionSeal, session_key
from muster.domain.errors import MusterError, NotSignedInError
from muster.trust.sealing import new_sealing_key

NOW = 1_000_000.0
SESSION = Session(token="muster_secret", used_at=NOW)


def test_a_session_is_read_as_it_was_written_and_shows_nothing() -> None:
    seal = SessionSeal(new_sealing_key())
    written = seal.written(SESSION)
    assert seal.read(written, NOW + LONGEST_REST) == SESSION
    assert "secret" not in written + repr(SESSION)


def test_a_session_that_rests_for_too_long_has_ended() -> None:
    seal = SessionSeal(new_sealing_key())
    with pytest.raises(NotSignedInError, match="has rested for 12 hours; sign in again"):
        seal.read(seal.written(SESSION), NOW + LONGEST_REST + 1)


def test_a_session_that_is_used_is_written_anew_now_and_then() -> None:
    seal = SessionSeal(new_sealing_key())
    assert seal.renewed(SESSION, NOW + RENEWED_AFTER) is None
    later = NOW + RENEWED_AFTER + 1
    assert seal.renewed(SESSION, later) == Session(token=SESSION.token, used_at=later)


@pytest.mark.parametrize(
    "change", [lambda text: text[:-2], lambda _: "nonsense!", lambda _: "", lambda text: "A" + text]
)
def test_what_nobody_wrote_is_no_session(change: "object") -> None:
    seal = SessionSeal(new_sealing_key())
    assert callable(change)
    with pytest.raises(NotSignedInError, match="does not count"):
        seal.read(change(seal.written(SESSION)), NOW)


def test_another_console_cannot_read_it() -> None:
    with pytest.raises(NotSignedInError, match="does not count"):
        SessionSeal(new_sealing_key()).read(SessionSeal(new_sealing_key()).written(SESSION), NOW)


def test_the_key_is_kept_where_there_is_a_place_for_it(tmp_path: Path) -> None:
    state = tmp_path / "console"
    made = session_key(state)
    assert session_key(state) == made
    assert (state / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert session_key(None) != session_key(None)


def test_a_key_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_bytes(b"short")
    with pytest.raises(MusterError, match="is no key of sessions; remove it"):
        session_key(tmp_path)
