"""Strategies for policies and presets."""

from hypothesis import strategies as st

from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from muster.domain.fleet.policies.preset import Preset, PresetKind
from tests.unit.plain_values import counts, moments, optional, texts

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

atoms = st.none() | st.booleans() | st.integers(-9, 9) | texts
documents = st.dictionaries(
    texts, st.recursive(atoms, lambda inner: st.lists(inner, max_size=2), max_leaves=4), max_size=3
)
presets = st.builds(
    Preset,
    project=texts,
    kind=st.sampled_from(PresetKind),
    name=texts,
    version=counts,
    document=documents,
    title=st.sampled_from(["", "PyTorch 2.9"]),
    note=st.sampled_from(["", "with NCCL 2.27"]),
    made_at=optional(moments),
    made_by=texts,
)
