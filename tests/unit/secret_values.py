"""Any secret that travels, for hypothesis; without those of its values that are wrong only to the coordinator."""

from hypothesis import strategies as st

from muster.domain.fleet import secret
from tests.unit.plain_values import labels, moments, texts
from tests.unit.wire_values import secret_keys

kinds = st.sampled_from(secret.SecretKind)
secrets = st.builds(
    secret.Secret,
    project=labels,
    name=labels,
    kind=kinds,
    keys=st.lists(secret_keys, max_size=3).map(tuple),
    created_at=moments,
    updated_at=moments,
    updated_by=texts,
    server=texts,
)
delivered = st.builds(
    secret.DeliveredSecret,
    name=labels,
    kind=kinds,
    values=st.dictionaries(secret_keys, st.binary(max_size=9), max_size=3),
)
