"""The token of the first admin: it ends, and whoever has the coordinator's machine can have it made anew."""

from datetime import timedelta
from pathlib import Path

from coordinator.clock import wall_time
from coordinator.first_start import prepared
from coordinator.settings import parse
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.registry import ADMIN, Registry
from muster.domain.fleet.access import PERSON_TOKEN_LIFE, AuditEntry
from muster.trust.tokens import parse_api_token


async def test_init_makes_the_token_of_the_first_admin_anew_once_it_has_ended(tmp_path: Path) -> None:
    store, file = SqlTrust.open(tmp_path / "db"), tmp_path / "admin-token"
    registry = Registry(store, {})
    settings = parse(["--state", str(tmp_path), "--init"], {})
    await prepared(settings, registry)
    first = parse_api_token(file.read_text())
    kept = registry.tokens[first.id].token
    assert kept.expires_at == kept.created_at + PERSON_TOKEN_LIFE

    await prepared(settings, registry)
    assert parse_api_token(file.read_text()) == first

    ended = AuditEntry(at=wall_time(), who="", what="", target="", origin="", result="")
    await registry.prune_tokens([first.id], wall_time(), ended)
    await prepared(settings, registry)
    assert parse_api_token(file.read_text()) == first, "a token that was revoked must not come back by itself"

    await registry.prune_tokens([first.id], wall_time(), ended)
    await prepared(settings, registry)
    second = parse_api_token(file.read_text())
    assert second != first
    assert registry.caller_with(str(second), wall_time() + timedelta(days=1)).name == ADMIN
    store.close()
