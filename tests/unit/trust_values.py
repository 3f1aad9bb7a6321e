"""Any value of trust that travels, for hypothesis."""

from hypothesis import strategies as st

from muster.domain.fleet import access
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from tests.unit.placing_values import capabilities, pids
from tests.unit.plain_values import absolute_paths, labels, labels_map, moments, node_ids, texts
from tests.unit.quota_values import unit_terms

maybe_moments = st.none() | moments
grants = st.dictionaries(labels | st.just(access.EVERYWHERE), st.sampled_from(access.Access), max_size=3)

accounts = st.builds(
    access.Account,
    name=texts,
    kind=st.sampled_from(access.AccountKind),
    created_at=moments,
    grants=grants,
    identity=texts,
)
tokens = st.builds(
    access.IssuedToken,
    id=texts,
    account=texts,
    note=texts,
    created_at=moments,
    expires_at=maybe_moments,
    revoked_at=maybe_moments,
    access=st.none() | st.sampled_from(access.Access),
    projects=st.lists(labels, max_size=3).map(tuple),
    used_at=maybe_moments,
)
join_tokens = st.builds(
    access.IssuedJoinToken,
    id=texts,
    created_by=texts,
    created_at=moments,
    expires_at=moments,
    uses_left=st.integers(0, 10_000),
    labels=labels_map,
    revoked_at=maybe_moments,
)
permissions = st.builds(
    access.Permissions,
    capabilities=capabilities.map(frozenset),
    privileged=st.booleans(),
    gain_privileges=st.booleans(),
    any_user=st.booleans(),
    host_paths=st.lists(absolute_paths, max_size=3, unique=True).map(tuple),
    pids=pids,
    attach=st.builds(
        AttachPermission,
        who=st.sampled_from(Attachers),
        commands=st.booleans(),
        connections=st.booleans(),
        files=st.booleans(),
    ),
)
projects = st.builds(
    access.Project,
    name=texts,
    created_at=moments,
    permissions=permissions,
    department=texts,
    terms=unit_terms,
    storage=st.integers(0, 2**40),
)
enrolled_nodes = st.builds(
    access.EnrolledNode,
    name=node_ids,
    key=texts,
    enrolled_at=moments,
    token=texts,
    labels=labels_map,
    revoked_at=maybe_moments,
)
audit_entries = st.builds(
    access.AuditEntry,
    at=moments,
    who=texts,
    what=texts,
    target=texts,
    origin=texts,
    result=texts,
    number=st.integers(0, 2**63),
    previous=texts,
    hash=texts,
)
authority_statuses = st.builds(
    access.AuthorityStatus,
    stage=texts,
    authorities=st.lists(
        st.builds(access.KnownAuthority, fingerprint=texts, signs=texts, not_after=moments), max_size=2
    ).map(tuple),
    begun_at=maybe_moments,
    moved=st.integers(0, 10_000),
    waiting=st.lists(node_ids, max_size=3).map(tuple),
    away=st.lists(node_ids, max_size=3).map(tuple),
)
