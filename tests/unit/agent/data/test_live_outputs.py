"""Outputs that are stored while user code runs: what counts as whole, what is read again, and what stays stored."""

from pathlib import Path

from agent.data.left_files import ReadFiles, read_left_files
from agent.data.live.note import NOTHING_STORED, LiveNote, read_live_note, write_live_note
from agent.data.live.place import OutputsPlace
from agent.data.storing import WRITABLE

MUCH = 1 << 30


def whole(path: Path, text: str) -> None:
    """A file that nobody may write to any more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o444)


def look(directory: Path, note: LiveNote = NOTHING_STORED, without: int = WRITABLE) -> LiveNote:
    which = ReadFiles(without=without, known=note.known)
    return note.with_found(read_left_files(directory, None, MUCH, which=which))


def test_a_file_counts_once_nobody_may_write_to_it(tmp_path: Path) -> None:
    whole(tmp_path / "sub" / "model.pt", "weights")
    (tmp_path / "log.txt").write_text("goes on")
    (tmp_path / "shared").write_text("x")
    (tmp_path / "shared").chmod(0o464)
    note = look(tmp_path)
    assert list(note.entries) == ["sub/model.pt"]
    outputs = note.outputs
    assert outputs is not None
    assert (outputs.files, outputs.bytes, outputs.tree) == (1, 7, note.tree.digest)


def test_what_is_as_it_was_is_known_and_not_read_again(tmp_path: Path) -> None:
    whole(tmp_path / "model.pt", "weights")
    first = look(tmp_path)
    damaged = LiveNote(entries={"model.pt": first.entries["model.pt"]}, states=first.states)
    assert look(tmp_path, damaged) == first
    whole(tmp_path / "model.pt", "other weights")
    changed = look(tmp_path, first)
    assert changed.entries["model.pt"] != first.entries["model.pt"]
    assert list(changed.entries) == ["model.pt"]


def test_what_is_stored_stays_so_when_it_goes_and_the_end_adds_the_rest(tmp_path: Path) -> None:
    whole(tmp_path / "epoch-1.pt", "1")
    first = look(tmp_path)
    (tmp_path / "epoch-1.pt").unlink()
    (tmp_path / "log.txt").write_text("all")
    assert sorted(look(tmp_path, first, without=0).entries) == ["epoch-1.pt", "log.txt"]


def test_what_lies_at_a_place_now_counts_and_not_what_lay_there(tmp_path: Path) -> None:
    whole(tmp_path / "a", "file")
    whole(tmp_path / "b" / "c", "in a directory")
    first = look(tmp_path)
    (tmp_path / "a").unlink()
    (tmp_path / "b" / "c").unlink()
    (tmp_path / "b").rmdir()
    whole(tmp_path / "a" / "x", "in a directory now")
    whole(tmp_path / "b", "a file now")
    second = look(tmp_path, first)
    assert [each.path for each in second.tree.entries] == ["a/x", "b"]


def test_a_note_is_found_by_the_next_agent_and_one_that_is_torn_counts_for_nothing(tmp_path: Path) -> None:
    outputs, own = tmp_path / "outputs", tmp_path / "own"
    own.mkdir()
    whole(outputs / "model.pt", "weights")
    note = look(outputs)
    place = OutputsPlace(directory=outputs, owner=None, note=own)
    assert not place.has_note
    write_live_note(own, note)
    assert place.has_note
    assert read_live_note(own) == note
    assert look(outputs, read_live_note(own)) == note
    for torn in (b"", b"{}", b'{"form": "x\\n", "states": {}}'):
        (own / "live-files.json").write_bytes(torn)
        assert read_live_note(own) == NOTHING_STORED
