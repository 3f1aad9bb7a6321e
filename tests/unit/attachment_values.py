"""Frames of streams to running executions, of every kind, for tests that try them all."""

from hypothesis import strategies as st

from muster.domain.gangs.attachment import (
    COMMAND_NONCE,
    SIGNATURE_SIZE,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentSignal,
    GangCommand,
)
from tests.unit.wire_values import job_ids, node_ids

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

attachment_frames = st.one_of(
    gang_commands,
    st.builds(AttachmentInput, data=_data),
    st.just(AttachmentInputEnd()),
    st.builds(AttachmentSignal, number=st.integers(1, 64)),
    st.just(AttachmentOpened()),
    st.builds(AttachmentOutput, data=_data),
    st.builds(AttachmentErrorOutput, data=_data),
    st.builds(AttachmentEnded, code=st.integers(0, 255)),
)
