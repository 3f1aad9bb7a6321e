"""Frames of streams to running executions, of every kind, for tests that try them all."""

from datetime import timedelta

from hypothesis import strategies as st

from muster.domain.attachments.channel import ChannelConsumed, ChannelHello, NumberedFrame
from muster.domain.attachments.frame import (
    COMMAND_NONCE,
    MOST_KEPT_SHELLS,
    SIGNATURE_SIZE,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentKeptShells,
    AttachmentNotice,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentOutputEnd,
    AttachmentSignal,
    AttachmentSize,
    AttachmentTrouble,
    GangCommand,
    KeptShell,
)
from muster.domain.attachments.request import (
    AttachmentKind,
    AttachmentOrder,
    AttachmentPass,
    AttachmentReport,
    CommandRequest,
    ConnectionRequest,
    FilesRequest,
    KeptShellsRequest,
    MainProgramRequest,
    NoticeForAttached,
    OpenedAttachment,
    ServedAttachment,
    TerminalSize,
)
from tests.unit.plain_values import execution_ids, job_ids, moments, node_ids

texts = st.binary(max_size=40).map(lambda raw: raw.replace(b"\0", b"").decode(errors="surrogateescape"))
_variables = st.lists(st.builds(lambda name, value: f"{name}={value}", st.text("AB_", min_size=1), texts), max_size=3)
_data = st.binary(min_size=1, max_size=300)
_ranks = st.integers(0, 9)

gang_commands = st.builds(
    GangCommand,
    job=job_ids,
    attempt=st.integers(1, 2**31 - 1),
    from_rank=_ranks,
    to_rank=_ranks,
    node=node_ids,
    nonce=st.binary(min_size=COMMAND_NONCE, max_size=COMMAND_NONCE),
    words=st.lists(texts, min_size=1, max_size=5).map(tuple),
    env=_variables.map(tuple),
    daemon=st.booleans(),
    has_input=st.booleans(),
    signature=st.binary(min_size=SIGNATURE_SIZE, max_size=SIGNATURE_SIZE),
)

terminal_sizes = st.builds(TerminalSize, rows=st.integers(1, 9999), columns=st.integers(1, 9999))
_channel_frames = st.one_of(
    st.builds(AttachmentInput, data=_data),
    st.just(AttachmentInputEnd()),
    st.builds(AttachmentSignal, number=st.integers(1, 64)),
    st.just(AttachmentOpened()),
    st.builds(AttachmentOutput, data=_data),
    st.builds(AttachmentErrorOutput, data=_data),
    st.just(AttachmentOutputEnd()),
    st.builds(AttachmentNotice, text=st.text("abc ", max_size=20)),
    st.builds(
        AttachmentKeptShells,
        shells=st.lists(
            st.builds(
                KeptShell, name=st.text("abc-", min_size=1), pid=st.integers(0, 2**32 - 1), attached=st.booleans()
            ),
            max_size=MOST_KEPT_SHELLS,
        ).map(tuple),
    ),
    st.builds(AttachmentSize, size=terminal_sizes),
    st.builds(
        AttachmentEnded,
        code=st.integers(0, 255),
        trouble=st.sampled_from(AttachmentTrouble),
        text=st.text("abc ", max_size=20),
    ),
)
attachment_frames = st.one_of(gang_commands, _channel_frames)
_counts = st.integers(0, 2**63 - 1)
channel_messages = st.one_of(
    st.builds(ChannelHello, received=_counts),
    st.builds(ChannelConsumed, number=_counts),
    st.builds(NumberedFrame, number=st.integers(1, 2**63 - 1), frame=_channel_frames),
)
_pipe_commands = st.builds(
    CommandRequest,
    words=st.lists(texts, max_size=5).map(tuple),
    env=_variables.map(tuple),
    workdir=st.sampled_from(["", "/", "/work dir"]),
    has_input=st.booleans(),
)
_terminal_commands = st.builds(
    CommandRequest, words=st.just(("top",)), terminal=terminal_sizes, kept=st.sampled_from(["", "main"])
)
attachment_requests = st.one_of(
    _pipe_commands,
    _terminal_commands,
    st.builds(CommandRequest, words=texts.map(lambda text: (text,)), line=st.just(value=True)),
    st.builds(ConnectionRequest, port=st.integers(1, 65_535), host=st.sampled_from(["127.0.0.1", "::1", "db.lan"])),
    st.just(FilesRequest()),
    st.builds(MainProgramRequest, terminal=st.none() | terminal_sizes),
    st.builds(KeptShellsRequest, end=st.sampled_from(["", "work"])),
)
_relays = st.sampled_from([":7462", "relay.lan:7462", "[fd00::1]:9"])
_names = st.text("abc123", min_size=1, max_size=8)
_spans = st.integers(0, 10_000).map(lambda seconds: timedelta(seconds=seconds))
attachment_passes = st.builds(
    AttachmentPass,
    attachment=_names,
    job=job_ids,
    rank=_ranks,
    relay=_relays,
    ticket=_names,
    resume_within=_spans,
)
attachment_orders = st.builds(
    AttachmentOrder,
    attachment=_names,
    execution=execution_ids,
    request=attachment_requests,
    relay=_relays,
    ticket=_names,
    resume_within=_spans,
    who=_names,
    token=_names,
    since=moments,
    about=_names,
)
notices_for_attached = st.builds(
    NoticeForAttached, attachments=st.lists(_names, max_size=5).map(tuple), text=st.text("abc ", max_size=20)
)
served_attachments = st.builds(
    ServedAttachment,
    attachment=_names,
    execution=execution_ids,
    kind=st.sampled_from(AttachmentKind),
    who=_names,
    token=_names,
    since=moments,
    about=_names,
)
attachment_reports = st.builds(
    AttachmentReport,
    attachment=_names,
    code=st.integers(0, 255),
    text=st.text("abc ", max_size=20),
    bytes_in=_counts,
    bytes_out=_counts,
)
opened_attachments = st.builds(
    OpenedAttachment,
    attachment=_names,
    job=job_ids,
    job_name=_names,
    rank=_ranks,
    node=node_ids,
    account=_names,
    kind=st.sampled_from(AttachmentKind),
    about=_names,
    since=moments,
    bytes_in=_counts,
    bytes_out=_counts,
)
