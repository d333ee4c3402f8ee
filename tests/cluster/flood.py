"""A bus of one forwarder without keys, and a publisher that says more than anybody can read."""

import msgpack
import os
import pathlib
import subprocess
import threading
import time

import zmq

from fleet import find_binary, wait_for

CONFIG = """
fleet = "flood"
policy = "none.policy"
security = "none"
[[cluster]]
name = "east"
region = "r"
zone = "z"
[[profile]]
name = "p"
a = 0.01
b = 0.001
c = 0.0001
kv_tokens = 1000
max_batch = 8
[[engine]]
name = "e1"
cluster = "east"
url = "http://127.0.0.1:2"
kind = "sim"
models = ["m"]
profile = "p"
[[bus]]
id = "bus-1"
publish = "ipc://{folder}/publish"
subscribe = "ipc://{folder}/subscribe"
[[process]]
role = "policy-keeper"
id = "keeper"
[[process]]
role = "engine-proxy"
id = "proxy"
cluster = "east"
[[process]]
role = "health-monitor"
id = "monitor"
[[process]]
role = "global-optimizer"
id = "optimizer"
[[process]]
role = "cluster-router"
id = "router-east"
cluster = "east"
listen = "127.0.0.1:1"
"""
TOPIC = b"decision/east/router-east/"
KIND, VERSION = 33, 1


class Flood:
    def __init__(self, folder: pathlib.Path):
        os.chmod(folder, 0o700)
        self.file = folder / "fleet.toml"
        self.file.write_text(CONFIG.format(folder=folder))
        self.options = ["--config", self.file, "--state-dir", folder]
        self.binary = find_binary()
        self.forwarder = subprocess.Popen([self.binary, "run", "forwarder", "--id", "bus-1", *self.options])
        self.out = zmq.Context.instance().socket(zmq.XPUB)
        self.out.setsockopt(zmq.XPUB_NODROP, 1)
        self.out.connect(f"ipc://{folder}/publish")
        assert self.out.poll(20_000), "the forwarder subscribes to everything"
        assert self.out.recv() == b"\x01"
        self.sequence = 0

    def say(self, count: int) -> float:
        """So many decision records, each with the next number; waits where the forwarder takes no more. Messages a second."""
        began = time.monotonic()
        for _ in range(count):
            self.sequence += 1
            envelope = msgpack.packb(["router-east", 1, 7, self.sequence, time.monotonic_ns(), 0, KIND, VERSION, 0])
            body = msgpack.packb({1: "east", 2: f"d-{self.sequence}", 4: ("chat", "batch")[self.sequence % 2]})
            while True:
                try:
                    self.out.send_multipart([TOPIC, envelope, body, b""], flags=zmq.DONTWAIT)
                    break
                except zmq.Again:
                    assert time.monotonic() - began < 120, "the forwarder takes nothing"
                    time.sleep(0.0005)
        return count / (time.monotonic() - began)

    def listen(self) -> "Ear":
        """A subscriber beside the tap."""
        return Ear(f"ipc://{self.file.parent}/subscribe", self)

    def tap(self, out, *arguments: str) -> subprocess.Popen:
        """A tap that has been heard to listen: what is said from now on is for it."""
        process = subprocess.Popen([self.binary, "tap", "--json", "--message", "decision_record", *arguments, *self.options],
                                   stdout=out, stderr=subprocess.PIPE, text=True)
        wait_for("the tap hears", lambda: self.say(1) and pathlib.Path(out.name).stat().st_size > 0, 30)
        return process

    def stop(self) -> None:
        self.out.close(linger=0)
        self.forwarder.terminate()
        self.forwarder.wait(timeout=20)


class Ear:
    """Hears the flood in a thread of its own, and how long each message was on its way."""

    def __init__(self, endpoint: str, flood: Flood):
        self.delays_s: list[float] = []
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, 100)
        self.socket.subscribe(TOPIC)
        self.socket.connect(endpoint)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.hear)
        self.thread.start()
        wait_for("the ear hears", lambda: flood.say(1) and self.delays_s, 30)

    def hear(self) -> None:
        while not self.ended.is_set():
            try:
                _, envelope, _, _ = self.socket.recv_multipart()
            except zmq.Again:
                continue
            self.delays_s.append((time.monotonic_ns() - msgpack.unpackb(envelope)[4]) / 1e9)

    def hear_all(self, flood: Flood, count: int, per_s: float) -> list[float]:
        """The delays of so many messages that are said at this rate; all of them arrive."""
        first = len(self.delays_s)
        began = time.monotonic()
        for n in range(count):
            time.sleep(max(0, began + n / per_s - time.monotonic()))
            flood.say(1)
        wait_for("all of it is heard", lambda: len(self.delays_s) >= first + count, 60)
        return self.delays_s[first:]

    def close(self) -> None:
        self.ended.set()
        self.thread.join()
        self.socket.close(linger=0)
