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


@dataclasses.dataclass
class Place:
    """A forwarder: where it takes what is said, and where it gives it out."""
    forwarder: str
    publish: str
    subscribe: str


def place_of(fleet: Fleet, name: str) -> Place:
    row = next(b for b in fleet.config["bus"] if b["id"] == name)
    base = fleet.status()["fleet"][0]["port_base"]
    def url(text: str) -> str:
        return f"tcp://127.0.0.1:{base + int(text.partition('+')[2])}"
    return Place(name, url(row["publish"]), url(row["subscribe"]))


class Member:
    """One connection to one forwarder, to speak and to listen."""

    def __init__(self, place: Place, keys: Keys):
        self.place, self.keys, self.random, self.counter = place, keys, time.monotonic_ns(), 1 << 40
        self.sequences: dict[str, int] = {}
        self.context = zmq.Context()
        self.out = self._socket(zmq.PUB, sndhwm=100_000)
        self.out.connect(place.publish)

    def _socket(self, kind: int, **options) -> zmq.Socket:
        socket = self.context.socket(kind)
        socket.linger = 0
        socket.curve_serverkey = self.keys.servers[self.place.forwarder]
        socket.curve_publickey, socket.curve_secretkey = self.keys.curve_public, self.keys.curve_secret
        for name, value in options.items():
            setattr(socket, name, value)
        return socket

    def listen(self, *prefixes: str, **options) -> zmq.Socket:
        socket = self._socket(zmq.SUB, **options)
        for prefix in prefixes:
            socket.subscribe(prefix)
        socket.connect(self.place.subscribe)
        return socket

    def connects(self, timeout_s: float) -> bool:
        """Whether the forwarder lets us in: beats are heard then."""
        ear = self.listen("beat/")
        let_in = ear.poll(int(timeout_s * 1000)) > 0
        ear.close()
        time.sleep(0.2 if let_in else 0)  # the other connection was begun before this one
        return let_in

    def wait_joined(self, timeout_s: float = 30) -> None:
        """A connection is made once what we say comes back."""
        topic = f"alert/member-probe/{self.keys.id}/"
        probe = self.listen(topic, rcvtimeo=100)
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self.say("alert", topic, {1: "member-probe", 2: False, 3: 0, 4: "", 5: "", 6: ""})
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
        self.context.destroy(linger=0)


def incarnation_after(fleet: Fleet, name: str) -> int:
    """A boot counter that outranks every life that a process has had."""
    file = pathlib.Path(fleet.state) / "processes" / name / f"{name}.incarnation"
    return int(file.read_text()) + 1


def shout(place: Place, keys: Keys, size: int) -> None:
    """Says something longer than any message may be. In a process of its own: libzmq 4.3.5 aborts in the sender when the
    receiver cuts it off in the middle."""
    member = Member(place, keys)
    member.connects(3)
    member.out.send_multipart([b"order/all/", b"", bytes(size), b""])
    time.sleep(0.5)
