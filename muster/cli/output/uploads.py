"""What is told of folders that were sent."""

from muster.domain.data.upload import UploadedFolder
from muster.domain.quantity import counted, size_text


def upload_sentence(sent: UploadedFolder) -> str:
    """What a folder holds, and how much of it was sent."""
    return f"code {counted(sent.files, 'file')}, {size_text(sent.bytes)}: {sent.new} new, {size_text(sent.sent)} sent"
