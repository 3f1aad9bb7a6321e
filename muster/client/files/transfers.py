"""What people ask for: files copied, and trees made alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from muster.client.files.copying import Copying, OnTransfer, TransferProgress, TransferResult, at_once, unnoticed
from muster.client.files.file_tree import FileTree
from muster.client.files.plan import Clash, ClashKind, Doubt, PlanRules, TreePlan, plan_of, settled
from muster.client.files.transfer_error import FileTransferError
from muster.client.files.tree import EntryKind, InvalidTreeError, TreeListing
from muster.domain.errors import ConflictError
from muster.domain.quantity import counted
from muster.transfer.ignore_rules import IgnoreRules

_SHOWN = 10
"""Paths that a sentence names."""


class ClashError(ConflictError):
    """Something at the target would be lost; nothing was done."""

    def __init__(self, message: str, clashes: Sequence[Clash]) -> None:
        super().__init__(message)
        self.clashes = tuple(clashes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySource:
    """One of the things that are copied."""

    tree: FileTree
    name: str
    """The name that it gets in a directory; empty: what is in it goes there itself, as with `.`."""


async def copy_all(
    sources: Sequence[CopySource],
    target: FileTree,
    *,
    into: bool = False,
    times: bool = True,
    on_progress: OnTransfer = unnoticed,
) -> TransferResult:
    """Copy files and directories to a target, or into it where it is a directory; `into` makes that directory.

    Each file is compared with what the other side holds, and takes its place when it is whole.
    Raises FileTransferError, ClashError or OSError.
    """
    listings = [await _listing(each.tree) for each in sources]
    named = [each.name for each in sources if each.name]
    doubled = next((name for name in named if named.count(name) > 1), None)
    if doubled is not None:
        raise FileTransferError(f"two of the sources are called {doubled}; copy them one after the other")
    kind = await target.kind()
    into = into or len(sources) > 1
    if into and kind not in {None, EntryKind.DIRECTORY}:
        raise FileTransferError(f"{target.name}: it is no directory, so nothing can be copied into it")
    inside = into or kind is EntryKind.DIRECTORY
    places = [target.within(each.name) if inside and each.name else target for each in sources]
    rules = PlanRules(everything=True)
    plans = [plan_of(found, await place.listing(), rules) for found, place in zip(listings, places, strict=True)]
    for plan, place in zip(plans, places, strict=True):
        _refuse_clashes(plan, place)
    if into and kind is None:
        await target.make_directory("")
    return await _run_all(list(zip(sources, places, plans, strict=True)), times=times, on_progress=on_progress)


async def sync_trees(
    local: FileTree,
    remote: FileTree,
    *,
    down: bool = False,
    rules: PlanRules | None = None,
    ignored: IgnoreRules | None = None,
    on_progress: OnTransfer = unnoticed,
) -> TransferResult:
    """Make the remote directory like the local one, or the other way round with `down`; only what differs is sent.

    Rules of files that are ignored are those of the local tree. Raises FileTransferError, ClashError or OSError.
    """
    wanted, ignored = rules or PlanRules(), ignored or IgnoreRules()
    here = await _looked_at(local, ignored)  # first, as it tells what is ignored
    there = await _looked_at(remote, ignored)
    source, target, found, at_target = (remote, local, there, here) if down else (local, remote, here, there)
    if found is None or found.root.kind is not EntryKind.DIRECTORY:
        raise FileTransferError(f"{source.name}: there is no such directory")
    plan = plan_of(found, at_target, wanted)
    same = await _same(plan.doubts, source, target)
    plan = settled(plan, same.__contains__, wanted)
    _refuse_clashes(plan, target)
    return await Copying(source, target, on_progress=on_progress).run(plan)


def merged(results: Iterable[TransferResult]) -> TransferResult:
    """Several results as one."""
    whole = TransferResult()
    for each in results:
        whole = TransferResult(
            files=whole.files + each.files,
            size=whole.size + each.size,
            links=whole.links + each.links,
            directories=whole.directories + each.directories,
            adjusted=whole.adjusted + each.adjusted,
            removed=whole.removed + each.removed,
            unchanged=whole.unchanged + each.unchanged,
            left_out=whole.left_out + each.left_out,
            failed=whole.failed + each.failed,
        )
    return whole


async def _listing(tree: FileTree) -> TreeListing:
    found = await _looked_at(tree, None)
    if found is None:
        raise FileTransferError(f"{tree.name}: there is no such file or directory")
    if found.root.kind is EntryKind.OTHER:
        raise FileTransferError(f"{tree.name}: it is neither a file nor a directory")
    return found


async def _looked_at(tree: FileTree, rules: IgnoreRules | None) -> TreeListing | None:
    try:
        return await tree.listing(rules)
    except InvalidTreeError as error:
        raise FileTransferError(f"{tree.name}: {error}") from error


async def _same(doubts: Sequence[Doubt], source: FileTree, target: FileTree) -> frozenset[str]:
    """Paths of files that hold the same on both sides."""
    found: set[str] = set()

    async def compare(doubt: Doubt) -> None:
        path = doubt.source.path
        if await source.hashed(path) == await target.hashed(path):
            found.add(path)

    await at_once(doubts, compare)
    return frozenset(found)


async def _run_all(
    parts: Sequence[tuple[CopySource, FileTree, TreePlan]], *, times: bool, on_progress: OnTransfer
) -> TransferResult:
    all_files = sum(len(plan.files) for _, _, plan in parts)
    all_size = sum(plan.size for _, _, plan in parts)
    results: list[TransferResult] = []
    for source, place, plan in parts:
        before = merged(results)

        def tell(now: TransferProgress, before: TransferResult = before) -> None:
            on_progress(
                TransferProgress(
                    files=before.files + now.files,
                    all_files=all_files,
                    size=before.size + now.size,
                    all_size=all_size,
                )
            )

        done = await Copying(source.tree, place, times=times, on_progress=tell).run(plan)
        results.append(_named(done, source.tree.name))
    return merged(results)


def _named(result: TransferResult, name: str) -> TransferResult:
    """The result with whole paths of what was not copied."""
    left_out = tuple(replace(each, path=_joined(name, each.path)) for each in result.left_out)
    failed = tuple(replace(each, path=_joined(name, each.path)) for each in result.failed)
    return replace(result, left_out=left_out, failed=failed)


def _joined(name: str, path: str) -> str:
    if not path:
        return name
    return f"{name}{path}" if name.endswith(("/", ":")) else f"{name}/{path}"


def _refuse_clashes(plan: TreePlan, target: FileTree) -> None:
    newer = [_joined(target.name, each.path) for each in plan.clashes if each.kind is ClashKind.NEWER]
    in_the_way = [_joined(target.name, each.path) for each in plan.clashes if each.kind is ClashKind.IN_THE_WAY]
    parts = []
    if newer:
        are = "is" if len(newer) == 1 else "are"
        parts.append(f"{counted(len(newer), 'file')} {are} newer there than what would replace them: {_shown(newer)}")
    if in_the_way:
        parts.append(f"something of another kind is in the way: {_shown(in_the_way)}")
    if parts:
        raise ClashError(f"{'; '.join(parts)}; nothing was copied", plan.clashes)


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
