"""The calls by which people log in, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.trust.logins import FinishedLogin, LoginOperations, ProviderAnswer
from coordinator.service.trust.sessions import SessionOperations
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1 import trust_pb2_grpc
from muster.wire import checks, trust


class LoginService(trust_pb2_grpc.LoginServiceServicer):
    """Translates calls about logins."""

    def __init__(self, logins: LoginOperations, sessions: SessionOperations) -> None:
        self._logins = logins
        self._sessions = sessions

    @translated
    async def Start(self, request: pb.StartLoginRequest, context: Context) -> pb.StartLoginResponse:
        """Begin a login that waits for its person."""
        started = await self._logins.start(caller())
        login = started.login
        return pb.StartLoginResponse(
            verification_uri=login.verification_uri,
            verification_uri_complete=login.verification_uri_complete,
            user_code=login.user_code,
            login=started.shown,
            interval=checks.duration(login.interval),
            expires_at=checks.timestamp(login.expires_at),
        )

    @translated
    async def Finish(self, request: pb.FinishLoginRequest, context: Context) -> pb.FinishLoginResponse:
        """The token of a person who has confirmed, or how long to wait before asking again."""
        found = await self._logins.finish(caller(), checks.text(request.login, "FinishLoginRequest.login"))
        if not isinstance(found, FinishedLogin):
            return pb.FinishLoginResponse(interval=checks.duration(found))
        return pb.FinishLoginResponse(secret=found.secret, token=trust.token_to_wire(found.token))

    @translated
    async def Hand(self, request: pb.HandRequest, context: Context) -> pb.HandResponse:
        """A code with which a browser begins a session of the caller."""
        made = await self._sessions.hand(caller())
        return pb.HandResponse(code=made.code, expires_at=checks.timestamp(made.expires_at), console=made.console)

    @translated
    async def Redeem(self, request: pb.RedeemRequest, context: Context) -> pb.SignedIn:
        """The session of whoever was handed a code."""
        code = checks.text(request.code, "RedeemRequest.code")
        signed_in = await self._sessions.redeem(caller(), code, request.browser)
        return pb.SignedIn(secret=signed_in.token, own=signed_in.own)

    @translated
    async def Begin(self, request: pb.BeginLoginRequest, context: Context) -> pb.BeginLoginResponse:
        """Where a person logs in whose browser is at a console."""
        begun = await self._logins.begin(caller(), request.redirect_uri, request.browser)
        return pb.BeginLoginResponse(url=begun.url, login=begun.secret, expires_at=checks.timestamp(begun.expires_at))

    @translated
    async def Complete(self, request: pb.CompleteLoginRequest, context: Context) -> pb.SignedIn:
        """The session of a person who has come back from the provider."""
        answer = ProviderAnswer(
            login=checks.text(request.login, "CompleteLoginRequest.login"), state=request.state, code=request.code
        )
        signed_in = await self._logins.complete(caller(), answer, request.browser)
        return pb.SignedIn(secret=signed_in.token, own=signed_in.own)
