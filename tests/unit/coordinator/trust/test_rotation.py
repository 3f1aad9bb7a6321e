"""A change of the authority: its stages, and that a coordinator killed at any of them goes on from there."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coordinator.trust.authority import FleetAuthority, load_or_make
from coordinator.trust.rotation import Rotation, RotationFile, RotationStage
from muster.domain.errors import ConflictError, MusterError
from muster.domain.ids import NodeId
from muster.trust.certificates import (
    fingerprint,
    fingerprints,
    hand_over,
    handed_over,
    issue_node,
    make_authority,
    new_key,
    request_certificate,
    verify,
)
from muster.trust.files import write_private
from muster.trust.identity import CertificateError

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NODE = NodeId("a")


def opened(directory: Path) -> FleetAuthority:
    """The authority as a coordinator has it that has just started."""
    return FleetAuthority(load_or_make(directory, NOW), ["localhost"], NOW, RotationFile(directory))


def names_in(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


def signer_of_nodes(authority: FleetAuthority) -> str:
    certificate = authority.certify(request_certificate(new_key(), NODE), NODE, NOW)
    return next(fingerprint(root.encode()) for root in _each(authority.trusted) if _signed(certificate, root.encode()))


def _each(bundle: bytes) -> list[str]:
    end = "-----END CERTIFICATE-----\n"
    return [part + end for part in bundle.decode().split(end) if part]


def _signed(certificate: bytes, root: bytes) -> bool:
    try:
        verify(certificate, root, NOW)
    except CertificateError:
        return False
    return True


async def test_each_stage_outlives_a_coordinator_that_is_killed_then(tmp_path: Path) -> None:
    first = opened(tmp_path)
    old = first.fingerprint
    assert (first.told, signer_of_nodes(first)) == ("", old)

    await first.rotate(NOW)
    second = opened(tmp_path)
    _, new = fingerprints(second.trusted)
    assert (second.rotation, second.fingerprint, signer_of_nodes(second)) == (first.rotation, old, old)

    await second.issue()
    third = opened(tmp_path)
    assert (third.fingerprint, signer_of_nodes(third), third.rotation.epoch) == (old, new, 2)
    assert _signed(third.server.certificate, third.certificate)

    await third.finish(NOW)
    fourth = opened(tmp_path)
    assert (fourth.fingerprint, fingerprints(fourth.trusted), signer_of_nodes(fourth)) == (new, (new,), new)
    assert (fourth.rotation, fourth.rotation.stage, fourth.rotation.epoch) == (third.rotation, RotationStage.STEADY, 3)
    assert third.told == fourth.told != second.told


@pytest.mark.parametrize("placed", [(), ("authority.key",), ("authority.key", "authority.pem")])
async def test_the_end_goes_on_wherever_between_its_files_it_was_interrupted(
    tmp_path: Path, placed: tuple[str, ...]
) -> None:
    before = opened(tmp_path)
    await before.rotate(NOW)
    finishing = before.rotation.finishing()
    assert finishing.next is not None
    RotationFile(tmp_path).write(finishing)
    for name in placed:
        write_private(tmp_path / name, finishing.next.key if name.endswith("key") else finishing.next.certificate)
    after = opened(tmp_path)
    assert after.fingerprint == fingerprint(finishing.next.certificate)
    assert after.rotation.stage is RotationStage.STEADY
    assert names_in(tmp_path) == {"authority.key", "authority.pem", "rotation.json"}


async def test_one_change_at_a_time_and_none_ends_that_has_not_begun(tmp_path: Path) -> None:
    authority = opened(tmp_path)
    with pytest.raises(ConflictError, match="is not being changed"):
        await authority.finish(NOW)
    await authority.rotate(NOW)
    with pytest.raises(ConflictError, match="is being changed already"):
        await authority.rotate(NOW)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    load_or_make(tmp_path, NOW)
    (tmp_path / "rotation.json").write_text("{}")
    with pytest.raises(MusterError, match=r"rotation\.json"):
        load_or_make(tmp_path, NOW)


def test_statements_of_former_authorities_are_kept_until_they_end() -> None:
    present, rotation = make_authority(NOW), Rotation()
    for days in (0, 100, 200):
        following = make_authority(NOW)
        rotation = rotation.begun(present, following, NOW + timedelta(days=days)).finishing().over()
        present = following
    assert len(rotation.handovers) == 2


def test_only_an_authority_hands_over_and_only_to_an_authority() -> None:
    old, new, other = make_authority(NOW), make_authority(NOW), make_authority(NOW)
    statement = hand_over(old, new.certificate, NOW)
    assert handed_over(statement, old.certificate, NOW) == fingerprint(new.certificate)
    for authority, at in ((other, NOW), (old, NOW + timedelta(days=181))):
        with pytest.raises(CertificateError):
            handed_over(statement, authority.certificate, at)
    node = issue_node(old, request_certificate(new_key(), NODE), NODE, NOW)
    with pytest.raises(CertificateError, match="does not speak of an authority"):
        handed_over(node, old.certificate, NOW)
