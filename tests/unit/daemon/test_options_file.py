"""Options that stand in a file."""

from pathlib import Path

import pytest

from agent.settings import parse
from coordinator.settings import parse as parse_coordinator


def _file(directory: Path, text: str) -> list[str]:
    file = directory / "agent.toml"
    file.write_text(text)
    return ["--config", str(file)]


def test_a_file_chooses_like_the_command_line(tmp_path: Path) -> None:
    arguments = _file(
        tmp_path,
        'coordinator = "10.0.0.1:7460"\nmount-root = ["/data", "/models"]\nlabel = ["rack=a7"]\n'
        'processes = true\nno-attach = true\nlog-limit = 5\nports = "20000-20100"\ncpus = 4\n',
    )
    told = ["--coordinator", "10.0.0.1:7460", "--mount-root", "/data", "--mount-root", "/models", "--label", "rack=a7"]
    told += ["--processes", "--no-attach", "--log-limit", "5", "--ports", "20000-20100", "--cpus", "4"]
    assert parse(arguments, {}) == parse(told, {})


def test_the_command_line_outweighs_the_file_and_the_file_the_environment(tmp_path: Path) -> None:
    arguments = _file(tmp_path, 'name = "a"\nstate = "/from/file"\nlabel = ["rack=a7"]\nprocesses = true\n')
    chosen = parse([*arguments, "--name", "b", "--label", "rack=b1", "--no-processes"], {"MUSTER_STATE": "/elsewhere"})
    assert (chosen.name, chosen.state, chosen.labels) == ("b", Path("/from/file"), {"rack": "b1"})
    assert not chosen.processes


def test_the_coordinator_reads_one_too(tmp_path: Path) -> None:
    arguments = _file(tmp_path, 'listen = "0.0.0.0:7000"\nname = ["gpu.example.org"]\nattachments-per-account = 7\n')
    chosen = parse_coordinator(arguments, {})
    assert (chosen.listen, chosen.listen_agents, chosen.names) == ("0.0.0.0:7000", "0.0.0.0:7001", ("gpu.example.org",))
    assert chosen.attachments_per_account == 7


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("procesess = true", "there is no option procesess; did you mean processes?"),
        ("[agent]\ncpus = 4", "there is no option agent"),
        ('config = "other.toml"', "there is no option config"),
        ('cpus = "many"', "cpus: 'many' is no whole number from 1 on"),
        ("cpus = true", "cpus: 'true' is no whole number from 1 on"),
        ('label = "rack=a7"', 'label: "rack=a7" is no list like ["rack=a7"]'),
        ('label = ["rack"]', "label: 'rack' is no label like rack=a7"),
        ("label = [7]", "label: '7' is no label like rack=a7"),
        ('processes = "yes"', 'processes: "yes" is neither true nor false'),
        ("coordinator = 5", "coordinator: 5 is no text in quotes"),
        ("mount-root = [5]", "mount-root: 5 is no text in quotes"),
        ('log-level = "loud"', 'log-level: "loud" is none of debug, info, warning, error'),
        ("log-limit = 0", "log-limit: '0' is no whole number from 1 on"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(_file(tmp_path, text), {})
    assert capsys.readouterr().err == f"muster-agent: {tmp_path}/agent.toml: {problem}\n"


def test_what_is_no_toml_is_told_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(_file(tmp_path, "cpus = 4\nname = = 1\n"), {})
    assert "agent.toml is no TOML: Invalid value (at line 2, column 8)" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(["--config", "/nowhere/agent.toml"], {})
    assert capsys.readouterr().err == "muster-agent: cannot read /nowhere/agent.toml: No such file or directory\n"


def test_who_has_joined_needs_no_join_file(tmp_path: Path) -> None:
    (tmp_path / "trust").mkdir()
    (tmp_path / "trust" / "node.json").write_text("{}")
    assert parse(["--state", str(tmp_path), "--join-file", str(tmp_path / "token")], {}).join_token is None


def test_who_has_not_joined_needs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(["--state", str(tmp_path), "--join-file", str(tmp_path / "token")], {})
    assert f"cannot read the join token in {tmp_path}/token: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "arguments", "chosen"),
    [
        ({}, [], ()),
        ({"MUSTER_PROCESS_USERS": "700000-700001"}, [], range(700_000, 700_002)),
        ({"MUSTER_PROCESS_USERS": "700000-700001"}, ["--process-users", "none"], ()),
        ({"MUSTER_PROCESS_USERS": "700000-700001"}, ["--process-users", "5-5"], range(5, 6)),
    ],
)
def test_users_of_processes_come_from_the_unit_unless_somebody_says_something_else(
    environment: dict[str, str], arguments: list[str], chosen: object
) -> None:
    assert parse(arguments, environment).process_users == chosen


def test_users_of_processes_that_are_none_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([], {"MUSTER_PROCESS_USERS": "everybody"})
    assert "MUSTER_PROCESS_USERS: 'everybody' is no range of users" in capsys.readouterr().err


def test_whose_bundles_a_coordinator_takes_stands_in_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = f"sha256:{'0' * 64}", f"sha256:{'a' * 64}"
    chosen = parse_coordinator(_file(tmp_path, f'bundle-signer = ["{one}", "{other}"]\n'), {})
    assert chosen.bundle_signers == {one, other}
    with pytest.raises(SystemExit):
        parse_coordinator(_file(tmp_path, 'bundle-signer = ["sha256:abc"]\n'), {})
    assert "bundle-signer: 'sha256:abc' is no fingerprint" in capsys.readouterr().err
