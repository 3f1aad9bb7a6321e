"""`muster login` for people: what they see, what scripts see, and how it ends."""

import asyncio
import json
import os
import pty
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coordinator.clock import wall_time
from muster.cli.exit_codes import ExitCode
from muster.client.endpoint import Login, forget_up, keep_login, note_up
from muster.trust.certificates import make_authority
from tests.integration.identity_provider import IdentityProvider
from tests.integration.people import served
from tests.integration.programs import ROOT, coordinator
from tests.integration.secured import Secured, secured

PROGRAM = (sys.executable, "-c", "from muster.cli.main import main; main()")
NO_PROVIDER = (
    "error: this coordinator knows no identity provider; log in with a token: --token-file FILE, or MUSTER_TOKEN\n"
)
COMPLETE = re.compile(rb"https?://\S+/device\?user_code=\S+")


@asynccontextmanager
async def muster(fleet: Secured, *arguments: str, **more: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program, with a home of its own and nobody at its stdin."""
    own = {"MUSTER_HOME": str(fleet.directory / "home"), "PYTHONPATH": str(ROOT), "COLUMNS": "200", **more}
    env = {**without_login(os.environ), **own}
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    program = await asyncio.create_subprocess_exec(*PROGRAM, *arguments, env=env, stdin=null, stdout=pipe, stderr=pipe)
    try:
        yield program
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


def without_login(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith("MUSTER_")}


def login(fleet: Secured, *arguments: str) -> tuple[str, ...]:
    return ("login", fleet.doors.clients, "--authority", f"sha256:{fleet.authority.fingerprint}", *arguments)


async def ended(program: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    out, err = await program.communicate()
    return program.returncode, out.decode(), err.decode()


async def invitation(program: asyncio.subprocess.Process) -> tuple[str, bytes]:
    """Where the person is sent, and all that was printed so far."""
    assert program.stderr is not None
    seen = b""
    while b"gives up)" not in seen:
        line = await program.stderr.readline()
        assert line, seen
        seen += line
    found = COMPLETE.search(seen)
    assert found is not None, seen
    return found[0].decode(), seen


async def test_a_person_confirms_and_is_logged_in(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet:
        async with muster(fleet, *login(fleet)) as program:
            url, seen = await invitation(program)
            assert (
                f"open\n  {provider.issuer}/device\nand enter the code\n  {url.rpartition('=')[2]}\n" in seen.decode()
            )
            await asyncio.to_thread(provider.confirm, "p-ada", url)
            code, out, err = await ended(program)
        assert (code, err) == (0, "")
        assert out.startswith(f"logged in to {fleet.doors.clients} as ada, until 20")
        kept = tmp_path / "home" / "logins" / fleet.doors.clients
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        async with muster(fleet, "whoami", "-o", "json") as program:
            code, out, _ = await ended(program)
        myself = json.loads(out)
        assert (code, myself["name"], myself["grants"]) == (0, "ada", {"vision": "member"})
        assert myself["identity"] == f"{provider.issuer}|p-ada"
        async with muster(fleet, "whoami") as program:
            _, out, _ = await ended(program)
        assert f"{provider.issuer}|p-ada" in out


async def test_a_script_gets_json_and_no_secret(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, muster(fleet, *login(fleet, "-o", "json")) as program:
        assert program.stdout is not None
        asked = json.loads(await program.stdout.readline())
        assert set(asked) == {"verification_uri", "verification_uri_complete", "user_code", "expires_at"}
        await asyncio.to_thread(provider.confirm, "p-grace", asked["verification_uri_complete"])
        code, out, err = await ended(program)
        assert (code, err) == (0, "")
        done = json.loads(out)
        assert (done["address"], done["account"]["name"]) == (fleet.doors.clients, "grace")
        assert "muster-token-" not in out


async def test_a_person_who_refuses_is_told_so(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, muster(fleet, *login(fleet)) as program:
        url, _ = await invitation(program)
        await asyncio.to_thread(provider.refuse, "p-ada", url)
        assert await ended(program) == (
            ExitCode.REFUSED,
            "",
            "error: the login was refused at the identity provider\n",
        )
        assert not (tmp_path / "home").exists()


async def test_ctrl_c_gives_up(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, muster(fleet, *login(fleet)) as program:
        await invitation(program)
        program.send_signal(signal.SIGINT)
        assert await ended(program) == (
            ExitCode.INTERRUPTED,
            "",
            "not logged in; leave the code alone, it expires by itself\n",
        )


async def test_a_token_goes_before_the_provider_unless_it_is_asked_for(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    async with served(provider, tmp_path) as fleet:
        (tmp_path / "token").write_text(fleet.admin_token)
        async with muster(fleet, *login(fleet, "--token-file", str(tmp_path / "token"))) as program:
            assert (await ended(program))[:2] == (0, f"logged in to {fleet.doors.clients} as admin\n")
        async with muster(fleet, *login(fleet), MUSTER_TOKEN=fleet.admin_token) as program:
            assert (await ended(program))[:2] == (0, f"logged in to {fleet.doors.clients} as admin\n")
        async with muster(fleet, *login(fleet, "--sso"), MUSTER_TOKEN=fleet.admin_token) as program:
            await invitation(program)
        async with muster(fleet, *login(fleet, "--sso", "--token-file", "x")) as program:
            code, _, err = await ended(program)
            assert (code, err) == (ExitCode.USAGE, "error: --sso and --token-file are two ways to be known; take one\n")


async def test_without_a_provider_and_a_token_it_says_what_to_do(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        for arguments in (login(fleet), login(fleet, "--sso")):
            async with muster(fleet, *arguments) as program:
                assert await ended(program) == (ExitCode.REFUSED, "", NO_PROVIDER)


async def test_a_coordinator_program_with_a_provider(provider: IdentityProvider, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret of the client: 50% & more\n")
    (tmp_path / "coordinator.toml").write_text(
        f'oidc-issuer = "{provider.issuer}"\n'
        'oidc-client-id = "muster"\n'
        f'oidc-client-secret-file = "{tmp_path / "secret"}"\n'
        'oidc-grant = ["vision=default:member", "platform/admins=*:admin"]\n'
        'oidc-ttl = "10m"\n'
    )
    state, ready = tmp_path / "state", tmp_path / "ready"
    command = ("--config", str(tmp_path / "coordinator.toml"), "--state", str(state), "--listen", "127.0.0.1:0")
    coordinator = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "coordinator", *command, "--ready-file", str(ready)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert coordinator.stdout is not None
        fingerprint = (await coordinator.stdout.readline()).decode().split("sha256:")[1].strip()
        async with asyncio.timeout(30):
            while not ready.exists():  # noqa: ASYNC110 - nobody tells when
                await asyncio.sleep(0.05)
        env = {**without_login(os.environ), "MUSTER_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
        arguments = ("login", ready.read_text().strip(), "--authority", fingerprint)
        program = await asyncio.create_subprocess_exec(
            *(*PROGRAM, *arguments),
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        url, _ = await invitation(program)
        await asyncio.to_thread(provider.confirm, "p-grace", url)
        code, out, _ = await ended(program)
        assert (code, out.split(",")[0]) == (0, f"logged in to {ready.read_text().strip()} as grace")
    finally:
        coordinator.terminate()
        await coordinator.wait()


@asynccontextmanager
async def at_a_terminal(fleet: Secured, *arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """The program with a terminal of its own, and our end of that."""
    mine, theirs = pty.openpty()
    env = {**without_login(os.environ), "MUSTER_HOME": str(fleet.directory / "home"), "PYTHONPATH": str(ROOT)}
    program = await asyncio.create_subprocess_exec(
        *(*PROGRAM, *arguments), env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        yield program, mine
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
        os.close(mine)


def seen_until(terminal: int, pattern: bytes) -> bytes:
    """What was shown up to there."""
    seen = b""
    while not re.search(pattern, seen):
        seen += os.read(terminal, 4096)
    return seen


async def test_at_a_terminal_something_moves_while_it_waits(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, at_a_terminal(fleet, *login(fleet)) as (program, terminal):
        seen = await asyncio.to_thread(seen_until, terminal, rb"waiting for you to confirm [A-Z]{4}-[A-Z]{4}")
        found = COMPLETE.search(seen)
        assert found is not None
        await asyncio.to_thread(provider.confirm, "p-ada", found[0].decode())
        await asyncio.to_thread(seen_until, terminal, rb"logged in to \S+ as ada, until ")
        assert await program.wait() == 0


async def test_without_a_provider_a_person_at_a_terminal_may_type_a_token(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, at_a_terminal(fleet, *login(fleet)) as (program, terminal):
        await asyncio.to_thread(seen_until, terminal, rb"token: ")
        os.write(terminal, fleet.admin_token.encode() + b"\n")
        seen = await asyncio.to_thread(seen_until, terminal, rb"logged in to \S+ as admin")
        assert fleet.admin_token.encode() not in seen
        assert await program.wait() == 0


async def test_a_known_coordinator_is_believed_again_without_its_fingerprint(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        secret = {"MUSTER_TOKEN": fleet.admin_token}
        for arguments in (
            login(fleet),
            ("login", fleet.doors.clients),
            ("logout",),
            ("login", fleet.doors.clients),
        ):
            async with muster(fleet, *arguments, **secret) as program:
                code, _, err = await ended(program)
                assert (code, err) == (0, "")


async def test_without_a_terminal_an_unknown_coordinator_must_be_named_by_its_fingerprint(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, muster(fleet, "login", fleet.doors.clients) as program:
        code, _, err = await ended(program)
        assert code == ExitCode.USAGE
        assert f"the coordinator at {fleet.doors.clients} is not known here; say --authority sha256:…" in err


async def test_another_authority_than_the_known_one_is_told_with_the_way_out(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        keep_login(tmp_path / "home", Login(address=fleet.doors.clients, authority=stranger_authority()))
        async with muster(fleet, "login", fleet.doors.clients) as program:
            code, _, err = await ended(program)
        assert code == ExitCode.REFUSED
        assert "is not the coordinator that is meant" in err
        assert "if the fleet was made anew, log in with --authority sha256:…" in err


@pytest.mark.parametrize(
    ("address", "code", "sentence"),
    [
        ("http://localhost:7460", ExitCode.USAGE, "write HOST:PORT, without http:// or a path"),
        ("foo:bar", ExitCode.USAGE, "the port in 'foo:bar' must be a number from 1 to 65535"),
        ("127.0.0.1:1", ExitCode.UNAVAILABLE, "no coordinator with TLS answers at 127.0.0.1:1: "),
    ],
)
async def test_a_wrong_address_is_refused_in_a_sentence(
    tmp_path: Path, address: str, code: ExitCode, sentence: str
) -> None:
    async with secured(tmp_path) as fleet, muster(fleet, "login", address) as program:
        ended_with, _, err = await ended(program)
        assert (ended_with, sentence in err) == (code, True), err


async def test_what_muster_up_runs_needs_no_login_and_no_logout(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, coordinator(tmp_path) as local:
        note_up(fleet.directory / "home", local)
        for words in (("login", local.address), ("logout",)):
            async with muster(fleet, *words) as program:
                code, _, err = await ended(program)
                assert (code, f"`muster up` serves at {local.address}" in err) == (ExitCode.REFUSED, True)
        async with muster(fleet, "jobs") as program:
            assert (await ended(program))[0] == 0
        forget_up(fleet.directory / "home", local.address)
        async with muster(fleet, "login", local.address) as program:
            code, _, err = await ended(program)
            assert (code, "does not speak TLS" in err) == (ExitCode.UNAVAILABLE, True)


def stranger_authority() -> str:
    return make_authority(wall_time()).certificate.decode()
