"""What reaches the audit log when somebody knocks again and again."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from coordinator.trust.audit import REFUSALS, TEXT, WINDOW, AuditLog
from coordinator.trust.registry import Registry
from muster.domain.access import AuditEntry
from tests.unit.coordinator.memory_trust import NOW, MemoryTrust


def refusal(seconds: float, port: int = 1, what: str = "JoinService.Join", target: str = "") -> AuditEntry:
    at = NOW + timedelta(seconds=seconds)
    return AuditEntry(at=at, who="", what=what, target=target, origin=f"ipv4:10.0.0.1:{port}", result="wrong token")


def written(*refusals: AuditEntry) -> list[AuditEntry]:
    store = MemoryTrust()
    log = AuditLog(Registry(store, NOW))
    for each in refusals:
        log.note_refusal(each)
    asyncio.run(log.flush())
    return store.entries


def test_a_peer_that_is_refused_all_the_time_does_not_fill_the_disk() -> None:
    knocks = [refusal(number / 1000, port=number) for number in range(1000)]
    assert len(written(*knocks)) == REFUSALS


def test_whoever_has_a_network_to_choose_addresses_from_is_one_peer() -> None:
    knocks = [
        replace(refusal(number / 1000), origin=f"ipv6:%5B2001:db8::{number:x}%5D:{number}") for number in range(1000)
    ]
    assert len(written(*knocks)) == REFUSALS


def test_how_many_were_not_listed_is_said_with_the_next_one() -> None:
    knocks = [refusal(number / 1000) for number in range(REFUSALS + 5)]
    assert written(*knocks, refusal(WINDOW + 1))[-1].result == "wrong token (5 more like it were not listed)"


def test_another_call_and_another_peer_are_counted_on_their_own() -> None:
    knocks = [refusal(0)] * REFUSALS
    other = refusal(0, what="JobService.Get")
    assert written(*knocks, other)[-1] == other


def test_what_a_stranger_sends_is_kept_short() -> None:
    assert len(written(refusal(0, target="x" * 10_000))[0].target) == TEXT
