"""Takes a node off a computer and out of the fleet."""

from muster.bootstrap.installation.install import INSTALL_LIMIT, Tell
from muster.bootstrap.installation.registry import NodeRegistry
from muster.bootstrap.ssh.executor import Shell
from muster.domain.errors import ConflictError, MusterError
from muster.domain.fleet.node import NodeView


async def check_removable(registry: NodeRegistry, name: str, *, force: bool) -> NodeView | None:
    """The node; raises ConflictError while something runs there, unless it is forced."""
    view = await registry.node(name)
    if view is not None and view.executions and not force:
        raise ConflictError(
            f"{len(view.executions)} executions run on {name}; `muster nodes drain {name}` and wait, or use --force"
        )
    return view


async def uninstall(shell: Shell, name: str, *, purge: bool, force: bool, tell: Tell) -> bool:
    """Take Muster off a computer; False: it was not there. Raises ConflictError if another node is there."""
    config = await shell.must(r"sed -n 's/^name *= *\"\(.*\)\"$/\1/p' /etc/muster/agent.toml 2>/dev/null || true")
    there = config.strip()
    if there and there != name and not force:
        raise ConflictError(f"the node there is {there}, not {name}; --force removes it all the same")
    installer = (await shell.must("ls /opt/muster/current/install.sh 2>/dev/null || true")).strip()
    if not installer:
        return False
    tell("uninstalls")
    # The installer removes itself, so a copy of it does the work.
    options = "remove agent --purge" if purge else "remove agent"
    output = await shell.root(
        f"copy=$(mktemp /var/tmp/muster-XXXXXXXX) && cp {installer} $copy && sh $copy {options}; code=$?; "
        "rm -f $copy; exit $code",
        limit=INSTALL_LIMIT,
    )
    if output.code:
        raise MusterError(f"the installer there failed: {output.last_words}")
    return True
