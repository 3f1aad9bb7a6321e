"""A real server that speaks S3, on a loopback address, and what a test puts there."""

import http.client
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlencode
from xml.etree import ElementTree as ET

from moto.server import ThreadedMotoServer

BUCKET = "acme"
ANYBODY = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=x"


class ObjectStore:
    """One server with the bucket `acme`."""

    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)
        self.endpoint = f"http://{host}:{port}"

    def put(self, key: str, content: bytes = b"", bucket: str = BUCKET) -> None:
        """Have an object."""
        self.ask("PUT", f"/{bucket}/{quote(key)}", content)

    def make_bucket(self, bucket: str) -> None:
        """Have a bucket."""
        self.ask("PUT", f"/{bucket}")

    def get(self, key: str, bucket: str = BUCKET) -> bytes:
        """What an object holds."""
        return self.ask("GET", f"/{bucket}/{quote(key)}")

    def objects(self) -> set[str]:
        """All objects of the bucket."""
        listed = ET.fromstring(self.ask("GET", f"/{BUCKET}?list-type=2"))
        return {each.text or "" for each in listed.iterfind(".//{*}Key")}

    def remove(self, key: str) -> None:
        """Have an object no more."""
        self.ask("DELETE", f"/{BUCKET}/{quote(key)}")

    def shut(self) -> tuple[str, str]:
        """Let nobody in any more but an account that may look at everything; its key and what proves it."""
        form = {"Version": "2010-05-08", "UserName": "robot"}
        allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        self._iam(Action="CreateUser", **form)
        self._iam(Action="PutUserPolicy", PolicyName="all", PolicyDocument=policy, **form)
        made = ET.fromstring(self._iam(Action="CreateAccessKey", **form))
        key, proof = (made.findtext(f".//{{*}}{name}") for name in ("AccessKeyId", "SecretAccessKey"))
        assert key is not None
        assert proof is not None
        self.ask("POST", "/moto-api/reset-auth", b"0")
        return key, proof

    def _iam(self, **form: str) -> bytes:
        headers = {"Authorization": ANYBODY.format("iam"), "Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", "/", urlencode(form).encode(), headers)

    def ask(self, verb: str, path: str, content: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
        """What the server answers to a question, as long as it believes anybody."""
        connection = http.client.HTTPConnection(*self.address, timeout=20)
        try:
            more = {"Authorization": ANYBODY.format("s3"), **(headers or {})}
            connection.request(verb, path, content, {"Content-Length": str(len(content)), **more})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status < 300, (verb, path, answer.status, body)
            return body
        finally:
            connection.close()


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A server that everybody may ask, with one bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        store = ObjectStore(*server.get_host_and_port())
        store.ask("POST", "/moto-api/reset")
        store.ask("POST", "/moto-api/reset-auth", b"inf")
        store.make_bucket(BUCKET)
        yield store
    finally:
        server.stop()
