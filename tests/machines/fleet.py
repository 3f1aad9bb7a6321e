"""Debian machines with a real systemd and sshd, each in a network namespace on a bridge of the test run's own.

A machine is a systemd-nspawn container that boots: units, journal, users and files are its own, and what it writes goes
with it. The kernel, the clock and `/dev/shm`'s size are those of the machine that runs the tests, which reaches it by
SSH at its address. It is cut off from all other networks unless it is made with `online=True`.
"""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.e2e.fleet import Place, join, sh
from tests.e2e.images import Image
from tests.e2e.programs import Program, environment
from tests.e2e.slots import CONTROL_GROUPS, Slot, take_slot
from tests.e2e.waiting import until
from tests.machines import trees
from tests.machines.trees import Flavour

FIRST = 11
"""Last part of the address of the first machine."""

ADMINISTRATOR = "ops"
"""Logs in with the same key as root and may do everything with sudo, unasked."""

BOOTED_WITHIN = 240.0
"""Seconds; a machine takes about one when nothing else runs."""

COMMAND_WITHIN = 240.0
"""Seconds for one command on a machine. It only bounds a hang: machines that share two CPUs are slow."""

ENTERED = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")


class CommandError(AssertionError):
    """A command on a machine ended badly; has its output."""

    def __init__(self, where: str, command: Sequence[str], done: subprocess.CompletedProcess[str]) -> None:
        super().__init__(f"{where}: {shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        self.code = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr


class Machine:
    """One of them; it is off until `boot`."""

    def __init__(self, place: Place, flavour: Flavour, key: Path) -> None:
        self.name = place.name
        self.address = place.address
        self.key = key
        """The private key that logs in as root and as the administrator."""
        self.place = place
        """The machine's network, to cut and to heal."""
        self.known_hosts = place.directory / "known_hosts"
        """Has its host key."""
        self._root = place.directory / "root"
        self._flavour = flavour
        self._program: Program | None = None
        self._mounts = ExitStack()

    def boot(self) -> None:
        """Switch it on; returns when all its units have been started."""
        self.begin_boot()
        self.await_booted()

    def begin_boot(self) -> None:
        """Switch it on, without waiting."""
        log = self.place.directory / "console.log"
        self._program = Program(self.name, _nspawn(self.place, self._root), log=log)

    def await_booted(self) -> None:
        """Return when it is up, or CommandError about the units that failed."""
        until(self._is_up, within=BOOTED_WITHIN, what=f"the boot of {self.name}")

    def stop(self) -> None:
        """Shut it down in order; it keeps its disk and can be booted again."""
        if self._program is not None:
            self._program.stop()
            self._program = None

    def kill(self) -> None:
        """Cut the power; it keeps its disk and can be booted again."""
        if self._program is None:
            return
        try:
            first = self._leader()
        except (LookupError, OSError):
            first = None
        self._program.kill()
        self._program = None
        if first is not None:  # it would go on without the program that booted it; all others end with it
            with suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
            until(lambda: not Path(f"/proc/{first}").exists(), within=120, what=f"the end of {self.name}")

    def reboot(self) -> None:
        """Shut it down and boot it again."""
        self.stop()
        self.boot()

    def run(self, *command: str, stdin: str | None = None, within: float = COMMAND_WITHIN) -> str:
        """What a command prints that root runs there, whatever sshd and the network do; CommandError if it fails."""
        return self._done(["nsenter", f"--target={self._leader()}", *ENTERED, "--", *_env(), *command], stdin, within)

    def ssh(self, *command: str, user: str = "root", stdin: str | None = None, within: float = COMMAND_WITHIN) -> str:
        """The same for a user who logs in by SSH; the words reach the command as they are."""
        return self._done(["ssh", *self.ssh_options, f"{user}@{self.address}", shlex.join(command)], stdin, within)

    @property
    def ssh_options(self) -> list[str]:
        """What ssh, scp and Ansible need to log in with the key and nothing but it, and to know the host."""
        return [
            *("-F", "none", "-i", str(self.key), "-o", f"UserKnownHostsFile={self.known_hosts}"),
            *("-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"),
        ]

    def file(self, path: str) -> Path:
        """What the machine has at `path`, to read and write from here; not below /run, /tmp and other mounts."""
        return self._root / path.lstrip("/")

    def load(self, image: Image) -> None:
        """Import an image into its Docker engine, like `docker import`."""
        shutil.copy(image.tar, self.file("/var/tmp/image.tar"))
        self.run("docker", "import", "/var/tmp/image.tar", image.reference)
        self.file("/var/tmp/image.tar").unlink()

    def console(self) -> str:
        """What it has printed since it was made."""
        return (self.place.directory / "console.log").read_text(errors="replace")

    def journal(self, *units: str) -> str:
        """What its units have logged."""
        chosen = [f"--unit={unit}" for unit in units]
        return self.run("journalctl", "--no-pager", "--output=short-precise", *chosen)

    def prepare(self) -> None:
        """Make its disk."""
        below = trees.layers(self._flavour)
        upper, work = (self.place.directory / name for name in ("upper", "work"))
        for directory in (upper, work, self._root):
            directory.mkdir()
        upper.chmod(0o755)
        self._mounts.enter_context(trees.mounted(below, upper=upper, work=work, at=self._root))
        _write_identity(self)

    def discard(self) -> None:
        """Power off, and its disk is gone."""
        self.kill()
        self._mounts.close()
        shutil.rmtree(self.place.directory, ignore_errors=True)

    def _is_up(self) -> bool:
        assert self._program is not None
        self._program.check()
        try:
            state = self.run("systemctl", "is-system-running")
        except CommandError as error:
            if error.stdout.strip() == "degraded":
                raise AssertionError(f"{self.name}: {self.run('systemctl', '--failed')}") from error
            return False
        except (LookupError, OSError):
            return False
        return state.strip() == "running"

    def _leader(self) -> int:
        """The number that its first process has here; LookupError while there is none."""
        assert self._program is not None, f"{self.name} is off"
        for children in Path(f"/proc/{self._program.pid}/task").glob("*/children"):
            for pid in children.read_text().split():
                status = Path(f"/proc/{pid}/status").read_text()
                if any(line.split()[0] == "NSpid:" and line.split()[2:] == ["1"] for line in status.splitlines()):
                    return int(pid)
        raise LookupError(f"{self.name} has no first process yet")

    def _done(self, command: Sequence[str], stdin: str | None, within: float) -> str:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=within,
            input=stdin if stdin is not None else "",
            env=environment(),
        )
        if done.returncode:
            raise CommandError(self.name, command[-1:] if command[0] == "ssh" else command, done)
        return done.stdout


class Yard:
    """Where the machines of one test run stand: a bridge, a key, and numbers for their addresses."""

    def __init__(self, slot: Slot) -> None:
        join(slot)
        self._slot = slot
        self._made = 0
        self.directory = slot.directory
        self.address = slot.address(1)
        """The address of the machine that runs the tests, as the others see it."""
        self.key = slot.directory / "key"
        _make_key(self.key)

    @contextmanager
    def machines(
        self,
        names: Sequence[str],
        flavour: Flavour | str = Flavour.BARE,
        *,
        online: bool = False,
    ) -> Iterator[tuple[Machine, ...]]:
        """Booted machines with these names, gone when the context ends."""
        made: list[Machine] = []
        try:
            for name in names:
                made.append(self._machine(name, Flavour(flavour)))
                made[-1].prepare()
                if online:
                    _connect(self._slot, made[-1])
                made[-1].begin_boot()
            for machine in made:
                machine.await_booted()
            yield tuple(made)
        finally:
            for machine in made:
                machine.discard()

    def _machine(self, name: str, flavour: Flavour) -> Machine:
        number = self._made
        self._made += 1
        place = Place(self._slot, f"{name}.{number}", FIRST + number)
        place.name = name
        return Machine(place, flavour, self.key)


WATCHERS = Path("/proc/sys/fs/inotify/max_user_instances")
"""The limit of one user. The machines share root with each other and with all else that runs, and each systemd needs
several.
"""
ENOUGH_WATCHERS = 2048


@contextmanager
def open_yard() -> Iterator[Yard]:
    """A yard in a slot of its own; nothing of it is left when the context ends, however it ends."""
    if int(WATCHERS.read_text()) < ENOUGH_WATCHERS:
        WATCHERS.write_text(f"{ENOUGH_WATCHERS}\n")  # as with ip_forward below, it stays so
    with take_slot() as slot:
        yield Yard(slot)


def lacking() -> str | None:
    """Why there can be no machines here; None where there can."""
    missing = [
        program for program in ("ip", "iptables", "nsenter", "ssh", "ssh-keygen") if shutil.which(program) is None
    ]
    return f"machines need {', '.join(missing)}" if missing else trees.lacking()


def _nspawn(place: Place, root: Path) -> list[str]:
    """The command that boots, in control groups of its own: those of two machines must not mix."""
    name = place.namespace.name
    groups = [top / name for top in _hierarchies()]
    enter = "".join(f"mkdir -p {group}; echo $$ > {group}/cgroup.procs; " for group in groups)
    docker = place.directory / "docker"  # overlayfs, which Docker wants to use, does not work on overlayfs
    docker.mkdir(exist_ok=True)
    options = (
        *(f"--directory={root}", f"--machine={name}", f"--hostname={place.name}"),
        *("--boot", f"--network-namespace-path={place.namespace}", f"--bind={docker}:/var/lib/docker"),
        *("--register=no", "--keep-unit", "--link-journal=no", "--resolv-conf=off", "--timezone=off"),
        *("--console=pipe", "--kill-signal=SIGRTMIN+3"),
        *("--capability=CAP_NET_ADMIN,CAP_SYS_ADMIN", "--system-call-filter=@mount keyctl add_key bpf"),
    )
    writable = "SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes"  # /proc/sys, for Docker
    return ["sh", "-c", f"{enter}exec env {writable} systemd-nspawn {shlex.join(options)}"]


def _hierarchies() -> list[Path]:
    """Where systemd keeps the control groups of units: one place, or two with version 1."""
    named = [CONTROL_GROUPS / name for name in ("systemd", "unified") if (CONTROL_GROUPS / name).is_dir()]
    return named or [CONTROL_GROUPS]


def _env() -> list[str]:
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return ["env", "--ignore-environment", f"PATH={path}", "HOME=/root", "LANG=C.UTF-8"]


def _make_key(path: Path) -> None:
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", str(path))


def _write_identity(machine: Machine) -> None:
    """Write its name, its host key, and the keys that it lets in."""
    machine.file("/etc/hostname").write_text(f"{machine.name}\n")
    machine.file("/etc/hosts").write_text(f"127.0.0.1 localhost\n{machine.address} {machine.name}\n")
    host_key = machine.file("/etc/ssh/ssh_host_ed25519_key")
    _make_key(host_key)
    machine.known_hosts.write_text(f"{machine.address} {host_key.with_suffix('.pub').read_text()}")
    for home in ("/root", f"/home/{ADMINISTRATOR}"):
        directory = machine.file(f"{home}/.ssh")
        directory.mkdir(mode=0o700, exist_ok=True)
        (directory / "authorized_keys").write_text(machine.key.with_suffix(".pub").read_text())
        sh("chown", "--recursive", f"--reference={directory.parent}", str(directory))


def _connect(slot: Slot, machine: Machine) -> None:
    """A way to other networks, through this machine and its proxies."""
    shutil.copy("/etc/resolv.conf", machine.file("/etc/resolv.conf"))
    lines = "".join(f"{name}={value}\n" for name, value in trees.proxies().items())
    machine.file("/etc/environment").write_text(lines)
    machine.place.run("ip", "route", "add", "default", "via", slot.address(1))
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    comment = ("--match", "comment", "--comment", slot.prefix)
    out = ("--source", machine.address, "!", "--out-interface", slot.bridge)
    sh("iptables", "--wait", "--table", "nat", "--append", "POSTROUTING", *out, *comment, "--jump", "MASQUERADE")
    for ends in (("--in-interface", slot.bridge), ("--out-interface", slot.bridge)):
        sh("iptables", "--wait", "--insert", "FORWARD", *ends, *comment, "--jump", "ACCEPT")
