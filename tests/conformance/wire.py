"""HTTP/1.1 on a plain socket: every byte as the test wants it, and answers read by the letter of RFC 9112."""

import dataclasses
import json
import socket
import struct
import urllib.parse

TIMEOUT_S = 30


class Cut(Exception):
    """The peer ended or reset the connection before the message was complete."""


@dataclasses.dataclass
class Head:
    start: str                              # the first line
    fields: list[tuple[str, str]]           # names in lower case, in order

    def all(self, name: str) -> list[str]:
        return [value for field, value in self.fields if field == name.lower()]

    def get(self, name: str, default: str = "") -> str:
        values = self.all(name)
        return values[0] if values else default


@dataclasses.dataclass
class Answer(Head):
    body: bytes = b""
    interim: list[int] = dataclasses.field(default_factory=list)    # statuses of 1xx answers before it

    @property
    def status(self) -> int:
        return int(self.start.split()[1])

    def json(self):
        return json.loads(self.body)

    def error(self) -> dict:
        return self.json()["error"]


def parse_head(raw: bytes) -> Head:
    lines = raw.decode("latin-1").split("\r\n")
    assert "\n" not in "".join(lines), f"a bare LF in a head: {raw!r}"
    fields = []
    for line in filter(None, lines[1:]):
        name, colon, value = line.partition(":")
        assert colon and name == name.strip(), f"not a field line: {line!r}"
        fields.append((name.lower(), value.strip(" \t")))
    return Head(lines[0], fields)


def encode_chunks(body: bytes, size: int) -> bytes:
    pieces = [body[i:i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class Connection:
    """One TCP connection to a server, given by its URL."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S, receive_buffer: int = 0):
        address = urllib.parse.urlsplit(url)
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout_s)
        self.socket.connect((address.hostname, address.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.unread = b""

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        """Each part in a segment of its own. A peer that closed already is noticed when its answer is read."""
        try:
            for part in parts:
                self.socket.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()

    def _more(self) -> bytes:
        try:
            got = self.socket.recv(1 << 18)
        except ConnectionResetError:
            raise Cut("reset")
        if not got:
            raise Cut("ended")
        self.unread += got
        return got

    def _take(self, size: int) -> bytes:
        while len(self.unread) < size:
            self._more()
        out, self.unread = self.unread[:size], self.unread[size:]
        return out

    def _line(self) -> bytes:
        while b"\r\n" not in self.unread:
            self._more()
        line, self.unread = self.unread.split(b"\r\n", 1)
        return line

    def head(self) -> Answer:
        """The next head, through its empty line; interim ones as well."""
        while b"\r\n\r\n" not in self.unread:
            self._more()
        raw, self.unread = self.unread.split(b"\r\n\r\n", 1)
        head = parse_head(raw)
        assert head.start.startswith("HTTP/1.1 "), head.start
        return Answer(head.start, head.fields)

    def body_of(self, answer: Answer, to: str = "POST") -> Answer:
        """Reads the body that belongs to this head; what arrived before a Cut stays in answer.body."""
        codings, lengths = answer.all("transfer-encoding"), answer.all("content-length")
        assert len(lengths) + len(codings) <= 1, f"conflicting framing: {answer.fields}"
        if to == "HEAD" or answer.status in (204, 304):
            return answer
        def arrived(piece: bytes) -> None:
            answer.body += piece
        if codings:
            assert codings == ["chunked"], codings
            while (size := int(self._line(), 16)) > 0:
                arrived(self._take(size))
                assert self._take(2) == b"\r\n"
            while self._line():
                pass  # trailers
        elif lengths:
            left = int(lengths[0])
            while left:
                if not self.unread:
                    self._more()
                piece, self.unread = self.unread[:left], self.unread[left:]
                left -= len(piece)
                arrived(piece)
        else:
            assert answer.get("connection") == "close", "neither framed nor ended by close"
            while True:
                if self.unread:
                    arrived(self.unread)
                    self.unread = b""
                try:
                    self._more()
                except Cut as cut:
                    if str(cut) == "reset":
                        raise
                    return answer
        return answer

    def answer(self, to: str = "POST") -> Answer:
        """The next whole answer; 1xx before it are noted in it."""
        interim = []
        while True:
            answer = self.head()
            if answer.status >= 200:
                break
            interim.append(answer.status)
        answer.interim = interim
        return self.body_of(answer, to)

    def ends(self, within_s: float = TIMEOUT_S) -> bool:
        """The peer closes within this time, sending nothing more."""
        if self.unread:
            return False
        self.socket.settimeout(within_s)
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def rest(self) -> bytes:
        """Everything that comes until the peer closes."""
        try:
            while True:
                self._more()
        except (Cut, TimeoutError):
            out, self.unread = self.unread, b""
            return out


def fields_text(fields: dict[str, str] | list[tuple[str, str]]) -> bytes:
    pairs = fields.items() if isinstance(fields, dict) else fields
    return "".join(f"{name}: {value}\r\n" for name, value in pairs).encode("latin-1")
