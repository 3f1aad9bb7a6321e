"""A real Git server over HTTPS, which is git's own `http-backend`, and a repository that tests change."""

import base64
import json
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from coordinator.clock import wall_time
from muster.trust.certificates import issue_server, make_authority

OWN = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "somebody",
    "GIT_AUTHOR_EMAIL": "somebody@example.org",
    "GIT_COMMITTER_NAME": "somebody",
    "GIT_COMMITTER_EMAIL": "somebody@example.org",
}


@dataclass(kw_only=True)
class GitServer:
    """One server with the repository `team/train.git`."""

    directory: Path
    port: int = 0
    user: str = ""
    """The only user that is let in, with the token; empty: everybody."""
    token: str = field(default="", repr=False)
    status: int = 0
    """What it answers instead; 0: what git says."""
    said: str = ""
    """What it then says in its answer."""
    lets_go: threading.Event = field(default_factory=threading.Event)
    """Set, unless whoever fetches is to wait for the answer."""
    asked: list[str] = field(default_factory=list)
    """The paths that were asked for."""
    authorizations: list[str] = field(default_factory=list)
    large: dict[str, bytes] = field(default_factory=dict)
    """Large files that it has, by the SHA-256 of what they should hold."""
    storage: "GitServer | None" = None
    """The server that large files are fetched from; None: this one."""

    @property
    def url(self) -> str:
        """Where the repository is."""
        return f"https://127.0.0.1:{self.port}/team/train.git"

    @property
    def work(self) -> Path:
        """The working tree from which it is filled."""
        return self.directory / "work"

    @property
    def bare(self) -> Path:
        """Where the repository lies."""
        return self.directory / "served" / "team" / "train.git"

    @property
    def authority(self) -> Path:
        """The certificate that clients are to believe."""
        return self.directory / "authority.pem"

    def git(self, *words: str) -> str:
        """Run git in the working tree."""
        done = subprocess.run(["git", *words], cwd=self.work, env=OWN, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def link(self, path: str, url: str, commit: str) -> None:
        """Have a commit of another repository at a path, as a submodule of the next commit."""
        self.git("config", "--file", ".gitmodules", f"submodule.{path}.path", path)
        self.git("config", "--file", ".gitmodules", f"submodule.{path}.url", url)
        self.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
        (self.work / path).mkdir(parents=True)

    def pointer(self, content: bytes) -> str:
        """Have a large file at the server: the small file that stands for it."""
        digest = sha256(content).hexdigest()
        (self.storage or self).large[digest] = content
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"

    def commit(self, files: dict[str, str], message: str = "more", branch: str = "main") -> str:
        """Have files with these contents in a new commit of a branch; its name."""
        for path, content in files.items():
            place = self.work / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", str(self.bare), f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def log_message(self, *args: object) -> None:
        del args

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, body: bytes) -> None:
        told, url = self.server.told, urlsplit(self.path)
        told.asked.append(url.path)
        shown = self.headers.get("Authorization", "")
        told.authorizations.append(shown)
        wanted = "Basic " + base64.b64encode(f"{told.user}:{told.token}".encode()).decode()
        if told.status:
            self._say(told.status, {"Location": "https://127.0.0.1:1/other.git"}, told.said.encode())
        elif told.user and shown != wanted:
            self._say(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
        else:
            if self.command == "POST":
                told.lets_go.wait()
            if url.path.endswith("/info/lfs/objects/batch"):
                self._say(200, {}, self._places(json.loads(body)))
            elif url.path.startswith("/large/"):
                content = told.large.get(url.path.removeprefix("/large/"))
                self._say(404 if content is None else 200, {}, content or b"")
            else:
                self._hand_on(url.path, url.query, body)

    def _places(self, question: dict[str, list[dict[str, str]]]) -> bytes:
        """Where large files are, as the batch API of Git LFS says it."""
        storage = self.server.told.storage or self.server.told
        found = [
            {**each, "actions": {"download": {"href": f"https://127.0.0.1:{storage.port}/large/{each['oid']}?s=1"}}}
            if each["oid"] in storage.large
            else {**each, "error": {"code": 404, "message": "not here"}}
            for each in question["objects"]
        ]
        return json.dumps({"transfer": "basic", "objects": found}).encode()

    def _hand_on(self, path: str, query: str, body: bytes) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.told.directory / "served"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, check=False, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self._say(int(headers.pop("Status", "200 OK").split()[0]), headers, content)

    def _say(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, told: GitServer) -> None:
        self.told = told
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address  # whoever was killed leaves without a word


@contextmanager
def git_server(directory: Path) -> Iterator[GitServer]:
    """Serve until the context ends; the branch `main` has `train.py` and `lib/words.txt`."""
    told = GitServer(directory=directory)
    told.lets_go.set()
    told.work.mkdir(parents=True)
    told.git("init", "--quiet", "--initial-branch=main")
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(told.bare)], env=OWN, check=True)
    told.commit({"train.py": "print('one')\n", "lib/words.txt": "one\n"}, "first")
    authority = make_authority(wall_time())
    shown = issue_server(authority, ["127.0.0.1"], wall_time())
    told.authority.write_bytes(authority.certificate)
    (directory / "server.pem").write_bytes(shown.certificate + shown.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem")
    server = _Server(told)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        told.lets_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
