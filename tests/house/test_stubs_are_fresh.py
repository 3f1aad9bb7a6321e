"""The committed stubs are the ones that the proto files give."""

from pathlib import Path

from tests.house.generate_stubs import PROTOS, ROOT, generate


def test_stubs_are_what_the_protos_give(tmp_path: Path) -> None:
    generate(tmp_path)
    fresh = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*_pb2*")}
    committed = {
        path.relative_to(ROOT): path.read_text() for path in (ROOT / "muster").rglob("*_pb2*") if path.suffix != ".pyc"
    }
    stale = sorted(str(path) for path in fresh.keys() | committed.keys() if fresh.get(path) != committed.get(path))
    assert not stale, "run `make protos`"
    assert len(fresh) == 4 * len(list(PROTOS.rglob("*.proto")))
