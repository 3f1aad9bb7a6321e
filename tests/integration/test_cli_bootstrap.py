"""The commands that reach computers by SSH, as far as they get without one."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from muster.bootstrap.ssh.known_hosts import HostKey
from muster.cli.program import program
from muster.cli.questions import Questions
from muster.domain.errors import InvalidJobError

NOBODY = "127.0.0.1:1"
"""Where no coordinator answers."""


def _muster(home: Path, *arguments: str) -> Result:
    environment = {"MUSTER_COORDINATOR": NOBODY, "MUSTER_HOME": str(home), "HOME": str(home), "COLUMNS": "200"}
    return CliRunner().invoke(program(arguments), arguments, env=environment)


def test_this_computer_is_looked_at_without_a_coordinator_and_without_ssh(tmp_path: Path) -> None:
    said = _muster(tmp_path, "nodes", "check", "--local", "-o", "json")
    (host,) = json.loads(said.stdout)["hosts"]
    findings = {finding["id"]: finding for finding in host["findings"]}
    assert host["host"] == "localhost"
    assert {"system.architecture", "system.systemd", "python", "clock", "ports", "name", "muster"} <= findings.keys()
    bad = any(finding["severity"] == "error" for finding in findings.values())
    assert (said.exit_code, findings["clock"]["severity"]) == (int(bad), "ok")
    assert "the coordinator is not asked" in said.stderr


def test_a_computer_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    said = _muster(tmp_path, "nodes", "check", "127.0.0.1:1", "-o", "json")
    ((finding,),) = (host["findings"] for host in json.loads(said.stdout)["hosts"])
    assert (said.exit_code, finding["id"], finding["severity"]) == (1, "ssh", "error")
    assert "cannot be reached by SSH" in finding["sentence"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add",), "say which computers"),
        (("check",), "say which computers"),
        (("upgrade",), "say which nodes, or --all"),
        (("upgrade", "a", "--all"), "say which nodes, or --all"),
        (("add", "a", "b", "--name", "n"), "--name is for one computer"),
        (("add", "a", "--label", "x"), "is no label"),
        (("add", "a", "--ports", "9-1"), "must be a range of ports"),
        (("add", "a", "--setting", "processes"), "is no setting"),
        (("add", "-f", "/nowhere/x.yaml"), "cannot read the inventory"),
        (("add", "a", "--accept-host-key", "aa:bb"), "is no fingerprint"),
        (("remove", "a", "--purge"), "--ssh"),
    ],
)
def test_what_is_asked_in_a_wrong_way_is_said_before_anything_is_done(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    said = _muster(tmp_path, "nodes", *words)
    assert (said.exit_code, message in said.stderr) == (2, True), said.output


def test_an_inventory_is_refused_with_line_and_field(tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    file.write_text("nodes:\n  - hots: a\n")
    said = _muster(tmp_path, "nodes", "add", "-f", str(file))
    assert said.exit_code == 2
    assert f'{file}:2:5: nodes[0].hots: unknown key; did you mean "host"?' in said.stderr


async def test_without_a_terminal_nobody_is_believed_but_by_fingerprint() -> None:
    key = HostKey(name="a", kind="ssh-ed25519", key="AAAA")
    assert not await Questions(()).confirm(key)
    assert not await Questions(("SHA256:other",)).confirm(key)
    assert await Questions((key.fingerprint,)).confirm(key)
    with pytest.raises(InvalidJobError):
        Questions(("md5",))
