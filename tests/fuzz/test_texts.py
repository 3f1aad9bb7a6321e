"""Texts and bytes from others, and files that may be torn: each is a value, or the error that its reader promises."""

import argparse
import base64
import json
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.deadlines import ExecutionDeadline, Notes, next_look, overdue, read, written
from agent.executions.layout import EXECUTION_RECORD, PROCESS_RECORD, ExecutionDirectory
from agent.executions.record import noted
from agent.logs.file import LogFile
from agent.runtimes.docker.log import FrameParser
from agent.runtimes.process.record import read_record
from coordinator.relay.messages import (
    AttachmentCarried,
    RelayWelcome,
    desk_message,
    line_of,
    relay_message,
)
from coordinator.store.logs.file import check_chunk
from muster.daemon.companions.lines import CompanionLineError
from muster.daemon.options_file import parse_with_file
from muster.domain.errors import MusterError
from muster.domain.gangs.log import LogRecord, Stream, format_record, parse_record, parse_records, parse_time
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.restart import parse_exit_codes
from muster.domain.visible_text import hidden_in, visible, visible_json, visible_line
from muster.jobfile.errors import FieldError
from muster.jobfile.quantity import parse_cpus, parse_duration, parse_memory
from muster.trust.certificates import (
    facts,
    fingerprint,
    issue_node,
    issue_peer,
    issue_server,
    make_authority,
    matches_key,
    new_key,
    request_certificate,
    requested_key,
    verify,
)
from muster.trust.identity import CertificateError, Identity
from muster.trust.tickets import (
    AttachmentTicket,
    TicketError,
    TicketSide,
    make_ticket,
    read_ticket,
    signed_ticket,
    ticket_payload,
)
from muster.trust.tokens import TokenFormError, new_api_token, new_join_token, parse_api_token, parse_join_token
from muster.worker import NotInAJobError, load
from tests.fuzz.effort import fuzzed
from tests.fuzz.harm import DEEP, changed
from tests.fuzz.messages import seeds

NOW = datetime(2026, 5, 1, tzinfo=UTC)
A = NodeId("a")
LINE = b"2026-11-21T08:48:50.123456789Z stdout F text of the line\n"


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


# tokens and quantities


@pytest.mark.parametrize(
    ("parse", "valid", "error"),
    [
        (parse_join_token, str(new_join_token("a" * 64)), TokenFormError),
        (parse_api_token, str(new_api_token()), TokenFormError),
        (parse_exit_codes, "1,3-5,137", ValueError),
        (parse_memory, "1.5Gi", FieldError),
        (parse_cpus, "500m", FieldError),
        (parse_duration, "1d2h30m4.5s6ms", FieldError),
    ],
)
@fuzzed
@given(text=st.text(max_size=300) | st.from_regex(r"[0-9.,\-dhmsGiKk ]{0,400}"), seed=seeds)
def test_a_text_is_what_it_should_be_or_is_refused(
    parse: Callable[[str], Any], valid: str, error: type[Exception], text: str, seed: int
) -> None:
    for each in (text, changed(valid.encode(), Random(seed)).decode("latin-1"), valid * 2000):
        with suppress(error):
            parse(each)


@fuzzed
@given(value=st.integers() | st.floats() | st.booleans())
def test_a_number_is_a_quantity_or_is_refused(value: float) -> None:
    for parse in (parse_memory, parse_cpus, parse_duration):
        with suppress(FieldError):
            parse(value)


# tickets

TICKET_KEY = bytes(32)
TICKET = AttachmentTicket(attachment="a-1", side=TicketSide.CLIENT, node=A, account="anna", not_after=NOW)


@fuzzed
@given(seed=seeds)
def test_what_a_signed_ticket_says_is_read_or_refused(seed: int) -> None:
    said = json.loads(ticket_payload(TICKET_KEY, make_ticket(TICKET_KEY, TICKET)))
    for payload in files(said, seed):
        with suppress(TicketError):
            ticket = read_ticket(TICKET_KEY, signed_ticket(TICKET_KEY, payload))
            assert read_ticket(TICKET_KEY, make_ticket(TICKET_KEY, ticket)) == ticket


CARRIED = AttachmentCarried(attachment="a", account="anna", node=A, client=True, agent=False, bytes_in=1, bytes_out=2)
WELCOME = RelayWelcome(
    fleet="f",
    key=TICKET_KEY,
    listen="0.0.0.0:7462",
    before="",
    identity=Identity(certificate=b"certificate", key=b"key"),
)


@fuzzed
@given(seed=seeds, noise=st.binary(max_size=200))
def test_what_coordinator_and_relay_say_to_each_other_is_read_or_refused(seed: int, noise: bytes) -> None:
    for said in (CARRIED, WELCOME):
        for found in (noise, *files(json.loads(line_of(said)), seed)):
            for reader in (relay_message, desk_message):
                with suppress(CompanionLineError):
                    if (read := reader(found)) is not None:
                        assert reader(line_of(read)) == read


# texts on their way to a terminal


@fuzzed
@given(text=ANY_TEXT)
def test_a_text_of_anything_is_shown_without_a_character_that_acts_or_hides(text: str) -> None:
    shown = visible(text)
    assert [each for each in shown if unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"}] == []
    assert hidden_in(shown) is None
    assert visible(shown) == shown
    assert visible(text, lines=True).split("\n") == [visible(each, lines=True) for each in text.split("\n")]


@fuzzed
@given(text=ANY_TEXT, line=st.binary(max_size=200))
def test_documents_and_printed_lines_are_visible_and_say_the_same(text: str, line: bytes) -> None:
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # two halves side by side are one
    document = visible_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(document) == {"text": text}
    assert hidden_in(document) is None
    assert hidden_in(visible_line(line).replace("\t", "")) is None


# keys, requests, certificates

AUTHORITY = make_authority(NOW)
KEY = new_key()
REQUEST = request_certificate(KEY, A)
CERTIFICATES = (
    issue_node(AUTHORITY, REQUEST, A, NOW),
    issue_peer(AUTHORITY, REQUEST, A, NOW),
    issue_server(AUTHORITY, ["10.0.0.1"], NOW).certificate,
    AUTHORITY.certificate,
)


def inside(pem: bytes, chance: Random) -> bytes:
    """A PEM whose frame is right, with changes in what it holds, or with changes anywhere."""
    if chance.random() < 0.2:
        return changed(pem, chance)
    first, *middle, last = pem.decode().split("\n")[:-1]
    content = changed(base64.b64decode("".join(middle)), chance)
    return "\n".join([first, base64.b64encode(content).decode(), last, ""]).encode()


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@fuzzed
@given(seed=seeds, noise=st.binary(max_size=100))
def test_a_certificate_is_read_or_refused(seed: int, noise: bytes) -> None:
    chance = Random(seed)
    for found in (noise, *(inside(each, chance) for each in CERTIFICATES)):
        for reader in (facts, fingerprint):
            with suppress(CertificateError):
                reader(found)
        with suppress(CertificateError):
            matches_key(found, KEY)
        with suppress(CertificateError):
            verify(found, AUTHORITY.certificate, NOW)


@fuzzed
@given(seed=seeds, noise=st.binary(max_size=100))
def test_a_request_is_signed_or_refused(seed: int, noise: bytes) -> None:
    for found in (noise, inside(REQUEST, Random(seed))):
        for answer in (requested_key, lambda it: issue_node(AUTHORITY, it, A, NOW)):
            with suppress(CertificateError):
                answer(found)


@fuzzed
@given(seed=seeds, noise=st.binary(max_size=100))
def test_a_key_is_read_or_refused(seed: int, noise: bytes) -> None:
    for found in (noise, inside(KEY, Random(seed))):
        with suppress(CertificateError):
            matches_key(CERTIFICATES[0], found)


# logs


@fuzzed
@given(seed=seeds, noise=st.binary(max_size=200))
def test_a_line_of_a_log_is_a_record_or_is_refused(seed: int, noise: bytes) -> None:
    chance = Random(seed)
    for found in (noise, changed(LINE, chance), changed(LINE * 5, chance)):
        for reader in (parse_record, parse_records, parse_time, check_chunk):
            with suppress(ValueError):
                reader(found)


@fuzzed
@given(
    seconds=st.integers(0, 253_402_300_799),
    nanoseconds=st.integers(0, 999_999_999),
    stream=st.sampled_from(Stream),
    text=st.binary(max_size=300).filter(lambda text: b"\n" not in text),
    partial=st.booleans(),
    marker=st.booleans(),
)
def test_a_record_comes_back_as_it_was(
    *, seconds: int, nanoseconds: int, stream: Stream, text: bytes, partial: bool, marker: bool
) -> None:
    record = LogRecord(time_ns=seconds * 10**9 + nanoseconds, stream=stream, text=text, partial=partial, marker=marker)
    assert parse_record(format_record(record)) == record


@fuzzed
@given(seed=seeds)
def test_a_spool_that_was_damaged_is_opened_read_and_written_again(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance = Random(seed)
    path = tmp_path_factory.mktemp("spool") / "log"
    path.write_bytes(changed(LINE * 20, chance))
    log = LogFile(path)
    try:
        log.append(LogRecord(time_ns=0, stream=Stream.STDOUT, text=b"afterwards"))
        assert log.read(0, 1 << 20).endswith(b" stdout F afterwards\n")
        assert log.tail(5)[-1].endswith("afterwards")
        log.resume_point(Stream.STDOUT)
    finally:
        log.close()


FRAMES = b"".join(
    bytes([1, 0, 0, 0]) + len(text).to_bytes(4) + text
    for text in (b"2026-11-21T08:48:50.123456789Z one\n", b"2026-11-21T10:48:50.5+02:00 two\n")
)


@fuzzed
@given(seed=seeds, noise=st.binary(max_size=200))
def test_what_docker_says_is_records_or_is_refused(seed: int, noise: bytes) -> None:
    for found in (noise, changed(FRAMES, Random(seed))):
        with suppress(ValueError):
            list(FrameParser(Stream.STDOUT).feed(found))


# files

NOTES = Notes(boot="b", agent="a", deadlines=(ExecutionDeadline(execution="x", dead_by=1.5, directory="/r"),))


def wrong(valid: object, chance: Random) -> object:
    """JSON with another thing in some place."""
    if isinstance(valid, dict) and valid and chance.random() < 0.8:
        key = chance.choice(list(valid))
        if chance.random() < 0.2:
            return {other: value for other, value in valid.items() if other != key}
        return {**valid, key: wrong(valid[key], chance)}
    if isinstance(valid, list) and valid and chance.random() < 0.8:
        at = chance.randrange(len(valid))
        return [*valid[:at], wrong(valid[at], chance), *valid[at + 1 :]]
    return chance.choice(
        (None, True, -1, 0, 2**80, 1e308, float("nan"), "", "x", "1", [], [1], {}, {"x": 1}, [[]], "\0")
    )


def files(valid: object, seed: int) -> list[bytes]:
    """Three of them: with other content, torn, and deeply nested."""
    chance, text = Random(seed), json.dumps(valid).encode()
    return [json.dumps(wrong(valid, chance)).encode(), changed(text, chance), DEEP.encode()]


@fuzzed
@given(seed=seeds)
def test_notes_of_deadlines_are_read_or_refused_and_what_is_read_can_be_used(seed: int) -> None:
    for found in files(json.loads(written(NOTES)), seed):
        with suppress(ValueError):
            notes = read(found)
            overdue(notes, 1.0, notes.boot)
            next_look(notes, 1.0, notes.boot)
            assert read(written(notes)) == notes or "nan" in str(notes)


ROOM = {
    "job": "j",
    "attempt": 1,
    "rank": 0,
    "address": "10.0.0.1",
    "ports": [{"name": "ring", "host_port": 20000, "container_port": 20000}],
    "started_at": "2026-05-01T00:00:00+00:00",
    "grace": 10.0,
    "fence": {
        "lost_after": 90.0,
        "on_disconnect": "keep",
        "key": "00ff",
        "witnesses": [{"node": "b", "address": "10.0.0.2:7471"}],
    },
}


@fuzzed
@given(seed=seeds)
def test_the_record_of_a_directory_is_read_or_there_is_none(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = ExecutionDirectory(tmp_path_factory.mktemp("executions"), ExecutionId("j-1-0"))
    directory.path.mkdir()
    for found in files(ROOM, seed):
        (directory.path / EXECUTION_RECORD).write_bytes(found)
        noted(directory)


@fuzzed
@given(seed=seeds)
def test_the_record_of_a_process_is_read_or_there_is_none(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("execution")
    for found in files(
        {"boot": "b", "supervisor": {"pid": 1, "started": 2}, "program": {"pid": 3, "started": 4}}, seed
    ):
        (directory / PROCESS_RECORD).write_bytes(found + b"\n")
        read_record(directory)


MEMBER = {"rank": 0, "role": "worker", "name": "worker-0", "node": "a", "address": "1.2.3.4", "ports": {}, "gpus": []}
ROSTER = {
    "config": {"rank": 0, "world_size": 1, "attempt": 1, "job_id": "j", "job_name": "ring"},
    "master": {"address": "1.2.3.4", "port": 1},
    "members": [MEMBER],
    "self": {"network": {"exposed_ports": {"1": 2}}, "ports": {"ring": 1}},
}


@fuzzed
@given(seed=seeds)
def test_a_roster_is_read_or_refused(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path: Path = tmp_path_factory.mktemp("roster") / "distributed.json"
    for found in files(ROSTER, seed):
        path.write_bytes(found)
        with suppress(NotInAJobError):
            load(path)


CONFIG = b'coordinator = "host:7460"\nmount-root = ["/data"]\ncpus = 3\nprocesses = true\n'


@fuzzed
@given(seed=seeds, text=st.text(max_size=100))
def test_a_file_of_options_is_read_or_refused_with_a_message(
    seed: int, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path: Path = tmp_path_factory.mktemp("options") / "agent.toml"
    for found in (changed(CONFIG, Random(seed)), text.encode(), b"cpus = " + DEEP.encode()):
        path.write_bytes(found)
        parser = argparse.ArgumentParser(exit_on_error=False)
        parser.add_argument("--coordinator")
        parser.add_argument("--mount-root", action="append", default=[])
        parser.add_argument("--cpus", type=int)
        parser.add_argument("--processes", action="store_true")
        with suppress(SystemExit, MusterError):
            parse_with_file(parser, ["--config", str(path)])
