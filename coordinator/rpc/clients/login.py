"""How people log in whom the identity provider knows: what a stranger may ask, and what becomes of him."""

from dataclasses import replace

from coordinator.clock import wall_time
from coordinator.logins.desk import LoginDesk
from coordinator.logins.person import Person, account_of, grants_of, known_as, no_access
from coordinator.rpc.callers import Context, entry
from coordinator.rpc.refusals import translated
from coordinator.trust.audit.log import AuditLog, shortened
from coordinator.trust.places import place_of
from coordinator.trust.registry import Registry
from muster.domain.errors import MusterError, UnknownNameError
from muster.domain.fleet.access import Account, AuditEntry, IssuedToken
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1 import trust_pb2_grpc
from muster.trust.tokens import new_api_token
from muster.wire import checks, trust

LOGIN = "login"
"""The note on tokens that were made by one."""

_START = "/muster.rpc.v1.LoginService/Start"
_FINISH = "/muster.rpc.v1.LoginService/Finish"


class LoginService(trust_pb2_grpc.LoginServiceServicer):
    """Lets people in on the word of the identity provider."""

    def __init__(self, registry: Registry, audit: AuditLog, desk: LoginDesk | None) -> None:
        self._registry = registry
        self._audit = audit
        self._given = desk

    @translated
    async def Start(self, request: pb.StartLoginRequest, context: Context) -> pb.StartLoginResponse:  # noqa: ARG002, N802
        """A login that waits for its person."""
        desk = self._desk()
        try:
            shown, login = await desk.start(place_of(str(context.peer())), wall_time())
        except MusterError as error:
            self._refused(context, _START, "", error)
            raise
        return pb.StartLoginResponse(
            verification_uri=login.verification_uri,
            verification_uri_complete=login.verification_uri_complete,
            user_code=login.user_code,
            login=shown,
            interval=checks.duration(login.interval),
            expires_at=checks.timestamp(login.expires_at),
        )

    @translated
    async def Finish(self, request: pb.FinishLoginRequest, context: Context) -> pb.FinishLoginResponse:  # noqa: N802
        """The token of a person who has confirmed."""
        desk, target = self._desk(), ""
        try:
            found = await desk.finish(checks.text(request.login, "FinishLoginRequest.login"), wall_time())
            if not isinstance(found, Person):
                return pb.FinishLoginResponse(interval=checks.duration(found))
            target = f"{found.name} ({found.identity})"
            return await self._let_in(found, desk, context)
        except MusterError as error:
            self._refused(context, _FINISH, target, error)
            raise

    async def _let_in(self, person: Person, desk: LoginDesk, context: Context) -> pb.FinishLoginResponse:
        now, secret, settings, registry = wall_time(), new_api_token(), desk.settings, self._registry
        grants = grants_of(person.groups, settings.grants, registry.projects)
        if not grants:
            await self._shut_out(person, context)
            raise no_access(person)
        token = IssuedToken(id=secret.id, account="", note=LOGIN, created_at=now, expires_at=now + settings.ttl)

        def decided() -> Account:
            return account_of(person, grants, registry.accounts, now)

        def done(account: Account) -> AuditEntry:
            has = ", ".join(f"{access} for {project}" for project, access in sorted(account.grants.items()))
            how = f"ok, token {token.id} of {person.identity}: {has}"
            return shortened(replace(entry(context, _FINISH, account.name, how, now), who=account.name))

        issued = await registry.log_in(decided, secret, token, done)
        return pb.FinishLoginResponse(secret=str(secret), token=trust.token_to_wire(issued))

    async def _shut_out(self, person: Person, context: Context) -> None:
        """Who has left all of his groups must not work on with what an earlier login gave him."""
        account = known_as(person, self._registry.accounts)
        if account is not None and account.grants:
            left = entry(context, _FINISH, account.name, f"no access any more: {person.identity}", wall_time())
            await self._registry.take_grants(account.name, shortened(left))

    def _desk(self) -> LoginDesk:
        if self._given is None:
            raise UnknownNameError(
                "this coordinator knows no identity provider; log in with a token: --token-file FILE, or MUSTER_TOKEN"
            )
        return self._given

    def _refused(self, context: Context, method: str, target: str, error: MusterError) -> None:
        self._audit.note_refusal(entry(context, method, target, str(error), wall_time()))
