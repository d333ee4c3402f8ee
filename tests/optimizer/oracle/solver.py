"""A client of the solver child: the protocol of optimizer/wire, written down a second time."""

import dataclasses
import pathlib
import struct
import subprocess

import msgpack
import numpy as np

from problem import Problem

STOPS = ("certified", "iterations", "stalled")


@dataclasses.dataclass
class Plan:
    flow: np.ndarray
    shed: np.ndarray
    load: np.ndarray
    price: np.ndarray
    objective: float
    lower_bound: float
    gap: float
    stop: str


def column(values, kind: str) -> bytes:
    return np.ascontiguousarray(values, dtype=kind).tobytes()


def sparse(values) -> list:
    places = np.flatnonzero(values)
    return [len(values), column(places, "<u4"), column(np.asarray(values)[places], "<f8")]


class Solver:
    """One solver process; a context manager."""

    def __init__(self, binary: pathlib.Path):
        self._process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        assert self._process.wait(timeout=30) == 0

    def solve(self, p: Problem, target_gap: float, rounds: int = 5, warm: Plan | None = None) -> Plan:
        sources = np.arange(len(p.demand))
        items = [1, column(sources, "<u4"), column(0 * sources, "<u4"), column(p.demand, "<f8"), column(p.shed_cost, "<f8"),
                 column(p.floor_fraction, "<f8"), column(p.floor_shed_cost, "<f8"), column(p.pair_count, "<u4"),
                 column(p.q, "<f8"), column(p.capacity, "<f8"), column(p.ceiling, "<f8"),
                 column(p.engine, "<u4"), column(p.cost, "<f8"), column(p.work, "<f8"),
                 *sparse(p.reference), float(p.churn_cost), column([share for share, _ in p.caps], "<f8"),
                 column([g for _, group in p.caps for g in group], "<u4"), float(target_gap), rounds, 4, 25]
        items += [column(warm.price, "<f8"), *sparse(warm.flow), column(warm.shed, "<f8")] if warm else [b"", 0, b"", b"", b""]
        request = msgpack.packb(items)
        self._process.stdin.write(struct.pack("<I", len(request)) + request)
        self._process.stdin.flush()
        (size,) = struct.unpack("<I", self._process.stdout.read(4))
        return self._plan(msgpack.unpackb(self._process.stdout.read(size)))

    @staticmethod
    def _plan(items: list) -> Plan:
        assert items[0] == 1, f"the solver refused: {items[3]} in {items[4]}"
        flow = np.zeros(items[2])
        flow[np.frombuffer(items[3], "<u4")] = np.frombuffer(items[4], "<f8")
        shed, load, price = (np.frombuffer(items[i], "<f8") for i in (5, 6, 7))
        return Plan(flow, shed, load, price, *items[9:12], STOPS[items[20]])
