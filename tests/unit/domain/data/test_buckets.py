"""URLs of objects, and the lists that nodes hand on of them."""

from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from zlib import compress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.data.buckets.bucket_url import BucketUrl, read_bucket_url
from muster.domain.data.buckets.listing import (
    MOST_OBJECTS,
    BucketListing,
    ListingError,
    StoredObject,
    chosen,
    places,
    read_listing,
)
from muster.domain.data.job_input import JobInput, without_query
from muster.domain.data.pattern import InputLayout, name_pattern

objects = st.builds(
    StoredObject, key=st.text(min_size=1, max_size=20), size=st.integers(0, 2**40), version=st.text(max_size=20)
)


def stored(*keys: str, size: int = 1) -> list[StoredObject]:
    return [StoredObject(key=key, size=size, version='"1"') for key in keys]


def test_a_url_names_a_bucket_and_a_key_that_is_taken_as_it_stands() -> None:
    assert read_bucket_url("s3://acme/data/a%20b c-*.tar") == BucketUrl(bucket="acme", key="data/a%20b c-*.tar")
    assert read_bucket_url("s3://acme/") is None
    assert read_bucket_url("https://acme/data") is None
    assert read_bucket_url("az://acme/a") == BucketUrl(scheme="az://", bucket="acme", key="a")
    assert BucketUrl(bucket="acme", key="data/*").of("data/a") == "s3://acme/data/a"


def test_a_question_mark_in_a_name_of_objects_is_no_query() -> None:
    assert without_query("s3://acme/train-?.tar") == "s3://acme/train-?.tar"
    assert without_query("https://example.org/a?key=x") == "https://example.org/a"


def test_with_another_secret_it_may_be_another_object() -> None:
    assert JobInput(name="a", url="s3://acme/a").origin == "s3://acme/a"
    assert JobInput(name="a", url="s3://acme/a", secret="store").origin == "store@s3://acme/a"


@given(st.lists(objects, max_size=5).map(lambda found: BucketListing(tuple(found))))
def test_a_list_that_was_told_is_read_as_it_was(listing: BucketListing) -> None:
    found = listing.found("s3://acme/*")
    assert read_listing(found) == listing
    assert found.size == listing.size


def test_a_list_of_too_many_objects_is_not_told() -> None:
    listing = BucketListing(tuple(stored(*map(str, range(MOST_OBJECTS + 1)))))
    with pytest.raises(ListingError, match="there are 10001 objects of that name"):
        listing.found("s3://acme/*")


@pytest.mark.parametrize(
    "form", [b"[1,2]\n", b'["a",-1,"1"]\n', b'["a",true,"1"]\n', b'"a"\n', b"[" * 100_000, b"\xff\n", b'{"a":1}\n']
)
def test_a_text_that_is_no_list_is_refused(form: bytes) -> None:
    found = BucketListing(()).found("s3://acme/*")
    text = b64encode(compress(form)).decode()
    with pytest.raises(ListingError):
        read_listing(replace(found, sha256=sha256(form).hexdigest(), listing=text))


def test_a_list_that_is_damaged_or_far_too_long_is_refused() -> None:
    found = BucketListing(tuple(stored("a"))).found("s3://acme/*")
    with pytest.raises(ListingError, match="damaged"):
        read_listing(replace(found, sha256="0" * 64))
    with pytest.raises(ListingError, match="cannot be read"):
        read_listing(replace(found, listing="AAAA"))
    bomb = b64encode(compress(b"\n" * (40 << 20))).decode()
    with pytest.raises(ListingError, match="damaged"):
        read_listing(replace(found, listing=bomb))


def test_objects_lie_below_the_part_of_the_name_that_has_no_wildcard() -> None:
    pattern = name_pattern("data/**/*.tar")
    listing = chosen(pattern, stored("data/b/2.tar", "data/a/1.tar"))
    assert [each.key for each in listing.objects] == ["data/a/1.tar", "data/b/2.tar"]
    assert {path: each.key for path, each in places(pattern, listing.objects).items()} == {
        "a/1.tar": "data/a/1.tar",
        "b/2.tar": "data/b/2.tar",
    }


def test_what_stands_for_a_directory_is_left_out() -> None:
    found = [*stored("data/a/1"), *stored("data/a", "data/empty", size=0)]
    assert [each.key for each in chosen(name_pattern("data/"), found).objects] == ["data/a/1", "data/empty"]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (("data/a/../b",), "can be no file"),
        (("data/a\x07",), "can be no file"),
        ((f"data/{'a' * 300}",), "can be no file"),
    ],
)
def test_objects_that_can_be_no_files_are_refused(keys: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ListingError, match=sentence):
        chosen(name_pattern("data/"), stored(*keys))


@pytest.mark.parametrize(
    ("layout", "paths"),
    [
        (InputLayout.TAIL, ["a/1", "b/2"]),
        (InputLayout.FULL, ["data/a/1", "data/b/2"]),
        (InputLayout.FLAT, ["1", "2"]),
    ],
)
def test_a_job_says_where_objects_lie(layout: InputLayout, paths: list[str]) -> None:
    assert list(places(name_pattern("data/"), stored("data/b/2", "data/a/1"), layout)) == paths


@pytest.mark.parametrize(
    ("layout", "keys", "sentence"),
    [
        (InputLayout.TAIL, ("data/a/1", "data/a"), "'data/a' and 'data/a/1' would both lie at 'a'; take two inputs"),
        (
            InputLayout.FLAT,
            ("data/a/1", "data/b/1"),
            "'data/a/1' and 'data/b/1' would both lie at '1'; use `layout: full`",
        ),
    ],
)
def test_two_objects_in_one_place_are_an_error_that_names_both(
    layout: InputLayout, keys: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ListingError, match=sentence):
        places(name_pattern("data/"), stored(*keys), layout)
