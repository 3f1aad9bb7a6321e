"""Hypothesis strategies for valid inputs of jobs."""

from hypothesis import strategies as st

from muster.domain.data.job_input import JobInput
from muster.domain.data.pattern import InputLayout
from tests.unit.plain_values import labels


@st.composite
def inputs(draw: st.DrawFn, *, contained: bool) -> tuple[JobInput, ...]:
    """Inputs of a role, none of which lies in another one."""
    found = []
    for name in sorted(draw(st.sets(labels, max_size=3))):
        path = f"/input-{name}" if contained and draw(st.booleans()) else None
        digest = draw(st.sampled_from(("", "5" * 64)))
        if draw(st.booleans()):
            url = draw(st.sampled_from(("s3://acme/a b.tar", "s3://acme/*.tar", "az://acme/data/")))
            secret, layout = (
                draw(st.sampled_from(("", "store")[url.startswith("az") :])),
                draw(st.sampled_from(InputLayout)),
            )
            split = draw(st.booleans()) and not url.endswith("b.tar")
            found.append(JobInput(name=name, url=url, path=path, secret=secret, split=split, layout=layout))
        elif draw(st.booleans()):
            urls = (f"https://example.org/{name}.tar", "s3://acme/a b.tar", "s3://acme/data/")
            found.append(
                JobInput(name=name, urls=urls[: draw(st.integers(2, 3))], path=path, split=draw(st.booleans()))
            )
        elif draw(st.booleans()):
            source = draw(st.sampled_from(("train", "train/worker-0", "job:k3j2v8xa/*")))
            only = draw(st.sampled_from(((), ("**/*.pt", "plots/"))))
            found.append(JobInput(name=name, source=source, path=path, only=only, split=draw(st.booleans())))
        else:
            found.append(JobInput(name=name, url=f"https://example.org/{name}.tar", path=path, sha256=digest))
    return tuple(found)
