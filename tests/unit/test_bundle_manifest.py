"""What bundles say of themselves, and who else reads it: an installer that knows no JSON."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.bundle.frozen_program import clean
from muster.bundle.manifest import BundleManifest, InvalidBundleError, read_manifest

INSTALLER = Path(__file__).parents[2] / "muster" / "bundle" / "install.sh"
HASH = "0" * 63 + "a"
MANIFEST = BundleManifest(
    version="0.1.0",
    platforms=("cp311-x86_64", "cp312-aarch64"),
    extras=("agent", "coordinator"),
    wheels_glibc="2.28",
    frozen={"x86_64": "2.36"},
    files={"install.sh": HASH, "wheels/a-1.0-py3-none-any.whl": HASH},
)


def test_what_is_written_is_read_again() -> None:
    assert read_manifest(MANIFEST.written()) == MANIFEST


def test_the_installer_finds_each_value_and_each_file_in_a_line_of_its_own() -> None:
    lines = MANIFEST.written().decode().splitlines()
    assert '  "version": "0.1.0",' in lines
    assert '  "platforms": ["cp311-x86_64", "cp312-aarch64"],' in lines
    assert '  "extras": "agent,coordinator",' in lines
    assert '  "frozen_glibc_x86_64": "2.36",' in lines
    assert f'    "install.sh": "{HASH}",' in lines
    assert f'    "wheels/a-1.0-py3-none-any.whl": "{HASH}"' in lines


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"format": 1', '"format": 2'),
        ('"0.1.0"', '"../../etc"'),
        ('"0.1.0"', '"0.1.0; rm -rf /"'),
        ('"install.sh"', '"../install.sh"'),
        ('"install.sh"', '"/install.sh"'),
        ('"install.sh"', '"a\\nb"'),
        (HASH, "abc"),
        ("cp311-x86_64", "$(reboot)"),
        ('"2.28"', "2.28"),
        ('"files"', '"other"'),
        ('"0.1.0"', '".."'),
        ('"0.1.0"', '"."'),
        ('"0.1.0"', '"-rf"'),
        ('"0.1.0"', '"current"'),
        ('"0.1.0"', '"1..0"'),
        ('"0.1.0"', '"1.0-1"'),
        ('"0.1.0"', '"1!1.0"'),
        ('"0.1.0"', '"' + "1" * 65 + '"'),
        ('"agent,coordinator"', "\"agent] @ https://example.org/evil.whl ; python_version > '3' #\""),
        ('"agent,coordinator"', '"agent,../evil"'),
        ('"agent,coordinator"', '"agent,agent"'),
        ('"agent,coordinator"', '"agent,"'),
        ('["cp311-x86_64", "cp312-aarch64"]', '"cp311-x86_64"'),
        ('["cp311-x86_64", "cp312-aarch64"]', '["cp311-x86_64", "cp311-x86_64"]'),
        ("cp311-x86_64", "cp27-x86_64"),
        ('"install.sh"', '"a/b/c"'),
        ('"install.sh"', '"bundle.json"'),
        ('"install.sh"', '".profile"'),
        ('"install.sh"', '"-rf"'),
        ("wheels/a-1.0-py3-none-any.whl", "wheels/pip"),
        ("wheels/a-1.0-py3-none-any.whl", "wheels/a-1.0.tar.gz"),
        ("wheels/a-1.0-py3-none-any.whl", "wheels/a @ https:-1.0-py3-none-any.whl"),
        ("frozen_glibc_x86_64", "frozen_glibc_../x"),
    ],
)
def test_what_no_bundle_would_say_is_refused(before: str, after: str) -> None:
    text = MANIFEST.written().decode()
    assert before in text
    with pytest.raises(InvalidBundleError):
        read_manifest(text.replace(before, after, 1).encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('  "version": "0.1.0",', '  "version": "9.9", "version": "0.1.0",'),
        ('  "version": "0.1.0",', '  "version": "9.9",\n  "version": "0.1.0",'),
        ('  "version": "0.1.0",', '  "version":\n"0.1.0",'),
        ('  "files": {', f'  "more": {{"x":\n"{HASH}"}},\n  "files": {{'),
        ('{\n  "format"', '{ "format"'),
    ],
)
def test_what_readers_of_lines_and_of_json_could_take_for_different_things_is_refused(before: str, after: str) -> None:
    text = MANIFEST.written().decode()
    assert before in text
    with pytest.raises(InvalidBundleError):
        read_manifest(text.replace(before, after, 1).encode())


def test_a_value_that_a_later_version_adds_in_a_line_of_its_own_is_left_alone() -> None:
    text = MANIFEST.written().decode().replace('  "files": {', '  "added": ["later"],\n  "files": {')
    assert read_manifest(text.encode()) == MANIFEST


@pytest.mark.parametrize("version", ["1", "1.0", "0.1.0", "2.0rc1", "1.0.post2", "1.0.dev3", "1.0+g1a2b.d20261122"])
def test_versions_as_packages_have_them_are_possible(version: str) -> None:
    text = MANIFEST.written().decode().replace('"0.1.0"', f'"{version}"')
    assert read_manifest(text.encode()).version == version


def test_wheels_are_known_by_name_and_version() -> None:
    files = {
        "wheels/Ruamel.yaml_clib-0.2-cp311-cp311-manylinux_2_28_x86_64.whl": HASH,
        "wheels/b-1-2-py3-none-any.whl": HASH,
    }
    found = replace(MANIFEST, files=files).wheels
    assert [(each.name, each.version) for each in found] == [("b", "1"), ("ruamel-yaml-clib", "0.2")]


@given(
    st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr).map(str.encode)
)
def test_nonsense_is_refused_in_words(text: bytes) -> None:
    with pytest.raises(InvalidBundleError):
        read_manifest(text)


def test_programs_that_bring_their_python_along_hand_none_of_it_on() -> None:
    environ = {"LD_LIBRARY_PATH": "/opt/muster/lib", "LD_LIBRARY_PATH_ORIG": "/usr/local/cuda", "_PYI_X": "1", "A": "b"}
    clean(environ)
    assert environ == {"LD_LIBRARY_PATH": "/usr/local/cuda", "A": "b"}
    clean(environ)
    assert environ == {"A": "b"}


def test_the_installer_is_plain_shell() -> None:
    for shell in filter(shutil.which, ("dash", "sh", "bash")):
        assert subprocess.run([shell, "-n", INSTALLER], capture_output=True, check=False).stderr == b""


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing_in_the_installer() -> None:
    said = subprocess.run(["shellcheck", "--shell=sh", INSTALLER], capture_output=True, text=True, check=False)
    assert said.stdout == ""
