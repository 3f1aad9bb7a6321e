"""Bills of materials as bundles carry them: what is in them, and that they are CycloneDX."""

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from muster.bundle.archive import read_part, verify_bundle
from muster.bundle.create import BundlePlan, create_bundle
from muster.bundle.manifest import InvalidBundleError
from muster.bundle.packages import Package
from muster.bundle.sbom import BILL_NAME, LARGEST_BILL, FrozenPart, LibraryPart, Materials, WheelPart, bill_of
from muster.bundle.wheels import Platform
from tests.small_bundles import make_own_wheels, make_wheel

PLATFORMS = (Platform("3.11", "x86_64"), Platform("3.12", "aarch64"))
DIGEST = "0" * 64


def _problems(document: bytes) -> list[str]:
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(document.decode(), all_errors=True)
    return [] if found is None else [str(each) for each in found]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A bundle of ours, which requires two distributions, one of them only with an extra and on one Python."""
    shelf, own = tmp_path / "shelf", tmp_path / "own"
    shelf.mkdir()
    own.mkdir()
    make_wheel(shelf, "pip", "26.0")
    make_wheel(shelf, "tiny", requires=("Old_Name; python_version < '3.12'", "never; sys_platform == 'win32'"))
    make_wheel(shelf, "old_name", "2.0", licence="License-Expression: MIT OR Apache-2.0")
    make_wheel(shelf, "fast", tag="cp311-cp311-manylinux_2_28_x86_64", licence="License: BSD")
    make_wheel(shelf, "fast", tag="cp312-cp312-manylinux2014_aarch64", licence="License: BSD")
    wheels = make_own_wheels(own)
    output = tmp_path / "bundle.tar"
    plan = BundlePlan(platforms=PLATFORMS, output=output, wheels=wheels, find_links=shelf)
    return create_bundle(plan, lambda _: None)


def _bill(bundle: Path) -> Any:
    with tarfile.open(bundle) as archive:
        return json.load(archive.extractfile(BILL_NAME))  # type: ignore[arg-type]  # a file


def test_a_bundle_has_a_bill_of_materials_that_is_cyclonedx(made: Path) -> None:
    with tarfile.open(made) as archive:
        content = archive.extractfile(BILL_NAME).read()  # type: ignore[union-attr]  # a file
    assert _problems(content) == []
    assert verify_bundle(made).files[BILL_NAME] == hashlib.sha256(content).hexdigest()


def test_every_file_stands_there_with_its_hash(made: Path) -> None:
    files = dict(verify_bundle(made).files)
    del files[BILL_NAME]
    listed = {each["bom-ref"]: each["hashes"][0]["content"] for each in _bill(made)["components"]}
    assert listed == files


def test_wheels_stand_there_with_name_version_licence_and_address(made: Path) -> None:
    wheels = {each["name"]: each for each in _bill(made)["components"] if each["bom-ref"].startswith("wheels/")}
    assert wheels["old-name"]["version"] == "2.0"
    assert wheels["old-name"]["purl"] == "pkg:pypi/old-name@2.0?file_name=old_name-2.0-py3-none-any.whl"
    assert wheels["old-name"]["licenses"] == [{"expression": "MIT OR Apache-2.0", "acknowledgement": "declared"}]
    assert wheels["fast"]["licenses"] == [{"license": {"name": "BSD", "acknowledgement": "declared"}}]
    assert wheels["muster-client"]["purl"].startswith("pkg:generic/muster-client@0.1.0")
    assert wheels["muster-fleet"]["purl"].startswith("pkg:generic/muster-fleet@0.1.0")


def test_what_requires_what_is_told_for_the_platforms_of_the_bundle(made: Path) -> None:
    needs = {each["ref"]: each.get("dependsOn", []) for each in _bill(made)["dependencies"]}
    tiny, old = "wheels/tiny-1.0-py3-none-any.whl", "wheels/old_name-2.0-py3-none-any.whl"
    client, fleet = (f"wheels/muster_{each}-0.1.0-py3-none-any.whl" for each in ("client", "fleet"))
    assert needs[client] == [tiny]
    assert needs[fleet] == [
        "wheels/fast-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "wheels/fast-1.0-cp312-cp312-manylinux2014_aarch64.whl",
        client,
    ]
    assert needs[tiny] == [old]
    assert needs[old] == []
    assert "wheels/pip-26.0-py3-none-any.whl" in needs["bundle:muster@0.1.0"]
    assert tiny not in needs["bundle:muster@0.1.0"]


def test_the_command_writes_the_bill_of_a_bundle(made: Path, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("muster")), "bundles", "sbom", str(made)]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    subprocess.run([*command, "--output", str(tmp_path / "bill.json")], capture_output=True, check=True)
    assert shown == (tmp_path / "bill.json").read_bytes()
    assert json.loads(shown) == _bill(made)


def test_a_bill_that_was_changed_is_refused(made: Path) -> None:
    made.write_bytes(made.read_bytes().replace(b"MIT OR Apache-2.0", b"MIT OR Apache-9.0"))
    with pytest.raises(InvalidBundleError, match=r"sbom\.cdx\.json was changed"):
        read_part(made, BILL_NAME, LARGEST_BILL)


def test_programs_with_their_python_say_what_they_were_made_of() -> None:
    package = Package(name="typer", version="0.20.0", expression="MIT")
    ours = Package(name="muster-client", version="0.1.0", expression="Apache-2.0")
    materials = Materials(
        version="0.1.0",
        wheels=[WheelPart(file="wheels/muster_client-0.1.0-py3-none-any.whl", sha256=DIGEST, package=ours)],
        frozen=[
            FrozenPart(
                file="frozen/muster-x86_64.tar.gz",
                sha256=DIGEST,
                python="3.11.7",
                maker="6.22.3",
                packages=[package, ours],
                libraries=[LibraryPart(name="libssl.so.3", sha256=DIGEST)],
            )
        ],
    )
    document = bill_of(materials)
    assert _problems(document) == []
    assert bill_of(materials) == document
    (program,) = (each for each in json.loads(document)["components"] if each["bom-ref"].startswith("frozen/"))
    assert [(each["name"], each.get("version")) for each in program["components"]] == [
        ("cpython", "3.11.7"),
        ("muster-client", "0.1.0"),
        ("typer", "0.20.0"),
        ("libssl.so.3", None),
    ]
