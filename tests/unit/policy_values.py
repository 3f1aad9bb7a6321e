"""Strategies for policies."""

from hypothesis import strategies as st

from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from tests.unit.plain_values import moments, optional, texts

rules = st.builds(
    PolicyRule,
    required=st.booleans(),
    min=texts,
    max=texts,
    step=texts,
    options=st.lists(texts, max_size=3).map(tuple),
    pattern=texts,
    locked=st.booleans(),
    edit=st.booleans(),
    add=st.booleans(),
)
policies = st.builds(
    JobPolicy,
    project=texts,
    rules=st.dictionaries(texts, rules, max_size=3),
    updated_at=optional(moments),
    updated_by=texts,
)
