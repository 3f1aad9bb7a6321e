"""Bundles that are signed: by our own code, and by the openssl that the installer has."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from muster.bundle.archive import SignatureFiles, resigned, verify_bundle, write_bundle
from muster.bundle.manifest import InvalidBundleError, read_manifest
from muster.bundle.signature import checked_bundle, sign_bundle, signer_of, signers_in
from muster.domain.errors import InvalidJobError, MusterError
from muster.trust.signing import SignatureError, key_fingerprint, new_signing_key, public_half, signature_over
from tests.small_bundles import make_bundle

INSTALLER = Path(__file__).parents[2] / "muster" / "bundle" / "install.sh"
MUSTER = Path(sys.executable).with_name("muster")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return _key(tmp_path / "release.key")


def _key(file: Path) -> Path:
    file.write_bytes(new_signing_key())
    file.with_name(f"{file.name}.pub").write_bytes(public_half(file.read_bytes()))
    return file


def _name(key: Path) -> str:
    return key_fingerprint(public_half(key.read_bytes()))


def _members(bundle: Path) -> dict[str, bytes]:
    with tarfile.open(bundle) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]  # a file


def _written(bundle: Path, members: Mapping[str, bytes], *more: tuple[str, bytes]) -> Path:
    with tarfile.open(bundle, "w") as archive:
        for name, content in (*members.items(), *more):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return bundle


def _swapped(bundle: Path) -> Path:
    """What somebody makes of it who can compute hashes, and has not the key."""
    members = _members(bundle)
    other = b"#!/bin/sh\nreboot\n"
    old, new = (hashlib.sha256(each).hexdigest().encode() for each in (members["install.sh"], other))
    return _written(bundle, members | {"install.sh": other, "bundle.json": members["bundle.json"].replace(old, new)})


def _check(bundle: Path, *signers: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """The installer that is there already looks at another bundle."""
    words = [part for each in signers for part in ("--signer", each)]
    environ = None if path is None else {"PATH": path}
    command = ["/bin/sh", str(INSTALLER), "check", str(bundle), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)


def test_who_signed_a_bundle_is_known_by_the_fingerprint_of_the_key(tmp_path: Path, key: Path) -> None:
    bundle = make_bundle(tmp_path, key=key)
    assert checked_bundle(bundle).signer == checked_bundle(bundle, signers_in([f"{key}.pub"])).signer == _name(key)
    assert checked_bundle(make_bundle(tmp_path, "2.0")).signer == ""


def test_equal_bundles_are_signed_alike(tmp_path: Path, key: Path) -> None:
    first = make_bundle(tmp_path, key=key).read_bytes()
    assert make_bundle(tmp_path, key=key).read_bytes() == first


def test_a_bundle_is_refused_unless_somebody_has_signed_it_who_is_believed(tmp_path: Path, key: Path) -> None:
    bundle, other = make_bundle(tmp_path), _key(tmp_path / "other.key")
    with pytest.raises(InvalidBundleError, match=f"is not signed, and has to be by {_name(key)}"):
        checked_bundle(bundle, {_name(key)})
    assert sign_bundle(bundle, other) == _name(other)
    with pytest.raises(InvalidBundleError, match=f"is signed by {_name(other)}, and has to be by {_name(key)}"):
        checked_bundle(bundle, {_name(key)})
    assert sign_bundle(bundle, key) == _name(key)
    assert checked_bundle(bundle, {_name(key), _name(other)}).signer == _name(key)
    assert verify_bundle(bundle).version == "1.0"


def test_what_was_changed_after_it_was_signed_is_refused_even_if_nobody_is_named(tmp_path: Path, key: Path) -> None:
    bundle = _swapped(make_bundle(tmp_path, key=key))
    assert verify_bundle(bundle).version == "1.0"  # all its hashes are right
    with pytest.raises(InvalidBundleError, match="the signature does not fit"):
        checked_bundle(bundle)


def test_a_signature_beside_the_key_of_somebody_else_is_refused(tmp_path: Path, key: Path) -> None:
    bundle, other = make_bundle(tmp_path), _key(tmp_path / "other.key")
    text = _members(bundle)["bundle.json"]
    mixed = SignatureFiles(signature=signature_over(other.read_bytes(), text), public=public_half(key.read_bytes()))
    resigned(bundle, mixed)
    with pytest.raises(InvalidBundleError, match="the signature does not fit"):
        signer_of(bundle)
    assert _check(bundle, _name(key)).returncode == 1


@pytest.mark.parametrize(
    "head",
    [
        {"bundle.sig": b"", "bundle.pub": b""},
        {"bundle.sig": b"x" * 10_000, "bundle.pub": b"-----BEGIN PUBLIC KEY-----"},
        {"bundle.sig": b"x"},
        {"bundle.pub": b"x"},
        {"bundle.sig": b"x", "bundle.pub": b"x"},
    ],
)
def test_half_a_signature_is_none(tmp_path: Path, head: Mapping[str, bytes]) -> None:
    bundle = make_bundle(tmp_path)
    members = _members(bundle)
    text = {"bundle.json": members.pop("bundle.json")}
    with pytest.raises(InvalidBundleError):
        checked_bundle(_written(bundle, {**text, **head, **members}))


def test_no_manifest_lists_a_signature(tmp_path: Path) -> None:
    manifest = verify_bundle(make_bundle(tmp_path))
    text = manifest.written().replace(b'"install.sh"', b'"bundle.sig"')
    with pytest.raises(InvalidBundleError):
        read_manifest(text)
    with pytest.raises(MusterError):
        write_bundle(tmp_path / "nowhere" / "x.tar", manifest, {}, SignatureFiles(signature=b"", public=b""))


@pytest.mark.parametrize("word", ["sha256:abc", "sha256:" + "G" * 64, "sha256:" + "0" * 63])
def test_what_is_no_fingerprint_is_refused(word: str) -> None:
    with pytest.raises(InvalidJobError, match="is no fingerprint"):
        signers_in([word])


def test_keys_of_other_kinds_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rsa.key"
    subprocess.run(["openssl", "genrsa", "-out", file, "2048"], check=True, capture_output=True)
    with pytest.raises(SignatureError, match="of another kind than ECDSA P-256"):
        sign_bundle(make_bundle(tmp_path), file)


def test_a_key_that_openssl_made_signs_as_well(tmp_path: Path) -> None:
    file = tmp_path / "ec.key"
    curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run(["openssl", "genpkey", *curve, "-out", file], check=True, capture_output=True)
    bundle = make_bundle(tmp_path, key=file)
    assert _check(bundle, checked_bundle(bundle).signer).returncode == 0


# ---- the commands


def _muster(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([MUSTER, "bundles", *map(str, words)], capture_output=True, text=True, check=False)


def test_a_key_is_made_for_its_owner_alone_and_never_over_another(tmp_path: Path) -> None:
    file = tmp_path / "release.key"
    made = _muster("keygen", file)
    assert made.stdout.strip() == _name(file)
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    again = _muster("keygen", file)
    assert (again.returncode != 0, "is there already" in again.stderr) == (True, True)
    assert file.read_bytes() == before


def test_signing_and_verifying_are_commands(tmp_path: Path, key: Path) -> None:
    bundle = make_bundle(tmp_path)
    assert _muster("verify", bundle).stdout.endswith("signed by nobody\n")
    assert _muster("verify", bundle, "--signer", f"{key}.pub").returncode != 0
    assert _muster("sign", bundle, "--sign-key", key).stdout == f"{bundle} is signed by {_name(key)}\n"
    verified = _muster("verify", bundle, "--signer", _name(key))
    assert (verified.returncode, verified.stderr) == (0, "")


def test_the_signer_of_a_shell_counts_for_every_command(tmp_path: Path, key: Path) -> None:
    bundle, other = make_bundle(tmp_path, key=key), _key(tmp_path / "other.key")
    codes = [
        subprocess.run(
            [MUSTER, "bundles", "verify", bundle],
            capture_output=True,
            check=False,
            env={**os.environ, "MUSTER_BUNDLE_SIGNER": signers},
        ).returncode
        for signers in (_name(key), f"{_name(other)} {_name(key)}", _name(other))
    ]
    assert [code == 0 for code in codes] == [True, True, False]


# ---- the installer that is there already


def test_the_installer_that_is_there_believes_what_the_right_key_signed(tmp_path: Path, key: Path) -> None:
    bundle = make_bundle(tmp_path, key=key)
    for signer in (_name(key), f"{key}.pub"):
        done = _check(bundle, "sha256:" + "0" * 64, signer)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            f"signed by {_name(key)}",
            f"{bundle} is whole; unpack it and run its install.sh",
        ]


def test_without_a_signer_it_says_aloud_that_nothing_was_checked(tmp_path: Path, key: Path) -> None:
    done = _check(make_bundle(tmp_path, key=key))
    assert done.returncode == 0
    assert "who made this bundle is not checked" in done.stderr


def test_it_refuses_what_nobody_signed_and_what_somebody_else_signed(tmp_path: Path, key: Path) -> None:
    bundle, other = make_bundle(tmp_path), _key(tmp_path / "other.key")
    assert f"nobody has signed this bundle, and one of these has to: {_name(key)}" in _check(bundle, _name(key)).stderr
    sign_bundle(bundle, other)
    done = _check(bundle, _name(key))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"this bundle is signed by {_name(other)}" in done.stderr


def test_it_refuses_what_was_changed_after_it_was_signed(tmp_path: Path, key: Path) -> None:
    swapped = _check(_swapped(make_bundle(tmp_path, key=key)), _name(key))
    assert (swapped.returncode, swapped.stdout) == (1, "")
    assert "the signature does not fit" in swapped.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"install.sh": b"#!/bin/sh\nreboot\n"}, "install.sh is missing or was changed"),
        ({"install.sh": None}, "install.sh is missing or was changed"),
        ({"wheels/evil-1.0-py3-none-any.whl": b"more"}, "has files that do not belong there"),
    ],
)
def test_it_refuses_files_that_are_not_those_of_the_manifest(
    tmp_path: Path, key: Path, change: Mapping[str, bytes | None], said: str
) -> None:
    bundle = make_bundle(tmp_path, key=key)
    members = {name: content for name, content in {**_members(bundle), **change}.items() if content is not None}
    done = _check(_written(bundle, members), _name(key))
    assert done.returncode == 1
    assert said in done.stderr


def test_it_refuses_a_file_that_is_there_twice(tmp_path: Path, key: Path) -> None:
    bundle = make_bundle(tmp_path, key=key)
    done = _check(_written(bundle, _members(bundle), ("install.sh", b"other")), _name(key))
    assert done.returncode == 1


def test_where_openssl_is_missing_a_wanted_signature_is_no_signature(tmp_path: Path, key: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "tar", "sha256sum", "sed", "grep", "mktemp", "rm", "dirname", "cat"):
        found = subprocess.run(["sh", "-c", f"command -v {tool}"], capture_output=True, text=True, check=True)
        (tools / tool).symlink_to(found.stdout.strip())
    done = _check(make_bundle(tmp_path, key=key), _name(key), path=str(tools))
    assert done.returncode == 1
    assert "openssl is missing on this machine" in done.stderr


# ---- the installer of the bundle itself


def _functions(tmp_path: Path, bundle: Path, script: str) -> subprocess.CompletedProcess[str]:
    """The installer's functions for an unpacked bundle, and then what is given."""
    there = tmp_path / "unpacked"
    there.mkdir(exist_ok=True)
    subprocess.run(["tar", "-xf", bundle, "-C", there], check=True)
    functions = INSTALLER.read_text().replace('\nmain "$@"\n', "\n")
    script = f"{functions}\nhere={there} ETC={tmp_path}/etc signers=\n{script}\n"
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)


def test_a_machine_that_was_told_a_signer_asks_for_it_the_next_time_as_well(tmp_path: Path, key: Path) -> None:
    bundle = make_bundle(tmp_path, key=key)
    first = _functions(tmp_path, bundle, f"add_signer {_name(key)}; check_bundle; keep_signers")
    assert (first.returncode, first.stderr) == (0, "")
    assert (tmp_path / "etc" / "bundle-signers").read_text() == f"{_name(key)}\n"

    assert _functions(tmp_path, bundle, "check_bundle").stderr == ""
    sign_bundle(bundle, _key(tmp_path / "other.key"))
    refused = _functions(tmp_path, bundle, "check_bundle")
    assert refused.returncode == 1
    assert "one of these has to have signed it" in refused.stderr


@pytest.mark.parametrize("file", ["wheels/pip-00-py3-none-any.whl", "units/other.service", "requirements/x.txt"])
def test_files_that_nobody_listed_are_not_installed_from(tmp_path: Path, key: Path, file: str) -> None:
    bundle = make_bundle(tmp_path, key=key)
    assert _functions(tmp_path, bundle, "check_bundle").returncode == 0
    (tmp_path / "unpacked" / file).parent.mkdir(exist_ok=True)
    (tmp_path / "unpacked" / file).write_bytes(b"more")
    refused = _functions(tmp_path, bundle, f"add_signer {_name(key)}; check_bundle")
    assert refused.returncode == 1
    assert f"{file} does not belong to the bundle" in refused.stderr


def test_the_installer_takes_no_version_that_leads_elsewhere(tmp_path: Path) -> None:
    for version in ("..", ".", "", "-rf", "a/b", "current"):
        bundle = make_bundle(tmp_path)
        members = _members(bundle)
        text = members["bundle.json"].replace(b'"version": "1.0"', f'"version": "{version}"'.encode())
        refused = _functions(tmp_path, _written(bundle, members | {"bundle.json": text}), "check_bundle")
        assert refused.returncode == 1, version
        assert "names no version" in refused.stderr
