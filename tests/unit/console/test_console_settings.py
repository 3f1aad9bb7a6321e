"""What can be chosen about a console, and what is refused."""

from pathlib import Path

import pytest

from console.settings import ConsoleSettings, parse

NOWHERE = {"MUSTER_COORDINATOR": "10.0.0.1"}


def test_it_finds_the_coordinator_as_the_command_line_does() -> None:
    assert parse([], NOWHERE).coordinator == "10.0.0.1:7460"
    assert parse(["--coordinator", "c.local"], NOWHERE).coordinator == "c.local:7460"


def test_it_answers_under_its_own_names_alone() -> None:
    settings = ConsoleSettings(coordinator="c:1", listen="10.0.0.7:443", url="https://Muster.example.com:8443/")
    assert settings.hosts == {"localhost", "127.0.0.1", "[::1]", "10.0.0.7", "muster.example.com"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--listen", "7464"], "--listen 7464 is no address like 127.0.0.1:7464"),
        (["--listen", "0.0.0.0:7464"], "will not speak unencrypted at 0.0.0.0:7464: give --cert and --key"),
        (["--cert", "a.pem"], "--cert and --key belong together"),
        (["--url", "muster.example.com"], "--url muster.example.com is no address like https://"),
        (["--notify", "n.toml"], "--notify needs --state DIRECTORY and --token-file FILE"),
        (["--notify-test", "pager"], "--notify-test needs --notify FILE"),
        (["--coordinator", "http://c"], "--coordinator: 'http://c' is not the address of a coordinator"),
    ],
)
def test_settings_that_cannot_be_are_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        parse(words, NOWHERE)
    assert refused.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_they_can_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "console.toml").write_text('listen = "127.0.0.1:9000"\nurl = "https://m.example"\n')
    settings = parse(["--config", str(tmp_path / "console.toml")], NOWHERE)
    assert (settings.listen, settings.url) == ("127.0.0.1:9000", "https://m.example")
