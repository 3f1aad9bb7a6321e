"""A program that people attach to again and again: it is read when nobody is attached, too."""

from agent.attach.command import AttachedCommand
from agent.attach.kept.attachment import KeptAttachment
from agent.core.door.kept_output import KeptOutput
from agent.core.door.packets import GangErrorOutput, GangExit, GangOutput


class KeptProgram:
    """A program that goes on, and what is kept of its output."""

    def __init__(self, name: str, command: AttachedCommand, output: KeptOutput, patience: float | None = None) -> None:
        """`patience`: seconds for which its output waits for who is attached; None: for as long as it takes."""
        self.name = name
        self.command = command
        self.output = output
        self._patience = patience
        self.attachment: KeptAttachment | None = None

    def redraw(self, rows: int, columns: int) -> None:
        """Give its terminal a size, and not that of before, so that what fills the screen draws it anew."""
        self.command.resize(rows, max(1, columns - 1))
        self.command.resize(rows, columns)

    def attached(self) -> KeptAttachment:
        """Somebody attaches; who was attached before is no more."""
        if self.attachment is not None:
            self.attachment.leave()
        self.attachment = KeptAttachment(self.command, self.output.replay(), self._detached, self._patience)
        return self.attachment

    async def pump(self) -> GangExit:
        """Read its terminal until it ends, whoever is attached."""
        while not isinstance(piece := await self.command.read(), GangExit):
            await self._take(piece)
        return piece

    def ended(self, end: GangExit) -> None:
        """Let go of its terminal, and tell whoever is attached how it ended."""
        self.command.close()
        if self.attachment is not None:
            self.attachment.ended(end)
            self.attachment = None

    async def _take(self, piece: GangOutput | GangErrorOutput) -> None:
        self.output.add(piece.data)
        if self.attachment is not None:
            await self.attachment.give(GangOutput(data=piece.data))

    def _detached(self, attachment: KeptAttachment) -> None:
        if self.attachment is attachment:
            self.attachment = None
