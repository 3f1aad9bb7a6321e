"""What becomes of changes of trust that meet each other."""

import asyncio

from coordinator.trust.registry import Registry
from muster.domain.access import Account, AccountKind, AuditEntry, IssuedToken
from muster.domain.errors import UnknownNameError
from muster.trust.tokens import new_api_token
from tests.unit.coordinator.memory_trust import NOW, MemoryTrust

ENTRY = AuditEntry(at=NOW, who="admin", what="", target="", origin="", result="ok")


async def test_an_account_that_is_being_removed_gets_no_token_any_more() -> None:
    registry = Registry(MemoryTrust(), NOW)
    await registry.add_account(Account(name="ada", kind=AccountKind.USER, created_at=NOW, grants={}), ENTRY)
    secret = new_api_token()
    token = IssuedToken(id=secret.id, account="ada", note="", created_at=NOW)
    _, outcome = await asyncio.gather(
        registry.remove_account("ada", AccountKind.USER, ENTRY),
        registry.add_token(secret, token, ENTRY),
        return_exceptions=True,
    )
    assert isinstance(outcome, UnknownNameError)
    assert registry.tokens == {}
