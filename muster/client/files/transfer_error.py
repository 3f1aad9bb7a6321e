"""What goes wrong with files of executions."""

from muster.domain.errors import MusterError


class FileTransferError(MusterError):
    """Files cannot be copied as asked; the sentence names the file and says why."""


class FilesLostError(FileTransferError):
    """The other side serves no files any more, or nothing that could be understood."""


class RemoteFileError(FileTransferError):
    """The other side has refused something about one file."""

    def __init__(self, path: str, why: str, *, missing: bool = False) -> None:
        super().__init__(f"{path}: {why}")
        self.why = why
        self.missing = missing
        """Whether there is nothing at the path."""
