"""`muster secrets`: values come from files, stdin or a person who is asked, never from the command line."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.job import DEFAULT_PROJECT, Role
from muster.domain.jobs.secret_use import SecretUse
from tests.integration.secured import Secured, secured
from tests.integration.terminal import PROGRAM, environment, typed

VALUE = b"swordfish-7f3a"


@dataclass
class Done:
    code: int
    out: str
    err: str


async def muster(fleet: Secured, *arguments: str, stdin: bytes = b"") -> Done:
    """How the program ends."""
    pipe, words = asyncio.subprocess.PIPE, (*PROGRAM, "secrets", *arguments)
    program = await asyncio.create_subprocess_exec(
        *words, env=environment(fleet), cwd=fleet.directory, stdin=pipe, stdout=pipe, stderr=pipe
    )
    out, err = await asyncio.wait_for(program.communicate(stdin), 60)
    return Done(await program.wait(), out.decode(), err.decode())


async def kept(fleet: Secured, name: str) -> dict[str, bytes]:
    """The values that a job would be given."""
    store = SqlTrust.open(fleet.directory / "coordinator.db")
    try:
        secrets = Secrets.open(store, fleet.directory / "trust" / "secrets.key", (DEFAULT_PROJECT,))
        role = Role(command=("x",), secrets=(SecretUse(secret=name, directory="/x"),))
        (given,) = await secrets.delivered("default", role)
    finally:
        store.close()
    return dict(given.values)


async def test_values_come_from_files_and_from_stdin(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        (tmp_path / "token").write_bytes(VALUE + b"\n")
        (tmp_path / "key.pem").write_bytes(b"-----BEGIN\n0\n-----END\n")
        done = await muster(fleet, "set", "x", "a=@token", "b=@key.pem", "c=-", stdin=b"three\n")
        assert (done.code, done.err) == (0, "")
        assert done.out == "secret x of project default is kept, with a, b, c\n"
        assert [(each.name, each.keys) for each in await client.secrets.list()] == [("x", ("a", "b", "c"))]
        assert await kept(fleet, "x") == {"a": VALUE, "b": b"-----BEGIN\n0\n-----END\n", "c": b"three"}


async def test_who_is_asked_does_not_see_what_he_types(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        seen = await typed(
            fleet, "secrets", "set", "gh", "--kind", "registry", "server=ghcr.io", answers=b"robot\n" + VALUE + b"\n"
        )
        assert b"username: " in seen
        assert b"password: " in seen
        assert b"robot" in seen
        assert VALUE not in seen
        assert await kept(fleet, "gh") == {"server": b"ghcr.io", "username": b"robot", "password": VALUE}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("x", "key=hunter2"), "key=… on the command line could be read by whoever lists processes"),
        (("x", "--kind", "s3", "access-key-id=hunter2"), "access-key-id=… on the command line could be read"),
        (("x",), "say which keys it has"),
        (("x", "key"), "there is no terminal to ask for key"),
        (("x", "a=-", "b=-"), "only one value can come from stdin"),
        (("x", "a=-", "a=@f"), "a is there twice"),
        (("x", "a=@nosuch"), "cannot read nosuch: No such file or directory"),
        (("x", "a/b=-"), "has the key 'a/b'"),
        (("X", "a=-"), "PutSecretRequest.name is 'X'"),
    ],
)
async def test_what_is_refused_is_refused_with_the_reason_and_without_the_value(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    async with secured(tmp_path) as fleet:
        done = await muster(fleet, "set", *arguments, stdin=b"hunter2\n")
        assert done.code == 2
        assert words in done.err
        assert "hunter2" not in done.out + done.err


async def test_secrets_are_listed_replaced_and_removed(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        await client.projects.add("vision")
        values = {"server": b"ghcr.io", "username": b"robot", "password": VALUE}
        await client.secrets.set("gh", values, kind=SecretKind.REGISTRY, project="vision")
        shown = await muster(fleet, "list", "--project", "vision")
        assert shown.out.split()[:4] == ["NAME", "KIND", "KEYS", "FOR"]
        assert "gh    registry  password, server, username  ghcr.io" in shown.out
        listed = json.loads((await muster(fleet, "list", "--project", "vision", "-o", "json")).out)
        assert [(each["name"], each["kind"], each["server"]) for each in listed] == [("gh", "registry", "ghcr.io")]
        refused = await muster(fleet, "set", "gh", "key=-", "--project", "vision", stdin=b"new")
        assert (refused.code, "already" in refused.err) == (5, True)
        again = await muster(
            fleet, "set", "gh", "key=-", "--project", "vision", "--replace", "-o", "json", stdin=b"new"
        )
        assert json.loads(again.out)["keys"] == ["key"]
        gone = await muster(fleet, "remove", "gh", "--project", "vision")
        assert gone.out == "secret gh of project vision is forgotten\n"
        assert (await muster(fleet, "remove", "gh", "--project", "vision")).code == 4
        assert json.loads((await muster(fleet, "list", "-o", "json")).out) == []
