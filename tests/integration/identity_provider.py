"""A real identity provider (oidc-provider from npm, tests/oidc_provider), and people with browsers."""

import json
import re
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from tests.integration.npm_packages import installed, node

SOURCE = Path(__file__).parents[1] / "oidc_provider"

CONSOLE = "https://console.example"
"""The console to which the provider sends people back."""
CLIENT_ID, CLIENT_SECRET = "muster", "a secret of the client: 50% & more"
PEOPLE: Mapping[str, Mapping[str, Any]] = {
    "p-ada": {"preferred_username": "Ada", "email": "ada@example.org", "email_verified": True, "groups": ["vision"]},
    "p-grace": {"preferred_username": "grace", "groups": ["vision", "platform/admins"]},
    "p-mallory": {"preferred_username": "admin", "groups": ["vision"]},
    "p-nobody": {"preferred_username": "nobody", "groups": []},
}
"""People by subject."""


@dataclass(frozen=True, kw_only=True)
class IdentityProvider:
    """One that answers."""

    issuer: str
    ca_file: Path | None = None

    def confirm(self, subject: str, url: str) -> None:
        """Somebody opens the URL of a login, logs in there and confirms the code."""
        _Browser(subject, self.ca_file).decide(url, confirm="yes")

    def refuse(self, subject: str, url: str) -> None:
        """Somebody opens the URL of a login and wants none of it."""
        _Browser(subject, self.ca_file).decide(url, abort="yes")

    def sign_in(self, subject: str, url: str) -> str:
        """Where the browser of somebody is sent back to, who opens the URL of a login and logs in there."""
        return _Browser(subject, self.ca_file).sent_back(url)

    def change(self, subject: str, **claims: object) -> None:
        """Say other things of a person from now on."""
        self._control("person", {"subject": subject, "claims": {**PEOPLE[subject], **claims}})

    def rotate(self) -> None:
        """Sign with new keys from now on; the old ones are not published any more."""
        self._control("rotate", {})

    def _control(self, what: str, said: object) -> None:
        _Browser("nobody", self.ca_file).open(f"{self.issuer}/control/{what}", json.dumps(said).encode())


@contextmanager
def identity_provider(
    certificate: Path | None = None, key: Path | None = None, ca_file: Path | None = None, **wish: object
) -> Iterator[IdentityProvider]:
    """Serve until the context ends, with TLS if there is a certificate; skips the test where there is no Node.js."""
    tls = {"certificate": str(certificate), "key": str(key)} if certificate else {}
    said = {"client_secret": CLIENT_SECRET, "people": PEOPLE, **tls, **wish}
    command = [node(), str(installed(SOURCE) / "server.mjs"), json.dumps(said)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            assert line, "the identity provider did not start; run tests/oidc_provider/server.mjs by hand"
            yield IdentityProvider(issuer=json.loads(line)["issuer"], ca_file=ca_file)
        finally:
            server.stdin.close()  # which ends it


class _Browser:
    """What a person uses: keeps cookies, follows redirects, fills forms in."""

    def __init__(self, subject: str, ca_file: Path | None) -> None:
        context = ssl.create_default_context(cafile=ca_file)
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()), HTTPSHandler(context=context), _Redirects())
        self._opener.addheaders = [("x-person", subject)]

    def open(self, url: str, body: bytes | None = None) -> str:
        """The page."""
        with self._opener.open(Request(url, body), timeout=10) as answer:
            page: bytes = answer.read()
        return page.decode()

    def sent_back(self, url: str) -> str:
        """Follow a login from page to page, up to the one of the console."""
        try:
            page = self.open(url)
        except _SentBackError as sent:
            return sent.url
        raise AssertionError(page)

    def decide(self, url: str, **button: str) -> None:
        """Open the page of a login, send the code, and press a button."""
        page = self.open(url)
        for pressed in ({}, button):
            form = dict(re.findall(r'name="(xsrf|user_code)" value="([^"]*)"', page))
            action = re.search(r'<form[^>]* action="([^"]+)"', page)
            assert action is not None, page
            page = self.open(action[1], urlencode({**form, **pressed}).encode())
        assert "Sign-in" in page, page


class _SentBackError(Exception):
    """The provider leads to the console."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class _Redirects(HTTPRedirectHandler):
    """Follows what leads on at the provider."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if newurl.startswith(CONSOLE):
            raise _SentBackError(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
