"""What a test holds: its case at the mock engines, and ways to send requests that belong to it."""

import itertools
import json
import time

from targets import Target
from upstream import Case, Upstream
from wire import Answer, Connection, fields_text

tokens = itertools.count(1)
ATTEMPTS = 5  # at what takes no longer than a moment: a machine short of CPU may spoil that by itself, but not each time


def until(holds, timeout_s: float = 30):
    """The first true value of holds()."""
    end = time.monotonic() + timeout_s
    while not (value := holds()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return value


class Client:
    def __init__(self, target: Target, upstream: Upstream):
        self.url, self.target, self.upstream = target.url, target, upstream
        self.case = Case(f"case-{next(tokens)}")
        upstream.cases[self.case.token] = self.case
        self.opened: list[Connection] = []

    def connect(self, **options) -> Connection:
        self.opened.append(Connection(self.url, **options))
        return self.opened[-1]

    def head(self, method: str = "POST", path: str = "/v1/chat/completions", version: str = "HTTP/1.1",
             fields: list[tuple[str, str]] | dict | None = None, host: str | None = "router") -> bytes:
        """A request's head with this case's mark; framing fields are the test's."""
        lines = [("Host", host)] if host is not None else []
        return f"{method} {path} {version}\r\n".encode() + fields_text(lines + [("x-case", self.case.token)]) + \
            fields_text(fields or []) + b"\r\n"

    def body(self, model: str = "m", **members) -> bytes:
        return json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}], **members}).encode()

    def post(self, body: bytes | None = None, fields: dict | list | None = None, path: str = "/v1/chat/completions",
             version: str = "HTTP/1.1") -> bytes:
        """A whole request with a Content-Length."""
        body = self.body() if body is None else body
        pairs = list(fields.items()) if isinstance(fields, dict) else list(fields or [])
        return self.head("POST", path, version, [("Content-Type", "application/json"), *pairs,
                                                 ("Content-Length", str(len(body)))]) + body

    def ask(self, request: bytes | None = None, to: str = "POST") -> Answer:
        """Sends it on a connection of its own and reads the whole answer."""
        with self.connect() as connection:
            connection.send(self.post() if request is None else request)
            return connection.answer(to)

    def stream(self) -> bytes:
        return self.post(self.body(stream=True))

    def still_serves(self) -> bool:
        other = Client(self.target, self.upstream)
        try:
            return other.ask().status == 200
        finally:
            other.close()

    def close(self) -> None:
        for connection in self.opened:
            connection.close()
        self.upstream.cases.pop(self.case.token, None)
