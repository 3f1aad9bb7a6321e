"""Tokens as texts, what is kept of them, and files for their owner only."""

import os
import stat
from pathlib import Path

import pytest

from muster.domain.errors import MusterError
from muster.trust.files import read_secret, write_private
from muster.trust.tokens import (
    TokenFormError,
    digest,
    is_secret_of,
    new_api_token,
    new_join_token,
    parse_api_token,
    parse_join_token,
)

AUTHORITY = "ab" * 32


def test_tokens_are_read_as_they_are_written() -> None:
    join, api = new_join_token(AUTHORITY), new_api_token()
    assert parse_join_token(f" {join}\n") == join
    assert parse_api_token(str(api)) == api


@pytest.mark.parametrize("text", ["", "muster-join", str(new_api_token()), str(new_join_token(AUTHORITY))[:-1]])
def test_what_is_no_token_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(TokenFormError, match="begins with muster-join-") as refused:
        parse_join_token(text)
    assert len(text) < 20 or text[-20:] not in str(refused.value)


def test_an_api_token_cut_short_is_refused() -> None:
    with pytest.raises(TokenFormError, match="begins with muster-token-"):
        parse_api_token(str(new_api_token())[:-1])


def test_only_the_digest_of_a_secret_is_needed_to_know_it_again() -> None:
    token = new_api_token()
    kept = digest(token.secret)
    assert token.secret not in kept
    assert is_secret_of(token.secret, kept)
    assert not is_secret_of(new_api_token().secret, kept)


def test_no_secret_shows_when_a_token_is_printed_as_a_value() -> None:
    join, api = new_join_token(AUTHORITY), new_api_token()
    assert join.secret not in repr(join)
    assert api.secret not in repr(api)


def test_a_private_file_is_its_owners_whatever_the_mask_says(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        write_private(path, b"secret\n")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_secret(path) == "secret"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(MusterError, match=f"cannot write {tmp_path}/no/key: No such file"):
        write_private(tmp_path / "no" / "key", b"")
    with pytest.raises(MusterError, match=f"cannot read the secret in {tmp_path}/key: No such file"):
        read_secret(tmp_path / "key")
