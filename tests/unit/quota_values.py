"""Strategies for quotas, storage and the queue, as they go over the wire."""

from dataclasses import replace

from hypothesis import strategies as st

from muster.domain import usage
from muster.domain.data import depot_use
from muster.domain.fleet import pool, quota, standing_view
from muster.domain.jobs.job_class import JobClass
from tests.unit.plain_values import labels, labels_map, moments, node_ids, optional, spans, texts, tuples_of

some = st.integers(0, quota.UNLIMITED_AMOUNT)
amounts = st.builds(quota.Amounts, some, some, some)
bounds = st.builds(quota.AmountBounds, optional(some), optional(some), optional(some))
numbers = st.integers(0, 2**31 - 1)
terms = st.builds(
    quota.QuotaTerms,
    quota=bounds,
    limit=bounds,
    weight=optional(numbers),
    rank=optional(st.integers(-(2**31), 2**31 - 1)),
    min_runtime=optional(spans),
    min_runtime_within=optional(spans),
    max_running=optional(numbers),
    max_queued=optional(numbers),
    max_running_per_user=optional(numbers),
    job_class=optional(st.sampled_from(JobClass)),
    grace_max=optional(spans),
    idle=optional(spans),
    types=optional(st.lists(texts, min_size=1, max_size=3).map(tuple)),
)
unit_terms = st.builds(quota.UnitTerms, everywhere=terms, pools=st.dictionaries(labels, terms, max_size=2))
units = st.builds(
    quota.QuotaUnit,
    name=labels,
    kind=st.sampled_from(quota.UnitKind),
    department=st.just("") | labels,
    terms=unit_terms,
)
changes = st.builds(
    lambda unit, now: quota.UnitChange(before=unit, after=None if now is None else replace(unit, terms=now)),
    units,
    optional(unit_terms),
)
pools = st.builds(
    standing_view.PoolStandingView,
    pool=labels,
    quota=amounts,
    limit=amounts,
    weight=st.integers(0, 1000),
    rank=st.integers(-100, 100),
    share=amounts,
    held=amounts,
    guaranteed=amounts,
    waiting=amounts,
)
standings = st.builds(
    standing_view.UnitStandingView,
    unit=units,
    running=numbers,
    queued=numbers,
    pools=st.lists(pools, max_size=2).map(tuple),
)
lines = st.builds(
    standing_view.QueueLine,
    position=numbers,
    job=texts,
    name=texts,
    project=texts,
    owner=texts,
    pool=texts,
    job_class=st.sampled_from(JobClass),
    priority=st.integers(-1000, 1000),
    tier=texts,
    size=amounts,
    since=moments,
    reason=texts,
)
queue_pages = st.builds(standing_view.QueuePage, lines=st.lists(lines, max_size=2).map(tuple), next_page=texts)
set_pools = st.builds(
    pool.Pool,
    name=labels,
    selector=labels_map,
    longest_run=optional(spans),
    levels=tuples_of(texts),
    enforce=st.sampled_from(pool.PortionRule),
)
pool_views = st.builds(
    standing_view.PoolView,
    pool=set_pools,
    is_set=st.booleans(),
    nodes=tuples_of(node_ids),
    capacity=amounts,
    held=amounts,
    warnings=st.lists(texts, max_size=2).map(tuple),
)
usage_wishes = st.builds(
    usage.UsageWish,
    by=st.sampled_from(usage.UsageBy),
    since=optional(moments),
    until=optional(moments),
    project=texts,
    pool=texts,
)
usage_rows = st.builds(
    usage.UsageRow,
    of=texts,
    name=texts,
    project=texts,
    user=texts,
    attempts=numbers,
    evicted=numbers,
    held=amounts,
    lost=some,
    borrowed=some,
    busy=optional(some),
    median_wait=optional(spans),
    long_wait=optional(spans),
)
usage_reports = st.builds(
    usage.UsageReport,
    by=st.sampled_from(usage.UsageBy),
    since=optional(moments),
    until=moments,
    rows=st.lists(usage_rows, max_size=2).map(tuple),
    kept_since=optional(moments),
)
held_by_project = st.builds(depot_use.ProjectHolding, trees=numbers, objects=numbers, bytes=some, limit=some)
depot_uses = st.builds(
    depot_use.DepotUse,
    at=moments,
    projects=st.dictionaries(labels, held_by_project, max_size=2),
    objects=numbers,
    bytes=some,
    unnamed_objects=numbers,
    unnamed_bytes=some,
    removed_objects=numbers,
    removed_bytes=some,
)
