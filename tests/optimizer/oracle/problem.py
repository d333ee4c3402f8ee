"""A routing problem as arrays, its objective from first principles, and random instances of every kind.

Units and symbols are those of optimizer/model/problem.hpp: seconds, requests/s, work seconds per second.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Problem:
    demand: np.ndarray  # by source
    shed_cost: np.ndarray
    floor_fraction: np.ndarray
    floor_shed_cost: np.ndarray
    pair_count: np.ndarray  # pairs of a source lie together, by ascending engine
    q: np.ndarray  # by engine
    capacity: np.ndarray
    ceiling: np.ndarray
    engine: np.ndarray  # by pair
    cost: np.ndarray
    work: np.ndarray
    reference: np.ndarray  # by pair; empty without churn
    churn_cost: float = 0.0
    caps: list[tuple[float, np.ndarray]] = dataclasses.field(default_factory=list)  # share; group by engine, from small groups to large

    @property
    def source(self) -> np.ndarray:
        """The source of each pair."""
        return np.repeat(np.arange(len(self.demand)), self.pair_count)

    def load(self, flow: np.ndarray) -> np.ndarray:
        return np.bincount(self.engine, self.work * flow, len(self.q))

    def capped(self):
        """(source, pairs, most) for each group of a source that its caps bind: these pairs together get at most so much."""
        for s in range(len(self.demand)):
            pairs = np.flatnonzero(self.source == s)
            rows = [(pairs[group[self.engine[pairs]] == g], share * self.demand[s])
                    for share, group in self.caps for g in np.unique(group[self.engine[pairs]])]
            room = np.where(self.ceiling[self.engine] > 0, self.demand[s], 0.0)  # by pair; then by group, from the inside out
            for group, most in rows:
                inside = room[group].sum()
                if inside > most:
                    room[group] *= most / inside
            if room[pairs].sum() >= self.demand[s] * (1 - 1e-9):
                yield from ((s, group, most) for group, most in rows)

    def objective(self, flow: np.ndarray, shed: np.ndarray) -> float:
        load = self.load(flow)
        total = self.cost @ flow + np.sum(self.q * load / (1.0 - load / self.capacity))
        open_shed = np.minimum(shed, self.demand * (1.0 - self.floor_fraction))
        total += self.shed_cost @ open_shed + self.floor_shed_cost @ (shed - open_shed)
        if len(self.reference):
            total += self.churn_cost * np.maximum(0.0, self.reference - flow).sum()
        return float(total)


def random_problem(seed: int, kind: str, sources: int, engines: int) -> Problem:
    """Engines of all speeds and sources that may use most of them. What `kind` names is added to it."""
    rng = np.random.default_rng(seed)
    capacity = rng.uniform(0.3, 1.0, engines)
    ceiling = capacity * rng.uniform(0.5, 0.95, engines)
    q = rng.lognormal(3.0, 0.7, engines)
    if kind == "engines down":
        ceiling[rng.random(engines) < 0.3] = 0.0
    if kind == "ties":
        capacity[:], ceiling[:], q[:] = 1.0, 0.85, 20.0
    if kind == "one class of service":
        q[:] = np.repeat(rng.lognormal(3.0, 0.7, engines // 3 + 1), 3)[:engines]

    used = rng.random((sources, engines)) < 0.7
    row, engine = np.nonzero(used)
    work = rng.uniform(0.02, 0.2, sources)[row]
    if kind == "works differ":
        work = work * rng.lognormal(0.0, 0.5, len(work))
    cost = np.zeros(len(row)) if kind == "ties" else rng.uniform(-0.05, 0.2, len(row))
    if kind == "far":
        cost = rng.uniform(0.0, 20.0, len(row))

    utilisation = rng.uniform(1.1, 1.6) if "overload" in kind else rng.uniform(0.2, 1.0)
    mean_work = np.bincount(row, work, sources) / np.maximum(1, np.bincount(row, minlength=sources))
    demand = utilisation * ceiling.sum() / sources / np.maximum(mean_work, 1e-2) * rng.uniform(0.3, 1.7, sources)
    shed_cost = rng.uniform(20.0, 300.0, sources)
    floor_fraction = np.zeros(sources)
    if kind == "floors":
        demand *= 1.5
        floor_fraction = np.where(rng.random(sources) < 0.6, rng.uniform(0.0, 0.5, sources), 0.0)
    problem = Problem(demand, shed_cost, floor_fraction, shed_cost * rng.uniform(1.0, 4.0, sources),
                      used.sum(axis=1), q, capacity, ceiling, engine, cost, work, np.zeros(0))
    if "caps" in kind:
        alone = np.arange(engines)
        problem.caps = [(float(rng.uniform(least, 1.0)), alone // size) for size, least in ((1, 0.2), (2, 0.3), (6, 0.5))]
    if "churn" in kind:
        problem.reference = np.where(rng.random(len(row)) < 0.3, rng.uniform(0.0, 1.0, len(row)) * demand[row], 0.0)
        problem.churn_cost = float(rng.choice([0.02, 0.5, 5.0]))
    return problem


KINDS = ("plain", "overload", "engines down", "ties", "one class of service", "works differ", "far", "floors", "churn",
         "caps", "caps and churn", "caps and overload")


def instances(count: int):
    """(name, problem), small and middling, the kinds in turn."""
    rng = np.random.default_rng(7)
    for i in range(count):
        kind = KINDS[i % len(KINDS)]
        large = i % 10 == 9
        sources = int(rng.integers(20, 40) if large else rng.integers(1, 9))
        engines = int(rng.integers(40, 80) if large else rng.integers(1, 16))
        yield f"{i} {kind} {sources}x{engines}", random_problem(i, kind, sources, engines)
