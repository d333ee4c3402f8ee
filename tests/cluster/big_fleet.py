"""A recording of a fleet too large for this machine: every message as its process would say it, written by a publisher."""

import hashlib
import math
import os
import pathlib
import random
import struct
import subprocess
import time

import msgpack
import zmq

from fleet import find_binary, wait_for

NONE = 0xFFFFFFFF
TYPES = {"u8": (1, "B"), "u16": (2, "H"), "u32": (3, "I"), "u64": (4, "Q"), "i64": (5, "q"), "f64": (6, "d")}
SIGNAL, VERDICT, TABLE, SNAPSHOT, DEMAND, OUTCOME, BEAT, ALERT = 1, 10, 20, 21, 30, 31, 41, 11
READY, GONE = 0, 3


def rows(columns: dict[int, tuple[str, list]]) -> list:
    """Rows in columns: field number -> (type, values)."""
    count = len(next(iter(columns.values()))[1])
    descriptor = [part for number, (kind, _) in columns.items() for part in (number, TYPES[kind][0])]
    return [count, descriptor, [struct.pack(f"<{count}{TYPES[kind][1]}", *values) for kind, values in columns.values()]]


class BigFleet:
    def __init__(self, folder: pathlib.Path, engines: int, clusters: int = 4, classes: int = 4):
        self.folder, self.count, self.classes = folder, engines, classes
        folder.mkdir(mode=0o700)
        self.clusters = [f"c{i}" for i in range(clusters)]
        self.names = [f"gpu-{i:04}" for i in range(engines)]
        self.home = [i % clusters for i in range(engines)]
        self.content = hashlib.blake2b(b"table", digest_size=32).digest()
        self.policy = hashlib.blake2b(b"policy", digest_size=32).digest()
        self.sequences: dict[bytes, int] = {}
        self.random = random.Random(1)
        self.gone: set[int] = set()
        self.file = folder / "fleet.toml"
        self.file.write_text(self.config())
        self.options = ["--config", self.file, "--state-dir", folder]

    def config(self) -> str:
        text = f'fleet = "big"\npolicy = "none.policy"\nsecurity = "none"\n'
        for name in self.clusters:
            text += f'[[cluster]]\nname = "{name}"\nregion = "r"\nzone = "z"\n'
        text += '[[profile]]\nname = "p"\na = 0.01\nb = 0.001\nc = 0.0001\nkv_tokens = 100000\nmax_batch = 64\n'
        for i, name in enumerate(self.names):
            text += (f'[[engine]]\nname = "{name}"\ncluster = "{self.clusters[self.home[i]]}"\n'
                     f'url = "http://10.0.{i // 250}.{i % 250 + 1}:8000"\nkind = "vllm"\nmodels = ["m"]\nprofile = "p"\n')
        text += f'[[bus]]\nid = "bus-1"\npublish = "ipc://{self.folder}/publish"\nsubscribe = "ipc://{self.folder}/subscribe"\n'
        text += '[[process]]\nrole = "policy-keeper"\nid = "keeper"\n[[process]]\nrole = "health-monitor"\nid = "monitor"\n'
        text += '[[process]]\nrole = "global-optimizer"\nid = "optimizer"\n'
        for i, name in enumerate(self.clusters):
            text += (f'[[process]]\nrole = "engine-proxy"\nid = "proxy-{name}"\ncluster = "{name}"\n'
                     f'[[process]]\nrole = "cluster-router"\nid = "router-{name}"\ncluster = "{name}"\nlisten = "127.0.0.1:{i + 1}"\n')
        return text

    def say(self, kind: int, source: str, topic: str, body: dict) -> None:
        self.sequences[topic] = self.sequences.get(topic, 0) + 1
        envelope = msgpack.packb([source, 1, 7, self.sequences[topic], time.monotonic_ns(), time.time_ns(), kind, 1, 0])
        frames = [topic.encode(), envelope, msgpack.packb(body), b""]
        until = time.monotonic() + 60
        while True:
            try:
                return self.out.send_multipart(frames, flags=zmq.DONTWAIT)
            except zmq.Again:
                assert time.monotonic() < until, "the forwarder takes nothing"
                time.sleep(0.0005)

    def say_table(self) -> None:
        engines = [{1: name, 2: self.home[i], 3: f"rack-{i // 8}", 4: f"http://10.0.{i // 250}.{i % 250 + 1}:8000", 5: 1, 6: ["m"],
                    8: 0.01, 9: 0.001, 11: 0.0001, 12: 1e5, 13: 64.0} for i, name in enumerate(self.names)]
        self.say(TABLE, "optimizer", "fleet/optimizer/", {
            1: "big", 2: 1, 3: self.content, 4: [{1: name, 2: "r", 3: "z"} for name in self.clusters], 5: engines})

    def wave(self, i: int, tick: int) -> float:
        return 0.5 + 0.45 * math.sin(tick / 5 + i / 40)

    def say_engines(self, tick: int) -> None:
        for i, name in enumerate(self.names):
            cluster = self.clusters[self.home[i]]
            if i not in self.gone:
                load = self.wave(i, tick)
                self.say(SIGNAL, f"proxy-{cluster}", f"signal/{cluster}/{name}/", {
                    1: cluster, 2: name, 3: [1, 1], 4: 0, 5: 0, 6: float(int(64 * load)), 7: float(int(8 * max(0, load - 0.9) * 10)), 8: load * 0.9,
                    16: 0.02 + 0.02 * load, 18: 1.0 + 0.1 * load, 19: 100})
            state = GONE if i in self.gone else READY
            if tick == 0 or (tick + i) % 5 == 0 or i in self.gone:
                self.say(VERDICT, "monitor", f"verdict/{name}/monitor/", {
                    1: name, 2: [1, 1], 3: state, 4: 0.0 if state else 1.0, 5: 0, 6: 3 if state else 1, 7: "no connection" if state else "signals 0.3 s old", 8: 0.1})

    def say_plans(self, tick: int) -> None:
        count, classes = self.count, self.classes
        load = [0.0 if i in self.gone else 0.8 * self.wave(i, tick) for i in range(count)]
        total = sum(load) or 1.0
        for cluster in self.clusters:
            weights = [load[i] / total for i in range(count)]
            self.say(SNAPSHOT, "optimizer", f"snapshot/{cluster}/optimizer/", {
                1: [1, "optimizer", tick + 1], 2: cluster, 3: self.policy, 4: self.content, 5: 0, 6: 10**9, 7: 0,
                8: rows({1: ("u32", [k for k in range(classes) for _ in range(count)]), 2: ("u32", list(range(count)) * classes),
                         3: ("f64", weights * classes), 4: ("f64", [w * 100 for w in weights] * classes)}),
                9: rows({1: ("u32", list(range(classes))), 2: ("f64", [1.0] * classes), 3: ("f64", [250.0 + tick] * classes)}),
                11: rows({1: ("u32", list(range(count))), 2: ("f64", [1.0] * count), 3: ("f64", load), 4: ("f64", [0.0 if i in self.gone else 0.85 for i in range(count)]),
                          5: ("f64", [1.0] * count), 6: ("u8", [0] * count)}),
                14: 100.0, 15: 99.0, 16: 0.01, 17: "demand"})
            router = f"router-{cluster}"
            self.say(DEMAND, router, f"demand/{cluster}/{router}/", {1: cluster, 2: self.policy, 3: 10**9, 4: rows(
                {1: ("u32", list(range(classes))), 2: ("u64", [250] * classes), 3: ("u64", [250] * classes), 4: ("u64", [0] * classes)})})
            self.say(OUTCOME, router, f"outcome/{cluster}/{router}/", {1: cluster, 2: self.policy, 3: self.content, 4: tick + 1, 5: 10**9, 6: rows(
                {1: ("u32", list(range(count))), 2: ("f64", [4 * x for x in load]), 6: ("u64", [1] * count), 16: ("u64", [1] * count),
                 17: ("f64", [0.1 + x for x in load]), 18: ("f64", [1 + x for x in load])})})
            self.say(BEAT, router, f"beat/cluster-router/{router}/", {1: 3, 2: router, 3: cluster, 4: True, 5: "serves", 7: [1, "optimizer"], 8: [1, "optimizer", tick + 1]})
        self.say(BEAT, "optimizer", "beat/global-optimizer/optimizer/", {1: 2, 2: "optimizer", 4: True, 5: "leads", 6: True, 7: [1, "optimizer"], 8: [1, "optimizer", tick + 1]})

    def record(self, file: pathlib.Path, ticks: int) -> None:
        """So many seconds of it, said as fast as they can be written."""
        binary = find_binary()
        forwarder = subprocess.Popen([binary, "run", "forwarder", "--id", "bus-1", *self.options])
        self.out = zmq.Context.instance().socket(zmq.XPUB)
        self.out.setsockopt(zmq.XPUB_NODROP, 1)
        self.out.connect(f"ipc://{self.folder}/publish")
        try:
            assert self.out.poll(30_000), "the forwarder subscribes to everything"
            self.out.recv()
            self.say_table()
            tap = subprocess.Popen([binary, "tap", "--quiet", "--record", file, *self.options], stderr=subprocess.DEVNULL)
            wait_for("the tap records", lambda: file.exists(), 30)
            time.sleep(1.0)  # until its subscription has arrived; the table comes as a latest value
            for tick in range(ticks):
                began = time.monotonic()
                if tick == ticks // 2:
                    self.gone = set(self.random.sample(range(self.count), self.count // 50))
                self.say_plans(tick)
                self.say_engines(tick)
                time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))
            tap.terminate()
            assert tap.wait(timeout=60) == 0
        finally:
            self.out.close(linger=0)
            forwarder.terminate()
            forwarder.wait(timeout=20)
