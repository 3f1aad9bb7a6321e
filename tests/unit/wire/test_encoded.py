"""Bytes that are made once."""

import pytest

from muster.wire.checks import WireError
from muster.wire.gangs.encoded import EncodedOnce


class Writer:
    """Writes texts and counts how often."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def __call__(self, text: str) -> bytes:
        self.written.append(text)
        if not text:
            raise WireError("Text", "is empty")
        return text.encode()


def test_the_same_value_is_written_once() -> None:
    writer, text = Writer(), "abc"
    encoded = EncodedOnce(writer)

    assert encoded.of(text) is encoded.of(text)
    assert writer.written == ["abc"]


def test_a_value_that_must_not_travel_is_tried_once() -> None:
    writer = Writer()
    encoded = EncodedOnce(writer)

    for _ in range(2):
        with pytest.raises(WireError, match="Text is empty"):
            encoded.of("")
    assert writer.written == [""]


def test_only_so_many_bytes_are_kept_and_those_asked_for_last() -> None:
    writer = Writer()
    encoded = EncodedOnce(writer, kept=6)

    for text in ("abc", "def", "abc", "ghi", "abc", "def"):
        encoded.of(text)
    assert writer.written == ["abc", "def", "ghi", "def"]


def test_one_that_is_larger_than_all_that_is_kept_is_made_all_the_same() -> None:
    assert EncodedOnce(Writer(), kept=1).of("abc") == b"abc"
