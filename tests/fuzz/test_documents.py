"""Documents that come from other programs and other people: each is read, or refused by the error of its reader."""

import base64
import io
import json
import re
import tarfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given

from coordinator.logins.person import account_of, grants_of, lacking, person_of
from coordinator.logins.provider import described
from coordinator.logins.settings import LoginSettings
from coordinator.logins.token import verified
from coordinator.logins.web import ProviderError
from muster.bootstrap.inventory import read_inventory
from muster.bundle.archive import read_bundle, verify_bundle
from muster.bundle.manifest import read_manifest
from muster.bundle.signature import checked_bundle
from muster.domain.errors import ConflictError, MusterError, PermissionDeniedError
from muster.domain.fleet.access import Access
from muster.jobfile import JobFileError
from muster.trust.signing import new_signing_key, public_half, signature_over
from tests.fuzz.effort import fuzzed, fuzzed_less
from tests.fuzz.harm import BOMBS, DEEP, ODD, PIECES, changed, changed_values
from tests.fuzz.messages import seeds
from tests.unit.coordinator.logins.provider_values import EC, EXPECTED, NOW, RSA, claims, published, signed

INVENTORY = """
defaults:
  user: root
  jump: [ops@bastion.example.org]
  labels: {rack: a7}
nodes:
  - host: 10.0.0.1
    name: gpu-1
    pool: a100
    port: 2222
  - host: ada@gpu-2.example.org
    ports: 20000-20999
"""


@fuzzed
@given(seed=seeds)
def test_an_inventory_is_read_or_its_problems_are_told(seed: int) -> None:
    chance = Random(seed)
    lines = INVENTORY.split("\n")
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(lines))
        piece = chance.choice((*PIECES, "10.0.0.1", "a@b", "nodes:", "defaults:", "host: ", "- host: x", "labels: "))
        lines[at] = chance.choice((lines[at] + piece, piece + lines[at], lines[at].partition(":")[0] + ": " + piece))
    with suppress(JobFileError):
        read_inventory("\n".join(lines), "inventory.yaml")


@pytest.mark.parametrize("bomb", ["aliases of aliases", "nested lists", "a long number", "a long word"])
def test_an_inventory_that_is_meant_to_do_harm_is_refused(bomb: str) -> None:
    with pytest.raises(JobFileError):
        read_inventory(BOMBS[bomb], "inventory.yaml")


MANIFEST = {
    "format": 1,
    "version": "1.2.3",
    "platforms": ["cp311-x86_64"],
    "extras": "agent,coordinator",
    "wheels_glibc": "2.17",
    "frozen_glibc_x86_64": "2.36",
    "files": {"install.sh": "0" * 64, "wheels/a-1.0-py3-none-any.whl": "0" * 64},
}
LINE = re.compile(r'^ *"(version|extras|wheels_glibc|frozen_glibc_[a-z0-9_]+)": "([^"]*)",*$', re.MULTILINE)
FILE_LINE = re.compile(r'^ *"([^"]*)": "([0-9a-f]{64})",*$', re.MULTILINE)
"""What the installer sees, which reads lines."""


KEY = new_signing_key()
SIGNATURE = {"bundle.sig": signature_over(KEY, b"something else"), "bundle.pub": public_half(KEY)}


def laid_out(value: Any) -> bytes:
    """A manifest in the lines that readers expect, as far as it is one."""
    if not isinstance(value, dict) or not isinstance(value.get("files"), dict):
        return json.dumps(value).encode()
    head = [f"  {json.dumps(key)}: {json.dumps(each)}," for key, each in value.items() if key != "files"]
    files = [f"    {json.dumps(key)}: {json.dumps(each)}" for key, each in sorted(value["files"].items())]
    return "\n".join(["{", *head, '  "files": {', ",\n".join(files), "  }", "}", ""]).encode()


def bundle(manifest: bytes) -> bytes:
    """A bundle with that manifest and one file."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        parts = {"bundle.json": manifest, **SIGNATURE, "wheels/a-1.0-py3-none-any.whl": b"wheel"}
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


@fuzzed
@given(seed=seeds)
def test_a_bundle_is_read_or_refused(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    chance = Random(seed)
    file: Path = tmp_path_factory.mktemp("bundles") / "muster.tar"
    manifest = laid_out(changed_values(MANIFEST, chance))
    for text in (manifest, changed(laid_out(MANIFEST), chance), laid_out(MANIFEST), DEEP.encode()):
        with suppress(MusterError):
            said = read_manifest(text)
            found = text.decode()
            frozen = {f"frozen_glibc_{each}": glibc for each, glibc in said.frozen.items()}
            plain = {"version": said.version, "extras": ",".join(said.extras), "wheels_glibc": said.wheels_glibc}
            assert dict(LINE.findall(found)) == plain | frozen
            assert dict(FILE_LINE.findall(found)) == dict(said.files)
            assert said.version[0].isdigit()
            assert not any(name.startswith((".", "/", "-")) or name.count("/") > 1 for name in said.files)
            assert not any(set(name) & set(" \n\\$`'\"") for name in (*said.files, *said.extras, *said.platforms))
    for content in (bundle(manifest), changed(bundle(laid_out(MANIFEST)), chance)):
        file.write_bytes(content)
        for read in (read_bundle, verify_bundle, checked_bundle):
            with suppress(MusterError):
                read(file)


SETTINGS = LoginSettings(issuer=EXPECTED.issuer, client_id=EXPECTED.client_id)
PROVIDER = {
    "issuer": EXPECTED.issuer,
    "device_authorization_endpoint": f"{EXPECTED.issuer}/device",
    "token_endpoint": f"{EXPECTED.issuer}/token",
    "jwks_uri": f"{EXPECTED.issuer}/keys",
    "userinfo_endpoint": f"{EXPECTED.issuer}/me",
    "scopes_supported": ["openid"],
}


@fuzzed
@given(seed=seeds)
def test_what_a_provider_says_of_itself_is_used_or_refused(seed: int) -> None:
    said = changed_values(PROVIDER, Random(seed))
    with suppress(ProviderError):
        described(said if isinstance(said, dict) else {}, EXPECTED.issuer)


@fuzzed
@given(seed=seeds)
def test_a_signed_token_is_proven_or_refused(seed: int) -> None:
    chance = Random(seed)
    token, keys = signed(RSA, claims()), published(RSA, EC)
    head, body, signature = token.split(".")
    other = base64.urlsafe_b64encode(changed(base64.urlsafe_b64decode(head + "=="), chance)).decode().rstrip("=")
    tokens = (
        changed(token.encode(), chance).decode("latin-1"),
        f"{other}.{body}.{signature}",
        signed(RSA, _changed_table(claims(), chance)),
        token,
    )
    for each in tokens:
        for published_ in (keys, _changed_table(keys, chance)):
            with suppress(ProviderError):
                verified(each, published_, EXPECTED, NOW)


@fuzzed_less
@given(seed=seeds)
def test_a_person_has_an_account_or_is_refused(seed: int) -> None:
    chance = Random(seed)
    said = {**_changed_table(claims(groups=["ml"], email="a@b.c"), chance), "iss": "i", "sub": "s"}
    for name in (SETTINGS.groups_claim, *SETTINGS.name_claims):
        if chance.random() < 0.3:
            said[name] = chance.choice(ODD)
    lacking(said, SETTINGS)
    with suppress(PermissionDeniedError, ConflictError):
        person = person_of(said, SETTINGS)
        grants = grants_of(person.groups, SETTINGS.grants, [])
        assert account_of(person, {**grants, "default": Access.VIEWER}, {}, NOW).identity == "i|s"


def _changed_table(table: Any, chance: Random) -> dict[str, Any]:
    found = changed_values(dict(table), chance)
    return found if isinstance(found, dict) else {}
