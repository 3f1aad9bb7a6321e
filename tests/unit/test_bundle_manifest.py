"""What bundles say of themselves, and who else reads it: an installer that knows no JSON."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.bundle.frozen_program import clean
from muster.bundle.manifest import InvalidBundleError, Manifest, read_manifest

INSTALLER = Path(__file__).parents[2] / "muster" / "bundle" / "install.sh"
HASH = "0" * 63 + "a"
MANIFEST = Manifest(
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
    ],
)
def test_what_no_bundle_would_say_is_refused(before: str, after: str) -> None:
    text = MANIFEST.written().decode()
    assert before in text
    with pytest.raises(InvalidBundleError):
        read_manifest(text.replace(before, after, 1).encode())


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
