"""An engine under the test's control: each case scripts what it answers, byte by byte, and sees what it was sent.

A case is recognised by the request field `x-case`, which every router passes on. Requests without one are kept too: there
should be none, or something was smuggled.
"""

import contextlib
import itertools
import queue
import socket
import struct
import threading
import time

from wire import Head, parse_head

OK_BODY = b'{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},' \
          b'"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}'
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def json_answer(body: bytes = OK_BODY, status: str = "200 OK", *lines: str) -> bytes:
    extra = "".join(line + "\r\n" for line in lines)
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


LAST_CHUNK = b"0\r\n\r\n"


class Exchange:
    """One request as it arrived, and the connection to answer it on."""

    def __init__(self, engine: "Engine", peer: socket.socket, number: int):
        self.engine, self.peer, self.connection = engine, peer, number
        self.head = Head("", [])
        self.body = b""
        self.keep = True            # the connection goes on to the next request after the script

    @property
    def method(self) -> str:
        return self.head.start.split(" ")[0]

    @property
    def target(self) -> str:
        return self.head.start.split(" ")[1]

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.peer.sendall(part)

    def close(self) -> None:
        self.keep = False
        with contextlib.suppress(OSError):
            self.peer.shutdown(socket.SHUT_RDWR)
        self.peer.close()

    def reset(self) -> None:
        self.keep = False
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peer.close()

    def closed_after(self, limit_s: float = 30) -> float | None:
        """When (time.monotonic()) the router closed this connection; None if it did not within the limit."""
        self.keep = False
        self.peer.settimeout(limit_s)
        try:
            while self.peer.recv(1 << 16):
                pass
        except TimeoutError:
            return None
        except OSError:
            pass
        return time.monotonic()


class Engine:
    """Listens on a port of 127.0.0.1; each connection has a thread."""

    def __init__(self, upstream: "Upstream", name: str, port: int = 0):
        self.upstream, self.name = upstream, name
        self.listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.numbers = itertools.count()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(peer, next(self.numbers)), daemon=True).start()

    def _serve(self, peer: socket.socket, number: int) -> None:
        unread = b""
        try:
            while True:
                exchange = Exchange(self, peer, number)
                unread = self._read(exchange, unread)
                self.upstream.serve(exchange)
                if not exchange.keep:
                    return
        except (OSError, EOFError):
            pass
        finally:
            peer.close()

    def _read(self, exchange: Exchange, unread: bytes) -> bytes:
        def more() -> bytes:
            got = exchange.peer.recv(1 << 18)
            if not got:
                raise EOFError
            return got
        while b"\r\n\r\n" not in unread:
            unread += more()
        head, unread = unread.split(b"\r\n\r\n", 1)
        exchange.head = parse_head(head)
        if self.upstream.early(exchange):
            return unread
        if exchange.head.get("expect").lower() == "100-continue":
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if exchange.head.get("transfer-encoding") == "chunked":
            exchange.body, unread = read_chunks(unread, more)
            return unread
        length = int(exchange.head.get("content-length", "0"))
        parts, have = [unread], len(unread)
        while have < length:
            parts.append(more())
            have += len(parts[-1])
        whole = b"".join(parts)
        exchange.body = whole[:length]
        return whole[length:]


def read_chunks(unread: bytes, more) -> tuple[bytes, bytes]:
    body = []
    while True:
        while b"\r\n" not in unread:
            unread += more()
        line, unread = unread.split(b"\r\n", 1)
        size = int(line, 16)
        while len(unread) < size + 2:
            unread += more()
        body.append(unread[:size])
        unread = unread[size + 2:]
        if size == 0:
            return b"".join(body), unread


class Case:
    """What one test scripts and sees."""

    @staticmethod
    def perform(script, exchange: Exchange) -> None:
        exchange.send(script) if isinstance(script, bytes) else script(exchange)

    def __init__(self, token: str):
        self.token = token
        self.scripts: list = []         # one per attempt; the last one repeats
        self.early = None               # answers after the head alone, before the body was read
        self.arrived: queue.Queue[Exchange] = queue.Queue()
        self.attempts = 0

    def answers(self, *scripts) -> "Case":
        """Each script is bytes to send, or a function of the Exchange."""
        self.scripts = list(scripts)
        return self

    def request(self, timeout_s: float = 30) -> Exchange:
        """The next request that reached an engine."""
        try:
            return self.arrived.get(timeout=timeout_s)
        except queue.Empty:
            raise AssertionError("no request reached an engine") from None

    def nothing_arrived(self) -> bool:
        return self.arrived.empty()


class Upstream:
    """All engines and cases of a run."""

    def __init__(self, ports: list[int]):
        self.cases: dict[str, Case] = {}
        self.strangers: list[Exchange] = []     # without a known x-case
        self.lock = threading.Lock()
        self.engines = [Engine(self, f"mock-{i + 1}", port) for i, port in enumerate(ports)]

    def case_of(self, exchange: Exchange) -> Case | None:
        return self.cases.get(exchange.head.get("x-case"))

    def early(self, exchange: Exchange) -> bool:
        case = self.case_of(exchange)
        if case is None or case.early is None:
            return False
        case.arrived.put(exchange)
        case.perform(case.early, exchange)
        return True

    def serve(self, exchange: Exchange) -> None:
        case = self.case_of(exchange)
        if case is None:
            if exchange.method == "POST":
                self.strangers.append(exchange)
            return exchange.send(json_answer())
        if case.early is not None:
            return
        with self.lock:
            number, case.attempts = case.attempts, case.attempts + 1
        case.arrived.put(exchange)
        case.perform(case.scripts[min(number, len(case.scripts) - 1)] if case.scripts else json_answer(), exchange)
