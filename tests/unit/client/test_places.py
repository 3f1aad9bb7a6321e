"""Places of files as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.client.attachments.places import LocalPlace, Place, RemotePlace, execution_meant, name_at_target, place_of
from muster.domain.errors import InvalidJobError


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("data", LocalPlace(path="data")),
        ("./a:b", LocalPlace(path="./a:b")),
        ("/a:b", LocalPlace(path="/a:b")),
        ("dir/a:b", LocalPlace(path="dir/a:b")),
        ("dev:", RemotePlace(job="dev", path="")),
        ("dev:x", RemotePlace(job="dev", path="x")),
        ("dev:/a/b:c", RemotePlace(job="dev", path="/a/b:c")),
        ("dev:3:x", RemotePlace(job="dev", path="x", rank=3)),
        ("dev:3:", RemotePlace(job="dev", path="", rank=3)),
        ("dev:3", RemotePlace(job="dev", path="3")),
        ("dev:./3:x", RemotePlace(job="dev", path="./3:x")),
        ("dev:0:a\nb", RemotePlace(job="dev", path="a\nb", rank=0)),
    ],
)
def test_a_text_means_a_place(text: str, place: Place) -> None:
    assert place_of(text) == place


@pytest.mark.parametrize("text", ["", ":x", "dev:a\0b"])
def test_a_text_that_means_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidJobError):
        place_of(text)


@given(job=st.text("abc-", min_size=1), rank=st.integers(0, 10**9 - 1), path=st.text("a:/ 1"))
def test_a_remote_place_is_what_was_written(job: str, rank: int, path: str) -> None:
    place = RemotePlace(job=job, path=path, rank=rank)
    assert place_of(place.text) == place


@pytest.mark.parametrize(
    ("text", "name"),
    [("a/b", "b"), ("a/b/", "b"), (".", ""), ("a/..", ""), ("/", ""), ("dev:", ""), ("dev:x/", "x"), ("dev:.", "")],
)
def test_a_source_keeps_its_name_in_a_directory(text: str, name: str) -> None:
    assert name_at_target(place_of(text)) == name


@pytest.mark.parametrize(
    ("words", "job"), [(["a", "dev:b"], "dev"), (["dev:a", "dev:b", "c"], "dev"), (["dev:1:a", "c"], "dev")]
)
def test_the_job_of_a_copy_is_known(words: list[str], job: str) -> None:
    *sources, target = map(place_of, words)
    assert execution_meant(sources, target)[0] == job


@pytest.mark.parametrize(
    "words",
    ["a b", "dev:a dev:b", "a dev:b c", "dev:a other:b c", "dev:0:a dev:1:b c"],
)
def test_a_copy_between_other_places_is_refused(words: str) -> None:
    *sources, target = map(place_of, words.split())
    with pytest.raises(InvalidJobError):
        execution_meant(sources, target)
