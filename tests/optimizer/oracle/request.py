"""Reads a dumped solve request, as `signalbox-solver bench --dump` writes it."""

import pathlib

import msgpack
import numpy as np

from problem import Problem


def read_request(path: pathlib.Path) -> Problem:
    items = msgpack.unpackb(path.read_bytes())
    numbers = [np.frombuffer(item, "<f8") for item in (items[i] for i in (3, 4, 5, 6, 8, 9, 10, 12, 13))]
    demand, shed_cost, floor_fraction, floor_shed_cost, q, capacity, ceiling, cost, work = numbers
    pair_count, engine = np.frombuffer(items[7], "<u4"), np.frombuffer(items[11], "<u4")
    reference = np.zeros(items[14])
    reference[np.frombuffer(items[15], "<u4")] = np.frombuffer(items[16], "<f8")
    floor_shed_cost = np.maximum(floor_shed_cost, shed_cost)  # without a floor it is 0: nothing is refused there
    assert not items[18], "a dumped problem has no caps"
    return Problem(demand, shed_cost, floor_fraction, floor_shed_cost, pair_count.astype(int), q, capacity, ceiling,
                   engine.astype(int), cost, work, reference, float(items[17]))
