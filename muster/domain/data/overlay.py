"""Content trees that are laid over each other."""

from muster.domain.data.tree import ContentTree, content_tree


def laid_over(own: ContentTree, below: ContentTree) -> ContentTree:
    """What an execution finds: its own part, and what else another one has at places where it has nothing."""
    paths = {each.path for each in own.entries}
    taken = {above for path in paths for above in _above(path)}
    free = (
        each
        for each in below.entries
        if each.path not in paths | taken and not any(above in paths for above in _above(each.path))
    )
    return content_tree((*own.entries, *free))


def _above(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(1, len(names))]
