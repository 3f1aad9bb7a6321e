"""What may be said of an agent on its command line."""

import pytest

from agent.settings import parse

NEEDED = ("--coordinator", "127.0.0.1:1", "--name", "a")


@pytest.mark.parametrize(
    ("text", "size"), [("16Gi", 16 << 30), ("500M", 500_000_000), ("1.5Gi", 3 << 29), ("1024", 1024)]
)
def test_memory_is_written_as_in_job_files(text: str, size: int) -> None:
    assert parse((*NEEDED, "--memory", text), {}).memory == size


@pytest.mark.parametrize(
    ("option", "text", "sentence"),
    [
        ("--memory", "16 GB", "'16 GB' is not a size such as 16Gi, 500M or 1.5G, or a number of bytes"),
        ("--memory", "0", "'0' is not a size"),
        ("--memory", "-1Gi", "expected one argument"),
        ("--memory", "16Gx", "'16Gx' is not a size"),
        ("--cpus", "0", "'0' is no whole number from 1 on"),
    ],
)
def test_what_is_no_amount_is_refused(
    option: str, text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse((*NEEDED, option, text), {})

    assert sentence in capsys.readouterr().err


def test_an_agent_takes_attachments_unless_it_is_told_not_to() -> None:
    assert parse(NEEDED, {}).attach
    assert not parse((*NEEDED, "--no-attach"), {}).attach


def test_an_agent_shares_with_other_nodes_as_much_as_it_is_told() -> None:
    assert (parse(NEEDED, {}).peers, parse(NEEDED, {}).peer_rate) == (True, None)
    assert not parse((*NEEDED, "--no-peers"), {}).peers
    assert parse((*NEEDED, "--peer-rate", "100Mi"), {}).peer_rate == 100 << 20


def test_engines_pull_through_the_agent_unless_it_is_told_not_to() -> None:
    assert parse(NEEDED, {}).peer_images
    assert not parse((*NEEDED, "--no-peer-images"), {}).peer_images
