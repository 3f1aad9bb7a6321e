"""How the fleet's authority gives way to the next one: the stages, and the one file that says how far it is.

    STEADY ─ begin ─▶ INTRODUCING ─ nodes know both ─▶ ISSUING ─ finish ─▶ FINISHING ─ files placed ─▶ STEADY

A stage is reached when `rotation.json` is written, whole, and a coordinator that starts goes on from there. Each stage
has a number of its own, the epoch. Nodes that have renewed since then have its number.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from muster.domain.errors import ConflictError, MusterError
from muster.trust.certificates import facts, hand_over
from muster.trust.files import write_private
from muster.trust.identity import Identity

ROTATION_FILE = "rotation.json"


class RotationStage(StrEnum):
    """How far a rotation is."""

    STEADY = "steady"  #: there is one authority
    INTRODUCING = "introducing"  #: nodes learn the next authority; the present one still signs everything
    ISSUING = "issuing"  #: the next one signs for nodes, the present one for the coordinator, both are trusted
    FINISHING = "finishing"  #: the next one takes the place of the present one on disk


STEPS: Mapping[RotationStage, frozenset[RotationStage]] = {
    RotationStage.STEADY: frozenset({RotationStage.INTRODUCING}),
    RotationStage.INTRODUCING: frozenset({RotationStage.ISSUING, RotationStage.FINISHING}),
    RotationStage.ISSUING: frozenset({RotationStage.FINISHING}),
    RotationStage.FINISHING: frozenset({RotationStage.STEADY}),
}
"""The stages that may follow each one; from introducing straight to finishing only by force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityHandover:
    """A former authority and its statement that another one succeeds it."""

    authority: bytes
    statement: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """How far the change of the authority is."""

    stage: RotationStage = RotationStage.STEADY
    epoch: int = 0
    """The number of changes of stage that nodes had to learn of."""
    begun_at: datetime | None = None
    """When the rotation began that is under way; None: there is none."""
    next: Identity | None = None
    """The authority that is to follow; None: there is none."""
    handovers: tuple[AuthorityHandover, ...] = field(default=(), repr=False)
    """Statements by which those who knew an authority of before learn the next one."""

    def begun(self, present: Identity, successor: Identity, now: datetime) -> "Rotation":
        """The rotation with which nodes begin to learn the next authority; raises ConflictError while one goes on."""
        if self.stage is not RotationStage.STEADY:
            raise ConflictError(
                "the authority is being changed already; `muster authority show` tells how far that is, and `muster "
                "authority finish` ends it"
            )
        statement = hand_over(present, successor.certificate, now)
        lasting = [each for each in self.handovers if facts(each.statement).not_after > now]
        return replace(
            self._at(RotationStage.INTRODUCING),
            begun_at=now,
            next=successor,
            handovers=(*lasting, AuthorityHandover(authority=present.certificate, statement=statement)),
        )

    def issuing(self) -> "Rotation":
        """The rotation once the next authority signs for nodes."""
        return self._at(RotationStage.ISSUING)

    def finishing(self) -> "Rotation":
        """The rotation while the next authority takes the place of the present one; raises ConflictError for none."""
        if self.stage is RotationStage.STEADY:
            raise ConflictError("the authority is not being changed; `muster authority rotate` begins that")
        return replace(self, stage=RotationStage.FINISHING)

    def over(self) -> "Rotation":
        """What is left of a rotation that is over."""
        return replace(self._at(RotationStage.STEADY), begun_at=None, next=None)

    def _at(self, stage: RotationStage) -> "Rotation":
        assert stage in STEPS[self.stage]
        return replace(self, stage=stage, epoch=self.epoch + 1)


class RotationFile:
    """The rotation in the directory of the authority."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / ROTATION_FILE

    def load(self) -> Rotation:
        """How far it is; a change of files that was interrupted is carried to its end. Raises MusterError."""
        try:
            kept = json.loads(self._file.read_bytes())
            rotation = Rotation(
                stage=RotationStage(kept["stage"]),
                epoch=int(kept["epoch"]),
                begun_at=None if kept["begun_at"] is None else datetime.fromisoformat(kept["begun_at"]),
                next=None if kept["next"] is None else _identity(kept["next"]),
                handovers=tuple(_handover(each) for each in kept["handovers"]),
            )
        except FileNotFoundError:
            return Rotation()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise MusterError(f"cannot read {self._file}: put a backup of {self._directory} in its place") from error
        if rotation.stage is RotationStage.FINISHING:
            return self.place(rotation)
        return rotation

    def write(self, rotation: Rotation) -> None:
        """Note how far it is; raises MusterError."""
        following = rotation.next
        kept = {
            "stage": rotation.stage,
            "epoch": rotation.epoch,
            "begun_at": None if rotation.begun_at is None else rotation.begun_at.isoformat(),
            "next": None
            if following is None
            else {"certificate": following.certificate.decode(), "key": following.key.decode()},
            "handovers": [
                {"authority": each.authority.decode(), "statement": each.statement.decode()}
                for each in rotation.handovers
            ],
        }
        write_private(self._file, json.dumps(kept, indent=1).encode())

    def place(self, rotation: Rotation) -> Rotation:
        """Put the next authority in the place of the present one; may be done again after it was interrupted."""
        assert rotation.next is not None
        write_private(self._directory / "authority.key", rotation.next.key)
        write_private(self._directory / "authority.pem", rotation.next.certificate)
        over = rotation.over()
        self.write(over)
        return over


def _identity(kept: Mapping[str, str]) -> Identity:
    return Identity(certificate=kept["certificate"].encode(), key=kept["key"].encode())


def _handover(kept: Mapping[str, str]) -> AuthorityHandover:
    return AuthorityHandover(authority=kept["authority"].encode(), statement=kept["statement"].encode())
