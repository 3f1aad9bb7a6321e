"""What reaches the audit log when somebody knocks again and again."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.trust.audit.log import LOST, MOST_UNWRITTEN, REFUSALS, REFUSALS_WINDOW, TEXT, AuditLog
from coordinator.trust.registry import Registry
from muster.domain.errors import ExhaustedError
from muster.domain.fleet.access import AuditEntry
from tests.unit.coordinator.trust.memory_trust import NOW, PROJECTS, MemoryTrust


def refusal(seconds: float, port: int = 1, what: str = "nodes.join", target: str = "") -> AuditEntry:
    at = NOW + timedelta(seconds=seconds)
    return AuditEntry(at=at, who="", what=what, target=target, origin=f"ipv4:10.0.0.1:{port}", result="wrong token")


def written(*refusals: AuditEntry) -> list[AuditEntry]:
    store = MemoryTrust()
    log = AuditLog(Registry(store, PROJECTS))
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
    assert written(*knocks, refusal(REFUSALS_WINDOW + 1))[-1].result == "wrong token (5 more like it were not listed)"


def test_another_call_and_another_peer_are_counted_on_their_own() -> None:
    knocks = [refusal(0)] * REFUSALS
    other = refusal(0, what="jobs.get")
    assert written(*knocks, other)[-1] == other


def test_what_a_stranger_sends_is_kept_short() -> None:
    assert len(written(refusal(0, target="x" * 10_000))[0].target) == TEXT


def order(number: int) -> AuditEntry:
    at = NOW + timedelta(seconds=number)
    return AuditEntry(at=at, who="ada", what="jobs.stop", target=f"j{number}", origin="ipv4:10.0.0.1:1", result="ok")


async def test_an_order_is_on_the_disk_when_it_is_confirmed_and_many_share_one_transaction() -> None:
    store = MemoryTrust()
    log = AuditLog(Registry(store, PROJECTS))

    async def confirm(number: int) -> bool:
        log.note(order(number))
        await log.kept()
        return order(number) in store.entries

    assert all(await asyncio.gather(*map(confirm, range(100))))
    assert store.commits < 5


async def test_an_order_that_cannot_be_written_is_not_confirmed_and_is_written_later() -> None:
    store = MemoryTrust()
    log = AuditLog(Registry(store, PROJECTS))
    store.wrong = "the disk is full"
    log.note(order(1))
    with pytest.raises(ExhaustedError, match="the disk is full"):
        await log.kept()
    store.wrong = ""
    log.note(order(2))
    await log.kept()
    assert store.entries == [order(1), order(2)]


async def test_whoever_goes_away_while_an_entry_is_written_takes_no_entry_along() -> None:
    store = MemoryTrust()
    log = AuditLog(Registry(store, PROJECTS))
    log.note(order(1))
    leaving = asyncio.create_task(log.kept())
    await asyncio.sleep(0)
    leaving.cancel()
    await log.kept()
    assert store.entries == [order(1)]


async def test_a_log_that_cannot_be_written_ends_nothing_and_keeps_what_it_can(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryTrust()
    log = AuditLog(Registry(store, PROJECTS))
    store.wrong = "the database is locked"
    running = asyncio.create_task(log.run())
    for number in range(MOST_UNWRITTEN + 5):
        log.note(order(number))
    assert not await log.flush()
    assert not running.done()
    assert "the audit log cannot be written" in caplog.text
    store.wrong = ""
    assert await log.flush()
    running.cancel()
    lost = store.entries[0]
    assert (lost.what, lost.target) == (LOST, "5 entries")
    assert lost.result == "lost from 2026-05-01T17:33:20Z to 2026-05-01T17:33:24Z: the database is locked"
    assert store.entries[1:] == [order(number) for number in range(MOST_UNWRITTEN)]
    assert "the audit log is written again" in caplog.text


async def test_refusals_of_strangers_leave_room_for_orders_while_nothing_can_be_written() -> None:
    store = MemoryTrust()
    log = AuditLog(Registry(store, PROJECTS))
    for number in range(MOST_UNWRITTEN):
        log.note_refusal(replace(refusal(0), origin=f"ipv4:10.{number >> 16}.{number >> 8 & 255}.{number & 255}:1"))
    log.note(order(1))
    assert await log.flush()
    assert len(store.entries) == MOST_UNWRITTEN // 2 + 2
    assert store.entries[-1] == order(1)


async def test_text_that_no_database_takes_is_written_all_the_same() -> None:
    store = MemoryTrust()
    log = AuditLog(Registry(store, PROJECTS))
    log.note(replace(order(1), target="a\0b\ud800c\x1b"))
    await log.kept()
    assert store.entries[0].target == r"a\x00b\ud800c\x1b"


def test_what_a_stranger_sends_is_kept_with_every_character_visible() -> None:
    [kept] = written(refusal(0, target="\x1b]0;title\x07 \u202e\n2026"))
    assert kept.target == r"\x1b]0;title\x07 \u202e\n2026"
