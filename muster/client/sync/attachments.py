"""The synchronous form of `muster.client.services.attachments`, made from it by `make sync`; change that one."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from muster.client.attachments.finished import FinishedCommand
from muster.client.attachments.sync_forms import SyncAttachment, SyncPortForward
from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.attachments import AttachmentsClient
from muster.domain.attachments.frame import KeptShell
from muster.domain.attachments.request import HERE, AttachmentRequest, OpenedAttachment

if TYPE_CHECKING:
    from muster.client.files.copying import TransferProgress, TransferResult
    from muster.client.services.copies import WrittenPlace


class SyncAttachmentsClient:
    """Attachments to running executions, reached as `client.attachments`."""

    def __init__(self, own: AttachmentsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def open(
        self,
        job: str,
        request: AttachmentRequest,
        *,
        rank: int | None = None,
        on_break: Callable[[str], None] = lambda _: None,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> SyncAttachment:
        """Attach to a running execution; without `rank` to the lowest that runs.

        The attachment outlives breaks of the connection. `on_break` is told why there is none, and an empty text once
        there is one again. `on_notice` is told what concerns all who are attached: that the job is about to be stopped
        because nobody uses it. Raises ConflictError for an execution that does not run, and PermissionDeniedError.

        >>> with client.attachments.open("train", CommandRequest(words=("nvidia-smi",))) as attachment:
        ...     print(attachment.receive())
        """
        return SyncAttachment(
            self._loop.run(self._own.open(job, request, rank=rank, on_break=on_break, on_notice=on_notice)), self._loop
        )

    def run(
        self,
        job: str,
        words: Sequence[str],
        *,
        rank: int | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "",
        given: bytes = b"",
    ) -> FinishedCommand:
        """Run a command in a running execution to its end; without `rank` in the lowest that runs.

        `given` is what it reads. Of very much output ExhaustedError is raised; `open` has no such limit.

        >>> done = client.attachments.run("train", ["nvidia-smi", "-L"], rank=2)
        >>> print(done.code, done.output.decode())
        """
        return self._loop.run(self._own.run(job, words, rank=rank, env=env, workdir=workdir, given=given))

    def forward(
        self,
        job: str,
        port: int,
        *,
        rank: int | None = None,
        host: str = HERE,
        at: str = f"{HERE}:0",
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> SyncPortForward:
        """Have a port of this machine lead to one of a running execution; `at` is HOST:PORT here, and port 0 takes any.

        `host` is where the execution connects to. A new connection waits for up to 30 s for a coordinator, a relay or a
        node that is away: a program that is restarted costs nobody who uses it an error. `on_trouble` is told why a
        connection came to nothing, and what `on_notice` of `open` is told. Close what is given, or use it with
        `async with`.

        >>> with client.attachments.forward("dev", 8888) as forward:
        ...     print(f"http://{forward.address}")
        """
        return SyncPortForward(
            self._loop.run(self._own.forward(job, port, rank=rank, host=host, at=at, on_trouble=on_trouble)), self._loop
        )

    def copy(
        self,
        sources: "WrittenPlace | Sequence[WrittenPlace]",
        target: "WrittenPlace",
        *,
        times: bool = True,
        on_progress: "Callable[[TransferProgress], None]" = lambda _: None,
    ) -> "TransferResult":
        """Copy files and directories to a running execution or from it, as `muster cp` does.

        `JOB:PATH` and `JOB:RANK:PATH` are in an execution; other texts, and every `Path`, are on this machine. Each
        file is compared with what the other side holds, and takes its place when it is whole. What could not be read
        is in `failed` of the answer, and hinders no other file. `on_progress` is told how far it is; `times` has files
        keep theirs. Raises FileTransferError, ConflictError where a target would be lost, and OSError for files here.

        >>> done = client.attachments.copy("dev:results", "here/", on_progress=print)
        >>> print(done.files, done.size, [each.path for each in done.failed])
        """
        return self._loop.run(self._own.copy(sources, target, times=times, on_progress=on_progress))

    def kept(self, job: str, *, rank: int | None = None) -> tuple[KeptShell, ...]:
        """The kept shells of a running execution, by name; without `rank` of the lowest that runs.

        >>> names = [each.name for each in client.attachments.kept("dev")]
        """
        return self._loop.run(self._own.kept(job, rank=rank))

    def end_kept(self, job: str, name: str, *, rank: int | None = None) -> None:
        """Have a kept shell of a running execution hang up; without `rank` of the lowest that runs.

        Raises ConflictError where there is none of that name.

        >>> client.attachments.end_kept("dev", "work")
        """
        self._loop.run(self._own.end_kept(job, name, rank=rank))

    def list(self, job: str = "") -> tuple[OpenedAttachment, ...]:
        """Attachments that are open, the oldest first: of one job, or of all that one may look at.

        >>> accounts = {each.account for each in client.attachments.list("train")}
        """
        return self._loop.run(self._own.list(job))

    def close(self, attachment: str) -> None:
        """End an attachment of one's own, or as an operator any in the project.

        >>> client.attachments.close("a7k2")
        """
        self._loop.run(self._own.close(attachment))
