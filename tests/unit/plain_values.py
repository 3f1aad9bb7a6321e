"""Hypothesis strategies for texts, numbers and times of values that travel."""

from datetime import UTC, datetime, timedelta
from typing import TypeVar

from hypothesis import strategies as st

from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.wire.checks import LATEST_MOMENT, LONGEST_SPAN

Value = TypeVar("Value")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
filled = texts.filter(bool)
labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
port_names = st.from_regex(r"[a-z]([a-z0-9_-]{0,8}[a-z0-9])?", fullmatch=True)
identifiers = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,12}", fullmatch=True)
addresses = st.ip_addresses().map(str)
moments = st.datetimes(datetime(1970, 1, 1), LATEST_MOMENT.replace(tzinfo=None), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
spans = st.timedeltas(min_value=timedelta(0), max_value=LONGEST_SPAN)
sizes = st.integers(0, 2**63 - 1)
counts = st.integers(0, 2**31 - 1)
ports = st.integers(1, 65535)
ranks = st.integers(0, 9_999)
env_names = filled.filter(lambda name: "=" not in name)
absolute_paths = texts.map(lambda tail: f"/{tail}")
job_ids = identifiers.map(JobId)
node_ids = identifiers.map(NodeId)
execution_ids = identifiers.map(ExecutionId)
gpu_uuids = identifiers.map(GpuUuid)


def optional(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value | None]:
    return st.none() | values


def tuples_of(
    values: st.SearchStrategy[Value], *, least: int = 0, by: str = ""
) -> st.SearchStrategy[tuple[Value, ...]]:
    """Short tuples; with `by`, that attribute differs in all of them."""
    unique_by = (lambda value: getattr(value, by)) if by else None
    return st.lists(values, min_size=least, max_size=3, unique_by=unique_by).map(tuple)


labels_map = st.dictionaries(texts, texts, max_size=3)
