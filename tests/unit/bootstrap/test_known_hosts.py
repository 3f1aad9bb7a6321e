"""Which keys of servers are believed."""

import subprocess
from pathlib import Path

import pytest

from muster.bootstrap.ssh.known_hosts import HostKey, Verdict, add, judge, kinds_known, name_of, read_lines

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIB3Uw1D4YlWQZ8Yp8Q0J6n3zq9Zl0mJ0bq9c4k1p2r3s"
OTHER = "AAAAC3NzaC1lZDI1NTE5AAAAIFFFF1D4YlWQZ8Yp8Q0J6n3zq9Zl0mJ0bq9c4k1p2r3s"
SHOWN = HostKey(name="a.example", kind="ssh-ed25519", key=KEY)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("", Verdict.UNKNOWN),
        (f"# a.example ssh-ed25519 {KEY}", Verdict.UNKNOWN),
        (f"b.example ssh-ed25519 {KEY}", Verdict.UNKNOWN),
        (f"a.example ssh-ed25519 {KEY} a comment", Verdict.KNOWN),
        (f"10.0.0.1,A.example ssh-ed25519 {KEY}", Verdict.KNOWN),
        (f"*.example ssh-ed25519 {KEY}", Verdict.KNOWN),
        (f"*.example,!a.example ssh-ed25519 {KEY}", Verdict.UNKNOWN),
        (f"[a.example]:2222 ssh-ed25519 {KEY}", Verdict.UNKNOWN),
        (f"a.example ssh-ed25519 {OTHER}", Verdict.CHANGED),
        (f"a.example ssh-rsa {KEY}", Verdict.CHANGED),
        (f"@revoked * ssh-ed25519 {KEY}", Verdict.REVOKED),
        (f"@revoked * ssh-ed25519 {OTHER}", Verdict.UNKNOWN),
        (f"@cert-authority * ssh-ed25519 {KEY}", Verdict.UNKNOWN),
        ("a.example ssh-ed25519", Verdict.UNKNOWN),
        (f"|1|no|hash ssh-ed25519 {KEY}", Verdict.UNKNOWN),
    ],
)
def test_a_key_is_judged_by_what_is_known_of_its_server(line: str, verdict: Verdict) -> None:
    assert judge([line], SHOWN) is verdict


def test_one_of_several_keys_is_enough_and_a_revoked_one_is_never() -> None:
    known = [f"a.example ssh-ed25519 {OTHER}", f"a.example ssh-ed25519 {KEY}"]
    assert judge(known, SHOWN) is Verdict.KNOWN
    assert judge([*known, f"@revoked a.example ssh-ed25519 {KEY}"], SHOWN) is Verdict.REVOKED
    assert kinds_known(known, "a.example") == {"ssh-ed25519"}


def test_a_key_that_was_added_is_known_to_us_and_to_ssh(tmp_path: Path) -> None:
    file = tmp_path / "ssh" / "known_hosts"
    shown = HostKey(name=name_of("10.0.0.1", 2222), kind="ssh-ed25519", key=KEY)
    add(file, SHOWN)
    file.write_text(file.read_text().rstrip("\n"))  # as an editor may leave it
    add(file, shown)
    assert [judge(read_lines([file]), key) for key in (SHOWN, shown)] == [Verdict.KNOWN] * 2
    assert file.stat().st_mode & 0o777 == 0o600
    found = subprocess.run(
        ["ssh-keygen", "-F", "[10.0.0.1]:2222", "-f", file], capture_output=True, text=True, check=True
    )
    assert KEY in found.stdout


def test_names_that_were_hashed_are_recognised(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"{SHOWN.line}\n")
    subprocess.run(["ssh-keygen", "-H", "-f", file], capture_output=True, check=True)
    assert "a.example" not in file.read_text()
    assert judge(read_lines([file]), SHOWN) is Verdict.KNOWN
    assert kinds_known(read_lines([file]), "b.example") == frozenset()


def test_fingerprints_are_those_of_ssh_keygen(tmp_path: Path) -> None:
    file = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    kind, key = file.with_suffix(".pub").read_text().split()[:2]
    said = subprocess.run(["ssh-keygen", "-lf", file], capture_output=True, text=True, check=True).stdout.split()[1]
    assert HostKey(name="a", kind=kind, key=key).fingerprint == said
