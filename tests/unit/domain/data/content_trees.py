"""Strategies for content trees."""

from hashlib import sha256

from hypothesis import strategies as st

from muster.domain.data.tree import ContentEntry, ContentKind

NAMES = st.text("ab-.é\u2028\U0001f600", min_size=1, max_size=3).filter(lambda name: name not in {".", ".."})
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def file_of(path: str, content: bytes, kind: ContentKind = ContentKind.FILE) -> ContentEntry:
    return ContentEntry(path=path, kind=kind, size=len(content), content=sha256(content).hexdigest())


def link_to(path: str, target: str) -> ContentEntry:
    return ContentEntry(path=path, kind=ContentKind.LINK, content=target)


@st.composite
def entries(draw: st.DrawFn) -> list[ContentEntry]:
    """Entries that can stand below one directory, in any order."""
    paths = sorted(draw(st.sets(PATHS, max_size=6)))
    free = [path for path in paths if not any(path != other and other.startswith(f"{path}/") for other in paths)]
    found = [
        draw(
            st.one_of(
                st.builds(file_of, st.just(path), st.binary(max_size=4), st.sampled_from(["-", "x"]).map(ContentKind)),
                st.builds(link_to, st.just(path), NAMES),
            )
        )
        for path in free
    ]
    return draw(st.permutations(found))
