"""A process on the bus that is not ours: it speaks the wire format of docs/messages.md, with the keys of whom it likes."""

import ctypes
import ctypes.util
import dataclasses
import hashlib
import pathlib
import struct
import time

import msgpack
import zmq
from zmq.utils import z85

from fleet import Fleet

KINDS = {"engine_signal": 1, "health_verdict": 10, "alert": 11, "fleet_table": 20, "routing_snapshot": 21, "policy": 40,
         "beat": 41, "order": 42}
SIGNED = {"health_verdict", "fleet_table", "routing_snapshot", "policy", "order"}
SODIUM = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")


@dataclasses.dataclass
class Keys:
    id: str
    curve_public: bytes
    curve_secret: bytes
    sign_secret: bytes
    fleet_mac: bytes
    generation: int
    servers: dict[str, bytes]  # forwarder -> CURVE public key


def keys_of(fleet: Fleet, name: str) -> Keys:
    """What `signalbox keys init` made for a process."""
    folder = fleet.folder / "keys"
    head, *rows = (folder / "directory.tsv").read_text().splitlines()
    members = {row.split("\t")[0]: row.split("\t") for row in rows}
    curve_secret, sign_secret = (folder / f"{name}.secret").read_text().splitlines()[1:3]
    mac = bytes.fromhex((folder / "fleet.mac").read_text().split()[0])
    servers = {i: bytes.fromhex(m[3]) for i, m in members.items() if m[1] == "forwarder"}
    return Keys(name, bytes.fromhex(members[name][3]), bytes.fromhex(curve_secret), bytes.fromhex(sign_secret), mac,
                int(head.split("\t")[3]), servers)


def stranger(fleet: Fleet) -> Keys:
    """Keys that nobody knows."""
    public, secret = (z85.decode(key) for key in zmq.curve_keypair())
    return dataclasses.replace(keys_of(fleet, "tool"), id="stranger", curve_public=public, curve_secret=secret, fleet_mac=bytes(32))


def endpoints(fleet: Fleet, name: str) -> tuple[str, str]:
    """Where a forwarder takes what is said, and where it gives it out."""
    row = next(b for b in fleet.config["bus"] if b["id"] == name)
    base = fleet.status()["fleet"][0]["port_base"]
    def port(url: str) -> int:
        return base + int(url.partition("+")[2])
    return f"tcp://127.0.0.1:{port(row['publish'])}", f"tcp://127.0.0.1:{port(row['subscribe'])}"


class Member:
    """One connection to one forwarder, to speak and to listen."""

    def __init__(self, fleet: Fleet, keys: Keys, forwarder: str = "bus-1"):
        self.keys, self.random, self.counter = keys, time.monotonic_ns(), 1 << 40
        self.sequences: dict[str, int] = {}
        self.context = zmq.Context()
        publish, self.subscribe_at = endpoints(fleet, forwarder)
        self.server = keys.servers[forwarder]
        self.out = self._socket(zmq.PUB, sndhwm=100_000)
        self._events = self.out.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self.out.connect(publish)

    def _socket(self, kind: int, **options) -> zmq.Socket:
        socket = self.context.socket(kind)
        socket.linger = 0
        socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = self.server, self.keys.curve_public, self.keys.curve_secret
        for name, value in options.items():
            setattr(socket, name, value)
        return socket

    def listen(self, *prefixes: str, **options) -> zmq.Socket:
        socket = self._socket(zmq.SUB, **options)
        for prefix in prefixes:
            socket.subscribe(prefix)
        socket.connect(self.subscribe_at)
        return socket

    def connects(self, timeout_s: float) -> bool:
        """Whether the forwarder lets us in."""
        let_in = self._events.poll(int(timeout_s * 1000)) > 0
        time.sleep(0.1 if let_in else 0)  # its subscription follows at once
        return let_in

    def wait_joined(self, fleet: Fleet, timeout_s: float = 5) -> None:
        """A connection is made once what we say comes back."""
        probe = self.listen("alert/member-probe/", rcvtimeo=100)
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self.say("alert", "alert/member-probe/", {1: "member-probe", 2: False, 3: 0, 4: "", 5: "", 6: ""})
            try:
                probe.recv_multipart()
                return probe.close()
            except zmq.Again:
                pass
        raise AssertionError("the forwarder does not take what we say")

    def frames(self, kind: str, topic: str, body, source: str | None = None, sequence: int | None = None) -> list[bytes]:
        sequence = sequence or self.sequences.get(topic, 0) + 1
        self.sequences[topic] = sequence
        packed = body if isinstance(body, bytes) else msgpack.packb(body)
        envelope = msgpack.packb([source or self.keys.id, self.counter, self.random, sequence, time.monotonic_ns(), time.time_ns(),
                                  KINDS[kind], 1, 0])
        return [topic.encode(), envelope, packed, self.proof(kind in SIGNED, topic.encode(), envelope, packed)]

    def proof(self, signed: bool, *parts: bytes) -> bytes:
        content = b"signalbox.1" + b"".join(struct.pack("<Q", len(part)) + part for part in parts)
        if not signed:
            return bytes([1, self.keys.generation]) + hashlib.blake2b(content, digest_size=32, key=self.keys.fleet_mac).digest()
        digest = hashlib.blake2b(content, digest_size=32).digest()
        signature = ctypes.create_string_buffer(64)
        SODIUM.crypto_sign_detached(signature, None, digest, ctypes.c_ulonglong(len(digest)), self.keys.sign_secret)
        return bytes([2, self.keys.generation]) + signature.raw

    def say(self, kind: str, topic: str, body, **envelope) -> None:
        self.out.send_multipart(self.frames(kind, topic, body, **envelope))

    def close(self) -> None:
        self.out.disable_monitor()
        self.context.destroy(linger=0)


def incarnation_after(fleet: Fleet, name: str) -> int:
    """A boot counter that outranks every life that a process has had."""
    file = pathlib.Path(fleet.state) / "processes" / name / f"{name}.incarnation"
    return int(file.read_text()) + 1
