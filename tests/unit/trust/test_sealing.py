"""What is sealed is opened with its key and in its place, and nowhere else."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.trust.sealing import KEY_BYTES, SealError, SealingKey, key_name, new_sealing_key, seal, unseal

KEY, OTHER = SealingKey(bytes(KEY_BYTES)), SealingKey(b"o" * KEY_BYTES)
PLACE = b"project/name/kind"
CONTENT = b"swordfish-7f3a"


@given(content=st.binary(max_size=200), place=st.binary(max_size=20))
def test_what_is_sealed_is_opened_again(content: bytes, place: bytes) -> None:
    assert unseal([OTHER, KEY], seal(KEY, content, place), place) == content


def test_the_same_content_never_looks_the_same_and_never_shows() -> None:
    sealed = {seal(KEY, CONTENT, PLACE) for _ in range(100)}
    assert len(sealed) == 100
    assert not any(CONTENT in each or KEY.secret in each for each in sealed)


@given(place=st.integers(0, 200), change=st.integers(1, 255))
def test_a_changed_byte_is_noticed(place: int, change: int) -> None:
    sealed = bytearray(seal(KEY, CONTENT, PLACE))
    sealed[place % len(sealed)] ^= change
    with pytest.raises(SealError) as refused:
        unseal([KEY], bytes(sealed), PLACE)
    assert "swordfish" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda sealed: sealed[:-1], "it was changed"),
        (lambda sealed: sealed[:12], "it is not what this version seals"),
        (lambda _: b"", "it is not what this version seals"),
    ],
)
def test_what_was_cut_is_noticed(change: Callable[[bytes], bytes], words: str) -> None:
    with pytest.raises(SealError, match=words):
        unseal([KEY], change(seal(KEY, CONTENT, PLACE)), PLACE)


def test_it_is_opened_in_its_own_place_only() -> None:
    with pytest.raises(SealError, match="it was changed, or belongs somewhere else"):
        unseal([KEY], seal(KEY, CONTENT, PLACE), b"project/other/kind")


def test_another_key_is_told_by_its_name() -> None:
    sealed = seal(KEY, CONTENT, PLACE)
    assert key_name(sealed) == KEY.name
    with pytest.raises(SealError, match=f"sealed with the key {KEY.name}, which is not here"):
        unseal([OTHER], sealed, PLACE)


def test_keys_differ_and_do_not_show_when_printed() -> None:
    one, two = new_sealing_key(), new_sealing_key()
    assert one.secret != two.secret
    assert one.name != two.name
    assert len(one.secret) == KEY_BYTES
    assert repr(one) == "SealingKey()"
