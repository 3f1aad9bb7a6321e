"""The audit log in a file and at a syslog: every entry, in order, whole lines, whatever happens in between."""

import asyncio
import hashlib
import json
import os
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.audit.exports.audit_file import AuditFile
from coordinator.trust.audit.exports.audit_syslog import AuditSyslog, SyslogTarget, message_of
from coordinator.trust.audit.exports.exporter import Exporter
from coordinator.trust.registry import Registry
from muster.domain.fleet.access import AuditEntry
from muster.domain.fleet.audit_chain import entry_of, hash_of, line_of

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def entry(number: int, target: str = "", result: str = "ok") -> AuditEntry:
    at = NOW + timedelta(seconds=number)
    return AuditEntry(at=at, who="ada", what="jobs.stop", target=target or f"j{number}", origin="", result=result)


class SinkThatFails:
    """Takes what it is given while it works."""

    name = "somewhere"

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.works = True
        self.has_failed = asyncio.Event()
        self.has_taken = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def written(self) -> int | None:
        return None

    def write(self, entries: Sequence[AuditEntry]) -> None:
        if not self.works:
            self._loop.call_soon_threadsafe(self.has_failed.set)
            raise ConnectionRefusedError("nobody listens")
        self.taken += [each.number for each in entries]
        self._loop.call_soon_threadsafe(self.has_taken.set)

    def close(self) -> None:
        """Nothing to let go of."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlTrust]:
    opened = SqlTrust.open(tmp_path / "coordinator.db")
    yield opened
    opened.close()


def exporter_to(path: Path, store: SqlTrust) -> Exporter:
    return Exporter(Registry(store, {}), AuditFile(path), path.with_name("audit-file.json"))


async def exported(exporter: Exporter) -> None:
    """One life of an exporter, which ends once it has handed on everything."""
    await exporter.begin()
    await exporter.hand_on()


def numbers_in(path: Path) -> list[int]:
    return [entry_of(line).number for line in path.read_text().splitlines()]


async def test_the_file_has_every_entry_once_over_restarts_and_crashes(store: SqlTrust, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    store.commit_trust([], [entry(number) for number in range(1, 1201)])
    await exported(exporter_to(path, store))
    assert path.stat().st_mode & 0o777 == 0o600
    store.commit_trust([], [entry(1201)])
    with path.open("a") as file:
        file.write('{"at": "2026-')  # as a crash leaves it
    path.with_name("audit-file.json").unlink()
    await exported(exporter_to(path, store))
    assert numbers_in(path) == list(range(1, 1202))


async def test_a_file_that_was_moved_away_is_made_anew_and_nothing_is_lost_or_doubled(
    store: SqlTrust, tmp_path: Path
) -> None:
    path, moved = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    exporter = exporter_to(path, store)
    store.commit_trust([], [entry(1), entry(2)])
    await exporter.hand_on()
    path.rename(moved)
    store.commit_trust([], [entry(3)])
    await exporter.hand_on()
    assert (numbers_in(moved), numbers_in(path)) == ([1, 2], [3])
    path.unlink()
    await exported(exporter_to(path, store))
    store.commit_trust([], [entry(4)])
    await exported(exporter_to(path, store))
    assert numbers_in(path) == [4]


async def test_ten_lines_of_python_verify_the_file_as_the_page_on_the_audit_log_has_them(
    store: SqlTrust, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    store.commit_trust([], [entry(1), entry(2, target="\x1b]0;ü\u202e"), entry(3)])
    await exported(exporter_to(path, store))
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    program = page.partition("```python\n")[2].partition("```")[0]
    script = tmp_path / "verify.py"
    script.write_text(program)

    async def said() -> tuple[int | None, str]:
        run = await asyncio.create_subprocess_exec(
            "python3", str(script), str(path), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await run.communicate()
        return run.returncode, out.decode().strip()

    assert path.read_text().isascii()
    last = entry_of(path.read_text().splitlines()[-1])
    assert await said() == (0, f"holds up to entry 3: {last.hash}")
    path.write_text(path.read_text().replace('"j3"', '"j4"'))
    assert await said() == (1, "broken at entry 3")


def test_a_line_is_what_was_hashed_and_the_hash() -> None:
    written = AuditEntry(
        at=NOW, who="ada", what="w", target="t", origin="o", result="ok", number=7, previous="ab", hash=""
    )
    form = (
        '{"at":"2026-05-01T12:00:00.000000Z","number":7,"origin":"o","previous":"ab",'
        '"result":"ok","target":"t","what":"w","who":"ada"}'
    )
    said = json.loads(line_of(written))
    del said["hash"]
    assert json.dumps(said, sort_keys=True, separators=(",", ":")) == form
    assert hash_of(written) == hashlib.sha256(form.encode()).hexdigest()


async def test_a_sink_that_fails_gets_everything_once_it_works(
    store: SqlTrust, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = SinkThatFails()
    exporter = Exporter(Registry(store, {}), sink, tmp_path / "note.json")
    sink.works = False
    store.commit_trust([], [entry(1), entry(2)])
    running = asyncio.create_task(exporter.run())
    await sink.has_failed.wait()
    sink.works = True
    await sink.has_taken.wait()
    running.cancel()
    await asyncio.wait([running])
    assert "the audit log cannot be exported" in caplog.text
    assert sink.taken == [1, 2]


async def test_a_sink_that_cannot_say_what_it_has_goes_on_after_a_restart_where_the_note_says(
    store: SqlTrust, tmp_path: Path
) -> None:
    sink = SinkThatFails()
    for number in (1, 2, 3):
        store.commit_trust([], [entry(number)])
        await exported(Exporter(Registry(store, {}), sink, tmp_path / "note.json"))
    assert sink.taken == [1, 2, 3]


async def test_after_a_restore_of_an_older_database_everything_is_exported_anew(
    store: SqlTrust, tmp_path: Path
) -> None:
    sink = SinkThatFails()
    (tmp_path / "note.json").write_text('{"to": "somewhere", "number": 4711}')
    store.commit_trust([], [entry(1), entry(2)])
    await exported(Exporter(Registry(store, {}), sink, tmp_path / "note.json"))
    assert sink.taken == [1, 2]


def test_a_disk_that_is_full_leaves_whole_lines() -> None:
    file = AuditFile(Path("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        file.write([entry(1)])
    file.close()


def test_a_message_is_one_of_rfc_5424_with_the_line_of_json() -> None:
    said = message_of(entry(1), "head", 42)
    assert said.startswith(b"<110>1 2026-05-01T12:00:01.000000Z head muster-coordinator 42 audit - {")
    assert message_of(entry(1, result="wrong token"), "head", 42).startswith(b"<108>1 ")


def test_a_local_syslog_is_sent_one_message_for_each_entry(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        sink = AuditSyslog(SyslogTarget(scheme="unix", path=str(path)))
        sink.write([entry(1), entry(2)])
        assert [listening.recv(8192) for _ in range(2)] == [
            message_of(entry(n), socket.gethostname(), os.getpid()) for n in (1, 2)
        ]
        sink.close()


def test_a_syslog_over_udp_is_sent_one_datagram_for_each_entry() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        sink = AuditSyslog(SyslogTarget(scheme="udp", host="127.0.0.1", port=listening.getsockname()[1]))
        sink.write([entry(1)])
        assert listening.recv(8192) == message_of(entry(1), socket.gethostname(), os.getpid())
        sink.close()


def test_a_syslog_over_tcp_is_told_the_length_of_each_message_and_found_again_after_it_hung_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sink = AuditSyslog(SyslogTarget(scheme="tcp", host="127.0.0.1", port=listening.getsockname()[1]))
        for number in (1, 2):
            sink.write([entry(number)])
            connection, _ = listening.accept()
            message = message_of(entry(number), socket.gethostname(), os.getpid())
            expected = b"%d %s" % (len(message), message)
            assert connection.recv(8192) == expected
            connection.close()
        sink.close()


def test_nobody_who_listens_is_an_error_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(OSError, match="refused"):
        AuditSyslog(SyslogTarget(scheme="tcp", host="127.0.0.1", port=port)).write([entry(1)])
