"""Root file systems of Debian machines, made from the apt sources of the machine that runs the tests.

A tree is a stack of layers, each a directory made once and kept in a cache, under a name that follows from what is in
it. A booted machine has a layer of its own on top (overlayfs), so a tree itself never changes.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from tests.e2e.images import CACHE, KEPT

PROGRAMS = ("mmdebstrap", "systemd-nspawn", "apt-get")

SYSTEM = ("systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "iproute2", "procps", "ca-certificates")
NEVER_STARTED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
    *("console-getty.service", "getty@.service", "systemd-udevd.service"),
)
BUNDLE_OF_AUTHORITIES = Path("etc/ssl/certs/ca-certificates.crt")

CONTROL_GROUPS_UNIT = """\
# systemd-nspawn mounts them read only, Docker writes there.
[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'for each in /sys/fs/cgroup /sys/fs/cgroup/*; do mount -o remount,bind,rw $$each || true; done'
[Install]
WantedBy=sysinit.target
"""


class Flavour(StrEnum):
    """What is installed on a machine before a test begins; all have systemd and sshd."""

    NOPYTHON = "nopython"
    """No Python at all."""
    BARE = "bare"
    """Python, as Debian has it."""
    DOCKER = "docker"
    """Python and a running Docker engine."""


ADDED = {
    Flavour.NOPYTHON: (),
    Flavour.BARE: ("python3", "python3-venv"),
    Flavour.DOCKER: ("docker.io", "iptables"),
}
"""The packages of each layer; a flavour has its own and those before it."""


def lacking() -> str | None:
    """Why there can be no trees here; None where there can."""
    if os.geteuid() != 0:
        return "machines need root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"machines need {', '.join(missing)}"
    CACHE.mkdir(parents=True, exist_ok=True)
    if _output("stat", "--file-system", "--format=%T", str(CACHE)).strip() == "overlayfs":
        return f"machines need a file system for {CACHE} that is no overlay itself"
    return None if _sources() else "machines need an apt source of this machine's own release"


def layers(flavour: Flavour) -> tuple[Path, ...]:
    """The directories to stack up, the topmost first, as overlayfs takes them."""
    with _locked():
        stack: tuple[Path, ...] = ()
        for each in Flavour:
            stack = (_layer(each, stack), *stack)
            if each is flavour:
                break
        return stack


def _layer(flavour: Flavour, below: Sequence[Path]) -> Path:
    """One that is there, or made now."""
    recipe = (Path(__file__).read_text(), *_sources(), *ADDED[flavour], *(path.name for path in below))
    key = hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:16]
    made = CACHE / f"tree-{flavour}-{key}"
    if not made.exists():
        _forget_old()
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-tree-") as scratch:
            content = _added(Path(scratch), ADDED[flavour], below) if below else _first(Path(scratch))
            content.rename(made)
    os.utime(made)
    return made


def _first(scratch: Path) -> Path:
    """The layer that has a whole system."""
    (scratch / "sources.list").write_text("".join(f"{line}\n" for line in _sources()))
    root = scratch / "root"
    root.mkdir()
    options = [f"--aptopt={line}" for line in _apt_settings()]
    what = ("--variant=minbase", "--mode=root", "--dpkgopt=force-unsafe-io", f"--include={','.join(SYSTEM)}")
    _output("mmdebstrap", "--quiet", *what, *options, _release(), str(root), str(scratch / "sources.list"))
    ours = Path("/") / BUNDLE_OF_AUTHORITIES
    if ours.exists():
        shutil.copy(ours, root / BUNDLE_OF_AUTHORITIES)
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (root / "etc/ssh/sshd_config.d/tests.conf").write_text(
        "HostKey /etc/ssh/ssh_host_ed25519_key\nPasswordAuthentication no\nUseDNS no\n"
    )
    (root / "etc/sudoers.d/ops").write_text("ops ALL=(ALL) NOPASSWD: ALL\n")
    (root / "etc/machine-id").write_text("")
    (root / "etc/systemd/system/control-groups-writable.service").write_text(CONTROL_GROUPS_UNIT)
    _output("chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", "ops")
    _output("systemctl", f"--root={root}", "--quiet", "mask", *NEVER_STARTED)
    _output("systemctl", f"--root={root}", "--quiet", "enable", "control-groups-writable.service")
    return root


def _added(scratch: Path, packages: Sequence[str], below: Sequence[Path]) -> Path:
    """What changes when packages are installed."""
    upper, work, root = (scratch / name for name in ("upper", "work", "root"))
    for directory in (upper, work, root):
        directory.mkdir()
    upper.chmod(0o755)
    with mounted(below, upper=upper, work=work, at=root):
        install = (
            "set -e; export DEBIAN_FRONTEND=noninteractive; apt-get update -qq; "
            f"apt-get install -y -qq --no-install-recommends {' '.join(packages)} >/dev/null; "
            "apt-get clean; rm -rf /var/lib/apt/lists/*"
        )
        how = ("--quiet", "--register=no", "--keep-unit", "--resolv-conf=copy-host", "--console=pipe", "--as-pid2")
        env = [f"--setenv={name}={value}" for name, value in proxies().items()]
        _output(
            "systemd-nspawn",
            *how,
            *env,
            f"--machine={machine_name(scratch)}",
            f"--directory={root}",
            "sh",
            "-c",
            install,
        )
    return upper


def machine_name(directory: Path) -> str:
    """The name of a machine that works in a scratch directory, whose name may have underscores."""
    return directory.name.replace("_", "0")


@contextmanager
def mounted(below: Sequence[Path], *, upper: Path, work: Path, at: Path) -> Iterator[None]:
    """The stack with a writable layer on top, for as long as the context lasts."""
    options = f"lowerdir={':'.join(map(str, below))},upperdir={upper},workdir={work}"
    _output("mount", "-t", "overlay", "overlay", "-o", options, str(at))
    try:
        yield
    finally:
        _output("umount", "--lazy", str(at))


def proxies() -> dict[str, str]:
    """The variables that tell programs here which proxies to use."""
    return {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}


@contextmanager
def _locked() -> Iterator[None]:
    """Nobody else makes trees in the meantime."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "trees.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_old() -> None:
    limit = time.time() - KEPT.total_seconds()
    for tree in CACHE.glob("tree-*"):
        if tree.stat().st_mtime < limit:
            shutil.rmtree(tree)
    for left in CACHE.glob("making-tree-*"):  # by a killed run: we have the lock, so nobody works on it
        shutil.rmtree(left)


def _release() -> str:
    (codename,) = re.findall(r"^VERSION_CODENAME=(\S+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    return str(codename)


def _sources() -> tuple[str, ...]:
    """This machine's apt sources of its own release, as lines of a sources.list."""
    wanted = {_release(), *(f"{_release()}-{pocket}" for pocket in ("updates", "security"))}
    fields = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    found = _output("apt-get", "indextargets", "--format", fields, "Created-By: Packages").splitlines()
    return tuple(sorted({f"deb {line}" for line in found if line.split()[1] in wanted}))


def _apt_settings() -> list[str]:
    """How this machine's apt gets at its sources: proxies, for instance."""
    wanted = re.compile(r'Acquire::(Check-|Languages|https?::|Retries).*"[^"]+";')
    return [line for line in _output("apt-config", "dump").splitlines() if wanted.match(line)]


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
