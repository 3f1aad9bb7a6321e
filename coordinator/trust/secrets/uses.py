"""What roles say of secrets, spelled out when a job is accepted: keys by name, usual variables one by one."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from muster.domain.data.code import GitCode, is_server_of, read_git_url
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.secret import STORE_SECRETS, Secret, SecretKind, is_for
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.rules.job_values import ENV_NAME
from muster.domain.jobs.secret_use import MAX_USES, ONLY_KEY, SECRETS_DIRECTORY, SECRETS_DIRECTORY_VARIABLE, SecretUse

S3_VARIABLES: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "access-key-id",
    "AWS_SECRET_ACCESS_KEY": "secret-access-key",
    "AWS_SESSION_TOKEN": "session-token",
    "AWS_ENDPOINT_URL": "endpoint",
    "AWS_DEFAULT_REGION": "region",
    "AWS_REGION": "region",
}
"""What the SDKs and tools for S3 read; those whose key a secret lacks are left out."""

_HELPER = (
    '!f() {{ test "$1" = get && printf "username=%s\\npassword=%s\\n" "$(cat {0}/username)" "$(cat {0}/token)"; }}; f'
)
"""A credential helper for git: a shell function that answers from the files, so that no value is in a variable."""


def spelled_out(spec: JobSpec, known: Mapping[str, Secret]) -> JobSpec:
    """The job as it is accepted, by what is known of its project's secrets; raises InvalidJobError with all faults."""
    if not any(map(_names_secrets, spec.roles)):
        return spec
    works = [_Role(spec.project, known, role, f"roles[{place}]") for place, role in enumerate(spec.roles)]
    roles = tuple(work.spelled_out() for work in works)
    if problems := dict.fromkeys(problem for work in works for problem in work.problems):
        raise InvalidJobError("\n".join(problems))
    return replace(spec, roles=roles)


@dataclass(slots=True)
class _Role:
    """One role on its way, and what is wrong with it."""

    project: str
    known: Mapping[str, Secret]
    role: Role
    where: str
    problems: list[str] = field(default_factory=list)

    def spelled_out(self) -> Role:
        for each in self.role.inputs:
            for one in each.singly if each.secret else ():
                self._opens(f"{self.where}.inputs.{each.name}.secret", each.secret, one.url)
        if self.role.code is not None and self.role.code.git is not None and self.role.code.git.secret:
            self._opens_repository(self.role.code.git)
        if self.role.outputs.secret:
            self._opens(f"{self.where}.outputs.secret", self.role.outputs.secret, self.role.outputs.to)
        if self.role.checkpoint is not None and self.role.checkpoint.secret:
            self._opens(f"{self.where}.checkpoint.secret", self.role.checkpoint.secret, self.role.checkpoint.to)
        if len(self.role.secrets) > MAX_USES:
            self.problems.append(f"{self.where}.secrets: has {len(self.role.secrets)}; {MAX_USES} are the most")
            return self.role
        uses = tuple(self._use(place, use) for place, use in enumerate(self.role.secrets))
        self._refuse_twice("the secret", [use.secret for use in uses])
        self._refuse_twice("the directory", [use.directory.rstrip("/") for use in uses if use.directory])
        git = dict(self._git(uses))
        variables = [*self.role.env, *(variable for use in uses for variable in use.env), *git]
        self._refuse_twice("the variable", variables)
        return replace(self.role, env={**self.role.env, **git}, secrets=uses)

    def _opens(self, where: str, name: str, url: str) -> None:
        """Note what is wrong with a secret that is to open a store, or a server of files."""
        scheme = f"{url.partition('://')[0]}://"
        secret, kind = self.known.get(name), STORE_SECRETS.get(scheme, SecretKind.HTTP)
        if secret is None:
            shows = f"`muster secrets list --project {self.project}` shows those that it has"
            self.problems.append(f"{where}: project {self.project} has no secret {name!r}; {shows}")
        elif secret.kind is not kind:
            self.problems.append(
                f"{where}: the secret {name!r} is of kind {secret.kind}; {scheme} needs one of kind {kind}"
            )
        elif kind is SecretKind.HTTP and not is_for(secret.server, url):
            host = "/".join(url.split("/", 3)[:3])
            self.problems.append(f"{where}: the secret {name!r} is for {secret.server}, and is not shown to {host}")

    def _opens_repository(self, code: GitCode) -> None:
        """Note what is wrong with the secret that is to open the repository of the code."""
        where, name, url = f"{self.where}.code.secret", code.secret, read_git_url(code.url)
        secret = self.known.get(name)
        if secret is None or url is None:
            shows = f"`muster secrets list --project {self.project}` shows those that it has"
            self.problems.append(f"{where}: project {self.project} has no secret {name!r}; {shows}")
        elif secret.kind is not SecretKind.GIT:
            self.problems.append(
                f"{where}: the secret {name!r} is of kind {secret.kind}; code from git needs one of git"
            )
        elif url.is_ssh and not {"ssh-key", "known-hosts"} <= set(secret.keys):
            has = ", ".join(secret.keys)
            self.problems.append(f"{where}: ssh:// needs ssh-key and known-hosts; the secret {name!r} has {has}")
        elif not url.is_ssh and "token" not in secret.keys:
            has = ", ".join(secret.keys)
            self.problems.append(f"{where}: https:// needs server, username and token; the secret {name!r} has {has}")
        elif not url.is_ssh and not is_server_of(secret.server, url):
            said = f"the secret {name!r} is for {secret.server}, and is not shown to {url.host}"
            self.problems.append(f"{where}: {said}")

    def _use(self, place: int, use: SecretUse) -> SecretUse:
        where = f"{self.where}.secrets[{place}]"
        secret = self.known.get(use.secret)
        if secret is None:
            shows = f"`muster secrets list --project {self.project}` shows those that it has"
            self.problems.append(f"{where}.secret: project {self.project} has no secret {use.secret!r}; {shows}")
            return use
        env = {variable: self._key(f"{where}.env", secret, key) for variable, key in use.env.items()}
        if use.standard_env:
            env |= self._standard(f"{where}.env", secret)
        files = use.directory is None and (not env or (use.standard_env and secret.kind is SecretKind.GIT))
        directory = f"{SECRETS_DIRECTORY}/{use.secret}" if files else use.directory
        return replace(use, env=env, directory=directory, standard_env=False)

    def _key(self, where: str, secret: Secret, key: str) -> str:
        """The key that is meant."""
        if key == ONLY_KEY and len(secret.keys) == 1:
            return secret.keys[0]
        if key not in secret.keys:
            has = f"secret {secret.name!r} has the keys {', '.join(secret.keys)}"
            self.problems.append(
                f"{where}: {has}; say which one, as a map of VARIABLE: key"
                if key == ONLY_KEY
                else f"{where}: {has}, no {key!r}"
            )
        return key

    def _standard(self, where: str, secret: Secret) -> dict[str, str]:
        """Key by usual variable; those of git are no values, and come beside."""
        match secret.kind:
            case SecretKind.S3:
                return {variable: key for variable, key in S3_VARIABLES.items() if key in secret.keys}
            case SecretKind.GIT:
                return {}
            case SecretKind.GENERIC if all(re.fullmatch(ENV_NAME, key) for key in secret.keys):
                return {key: key for key in secret.keys}
            case _:
                has = f"secret {secret.name!r} of kind {secret.kind} has no usual variables"
                self.problems.append(f"{where}: {has}; name them, as a map of VARIABLE: key")
                return {}

    def _git(self, uses: tuple[SecretUse, ...]) -> Iterator[tuple[str, str]]:
        """Variables that let plain git read the files of the secrets."""
        asked = [use for use, said in zip(uses, self.role.secrets, strict=True) if said.standard_env]
        known = [(self.known[use.secret], _path(use)) for use in asked if use.secret in self.known]
        wanted = [(secret, path) for secret, path in known if secret.kind is SecretKind.GIT]
        if not wanted:
            return
        servers = [(secret.server, path) for secret, path in wanted if "token" in secret.keys]
        for place, (server, path) in enumerate(servers):
            url = server if "://" in server else f"https://{server}"
            yield f"GIT_CONFIG_KEY_{place}", f"credential.{url}.helper"
            yield f"GIT_CONFIG_VALUE_{place}", _HELPER.format(path)
        if servers:
            yield "GIT_CONFIG_COUNT", str(len(servers))
            yield "GIT_TERMINAL_PROMPT", "0"
        for secret, path in wanted:
            if "ssh-key" in secret.keys:
                hosts = f" -o UserKnownHostsFile={path}/known-hosts" if "known-hosts" in secret.keys else ""
                yield "GIT_SSH_COMMAND", f"ssh -i {path}/ssh-key -o IdentitiesOnly=yes -o BatchMode=yes{hosts}"

    def _refuse_twice(self, what: str, values: list[str]) -> None:
        for value, times in Counter(values).items():
            if times > 1:
                self.problems.append(f"{self.where}.secrets: {what} {value} is there twice")


def _names_secrets(role: Role) -> bool:
    opens_data = bool(role.outputs.secret) or any(each.secret for each in role.inputs)
    saves = role.checkpoint is not None and bool(role.checkpoint.secret)
    return bool(role.secrets) or opens_data or saves or (role.code is not None and bool(role.code.secret))


def _path(use: SecretUse) -> str:
    """The directory of a secret as a shell finds it, also where a plain process has it elsewhere."""
    if use.directory == f"{SECRETS_DIRECTORY}/{use.secret}":
        return f'"${{{SECRETS_DIRECTORY_VARIABLE}:-{SECRETS_DIRECTORY}}}"/{use.secret}'
    return shlex.quote(use.directory or "")
