"""Jobs on their way in: what is asked for, how many at once, and what is checked before the engine hears of it."""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coordinator.core.events import JobSubmitted
from coordinator.core.requests.jobs import REFUSED
from coordinator.engine.engine import Engine
from coordinator.service.data.sources import with_sources
from coordinator.service.data.trees import DepotSide, missing_trees, tree_is_missing, without_fetched_code
from coordinator.service.operations import Operation
from coordinator.trust.caller import Caller
from coordinator.trust.permissions import require_open
from coordinator.trust.presets import Presets
from coordinator.trust.secrets.secrets import Secrets
from coordinator.trust.secrets.uses import spelled_out
from muster.domain.errors import ExhaustedError, InvalidJobError, MusterError, UnknownNameError
from muster.domain.fault import Fault
from muster.domain.fleet.access import Permissions
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.policies.preset import Preset
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.queueing.used_preset import UsedPreset
from muster.domain.jobs.rules.filling_in import filled_in
from muster.domain.jobs.rules.job_rules import refuse_faults
from muster.jobfile.policies import refuse_broken_policies
from muster.jobfile.presets import merged_job, named_in_document

if TYPE_CHECKING:  # models of job files only where there are presets
    from muster.jobfile.presets.joining import MergedJob
    from muster.jobfile.presets.using import NamedPreset

MAX_SUBMITS = 4000
"""Most submits that are being taken in at once; bounds memory however many clients there are."""

_AT_A_TIME = 50
"""Jobs of one call that are checked before others have their turn."""

_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letters that look like digits."""
_ID_LETTERS = _ID_ALPHABET[10:]
_ID_PLACES = range(0, 7 * 5, 5)
"""Positions of the bits of each further character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job that somebody asks for."""

    spec: JobSpec
    key: str = ""
    """The same key of the same caller answers with the same job; empty: each submission is another job."""
    queue_anyway: bool = False
    """Whether the job is also accepted if no node that is there could ever run it."""
    dry_run: bool = False
    """Whether it is only tried out."""
    document: str = ""
    """The values of a job file that names presets, which make the job; empty: the spec is all of it."""
    made: "MergedJob | None" = None
    """What the document and its presets have made."""

    @property
    def presets(self) -> tuple[UsedPreset, ...]:
        """The versions of presets with which it was made."""
        return () if self.made is None else self.made.used


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableSubmission:
    """One of many submissions that its transport could not read; it is refused like one that breaks a rule."""

    name: str
    error: MusterError


class SubmitDesk:
    """Checks submissions, and bounds how many are being taken in."""

    def __init__(
        self,
        permissions_of: Callable[[str], Permissions],
        secrets: Secrets,
        depot: DepotSide | None = None,
        policies_of: Callable[[str], Sequence[JobPolicy]] = lambda _: (),
        presets: Presets | None = None,
    ) -> None:
        self._permissions_of = permissions_of
        """What a project is opened for."""
        self._policies_of = policies_of
        """The policies that jobs of a project keep."""
        self._presets = presets
        """The presets that jobs may name; None: there are none."""
        self._secrets = secrets
        self._depot = depot
        self._submits = 0
        """How many are being taken in."""

    @contextmanager
    def taking_in(self, jobs: int) -> Iterator[None]:
        """Count so many submissions while they are taken in; raises ExhaustedError where that is too many."""
        if self._submits + jobs > MAX_SUBMITS:
            raise ExhaustedError(f"{self._submits} jobs are being taken in at this moment; try again in a few seconds")
        self._submits += jobs
        try:
            yield
        finally:
            self._submits -= jobs

    @staticmethod
    def settled(caller: Caller, submission: Submission) -> Submission:
        """The submission with the project that the caller means, where it names none."""
        if submission.spec.project:
            return submission
        return replace(submission, spec=replace(submission.spec, project=caller.meant_project()))

    async def merged(self, submission: Submission) -> Submission:
        """The submission as its document and the presets that it names make it; any other one as it is.

        Raises InvalidJobError with all that is wrong, by keys of the job file, or UnknownNameError.
        """
        if not submission.document:
            return submission
        project = submission.spec.project
        named = await asyncio.to_thread(named_in_document, submission.document)
        found = [await self._preset(project, each) for each in named]
        made = await asyncio.to_thread(merged_job, submission.document, project, found)
        return replace(submission, spec=made.spec, made=made)

    async def _preset(self, project: str, named: "NamedPreset") -> Preset:
        assert self._presets is not None, "no presets are kept"
        try:
            return await self._presets.version(self._presets.meant(project, named.kind, named.name), named.version)
        except UnknownNameError as error:
            fault = Fault(path=named.place, message=str(error))
            raise InvalidJobError.of(str(fault), [fault]) from None

    def checked(self, caller: Caller, submission: Submission) -> JobSubmitted:
        """The event for a submission, with what it says of secrets in full.

        Raises an error for what breaks a rule or a policy, names a secret that its project lacks, or wants what the
        project is not opened for.
        """
        try:
            return self._checked(caller, submission)
        except InvalidJobError as error:
            raise error if submission.made is None else submission.made.reworded(error) from None

    def _checked(self, caller: Caller, submission: Submission) -> JobSubmitted:
        spec = refuse_faults(filled_in(submission.spec))
        said = None if submission.made is None else submission.made.of_file
        refuse_broken_policies(spec, self._policies_of(spec.project), said=said)
        spec = without_fetched_code(spelled_out(spec, self._secrets.of_project(spec.project)))
        require_open(spec, self._permissions_of(spec.project))
        return JobSubmitted(
            job=new_job_id(),
            spec=spec,
            owner=caller.name,
            queue_anyway=submission.queue_anyway,
            dry_run=submission.dry_run,
            # No key is answered with the job of somebody else who happened to choose, or to learn, the same.
            idempotency_key=f"{caller.name}:{submission.key}" if submission.key else "",
            presets=submission.presets,
        )

    async def with_data(self, engine: Engine, caller: Caller, submitted: JobSubmitted) -> JobSubmitted:
        """The submission with the outputs of others that it takes, once the depot keeps what it names.

        Raises an error where there are none, or where the depot does not have something.
        """
        taken = await with_sources(engine, caller, submitted)
        missing = await missing_trees(self._depot, (taken.spec,))
        if error := tree_is_missing(taken.spec, missing):
            raise error
        return taken

    async def checked_all(
        self, engine: Engine, operation: Operation, submissions: Iterable[Submission | UnreadableSubmission]
    ) -> tuple[list[str], dict[int, JobSubmitted], dict[int, MusterError]]:
        """Names of the jobs, then what passes and what does not, by place; others go on meanwhile.

        After very many refusals nothing more is looked at. Raises an error for a project in which the caller may not
        submit, whatever the other jobs are.
        """
        names, taken, refused = list[str](), dict[int, JobSubmitted](), dict[int, MusterError]()
        for place, each in enumerate(submissions):
            if isinstance(each, UnreadableSubmission):
                names.append(each.name)
                refused[place] = each.error
            else:
                settled = self.settled(operation.caller, each)
                names.append(settled.spec.name)
                operation.require_in(settled.spec.project)
                try:
                    event = self.checked(operation.caller, await self.merged(settled))
                    taken[place] = await with_sources(engine, operation.caller, event, names[:-1])
                except MusterError as error:
                    refused[place] = error
            if len(refused) == REFUSED:
                break
            if place % _AT_A_TIME == _AT_A_TIME - 1:
                await asyncio.sleep(0)
        missing = await missing_trees(self._depot, (each.spec for each in taken.values()))
        for place, event in list(taken.items()) if missing else ():
            if (lacks := tree_is_missing(event.spec, missing)) is not None:
                refused[place] = lacks
                del taken[place]
        return names, taken, refused


def new_job_id() -> JobId:
    """Eight random characters, the first a letter: safe as a name everywhere, and unique among a trillion."""
    number, letter = divmod(secrets.randbits(128), len(_ID_LETTERS))  # so many bits that each letter is as likely
    return JobId(_ID_LETTERS[letter] + "".join(_ID_ALPHABET[number >> place & 31] for place in _ID_PLACES))
