"""What Git LFS says: small files that stand for large ones, and answers of their servers; nothing is fetched here."""

import json

import pytest

from muster.domain.data.code import GitUrl
from muster.transfer.git import lfs
from muster.transfer.git.faults import GitAwayError, GitRefusedError

DIGEST = "ab" * 32
FILE = lfs.LargeFile(digest=DIGEST, size=7)
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{DIGEST}\nsize 7\n".encode()


def answer(**said: object) -> bytes:
    return json.dumps({"objects": [{"oid": DIGEST, "size": 7, **said}]}).encode()


def download(href: str, **headers: str) -> bytes:
    return answer(actions={"download": {"href": href, "header": headers}})


def test_a_small_file_stands_for_a_large_one_only_if_all_of_it_says_so() -> None:
    assert lfs.read_pointer(POINTER) == FILE
    assert lfs.read_pointer(POINTER.replace(b"\n", b"\r\n")) == FILE
    for other in (b"", b"x" + POINTER, POINTER + b"more", POINTER.replace(b"sha256", b"md5"), POINTER + b"\n" * 1024):
        assert lfs.read_pointer(other) is None


def test_the_server_of_the_repository_is_asked_where_the_files_are() -> None:
    for url in ("https://git.example.org/team/train.git", "https://git.example.org/team/train/"):
        assert lfs.batch_url(url) == "https://git.example.org/team/train.git/info/lfs/objects/batch"
    assert json.loads(lfs.batch_question([FILE]))["objects"] == [{"oid": DIGEST, "size": 7}]


def test_a_place_has_its_url_and_what_is_to_be_shown_there() -> None:
    place = lfs.batch_places(download("https://s.example.org/a?key=s3cret", Authorization="Bearer t", Host="h"), [FILE])
    assert place[DIGEST].headers == {"Authorization": "Bearer t"}
    assert place[DIGEST].brings_authorization
    assert "s3cret" not in repr(place)
    assert lfs.read_place("https://s.example.org:8443/a?b") == GitUrl(
        scheme="https", host="s.example.org", port=8443, path="/a"
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"<html>", "does not know Git LFS"),
        (b"[]", "does not know Git LFS"),
        (answer(actions={"download": {}}), "does not know Git LFS"),
        (answer(), "does not have the large file abababababab"),
        (b'{"objects": []}', "does not have the large file"),
        (answer(error={"code": 404, "message": "you said t0k3n"}), r"does not give the large file .* \(code 404\)"),
        (download("http://s.example.org/a"), "no address with https"),
        (download("file:///etc/passwd"), "no address with https"),
        (download("https://me:word@s.example.org/a"), "no address with https"),
        (download("https://s.example.org/a b"), "no address with https"),
        (download("https://s.example.org/", **{f"x-{number}": "" for number in range(21)}), "too much to be shown"),
    ],
)
def test_answers_that_give_no_file_are_refused(said: bytes, why: str) -> None:
    with pytest.raises(GitRefusedError, match=why) as refused:
        lfs.batch_places(said, [FILE])
    assert "t0k3n" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, type(None)), (301, GitRefusedError), (401, GitRefusedError), (404, GitRefusedError), (503, GitAwayError)],
)
def test_what_cannot_get_better_is_told_from_what_can(status: int, kind: type[object]) -> None:
    assert type(lfs.status_fault(status, is_shown=True)) is kind
