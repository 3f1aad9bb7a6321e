"""Hypothesis strategies for lists of names of nodes, of which many count up."""

from hypothesis import strategies as st

stems = st.sampled_from(["", "n", "gpu-", "rack1-n", "a.b", "10.0.0.", "fe80::"])
numbers = st.integers(0, 120)
numbered = st.builds(lambda stem, number, width: f"{stem}{number:0{width}d}", stems, numbers, st.integers(1, 4))
lists = st.lists(numbered | st.sampled_from(["login", "gpu-", "n12345678901"]), max_size=30).map(
    lambda drawn: [name for name in drawn if name]
)
