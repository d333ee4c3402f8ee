"""The optimum by HiGHS: every congestion cost as the greatest of its tangents, more of them where the answer lies.

Tangents lie below a convex cost, so each answer bounds the optimum from below and its flows, priced truly, from above. Without
churn: a cold solve.
"""

import time

import highspy
import numpy as np
from scipy import sparse

from problem import Problem

TANGENTS = 16  # at the start, each engine
INFINITY = highspy.kHighsInf


def tangent(p: Problem, engine: np.ndarray, load: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(slope, value at zero) of each engine's cost at that load."""
    idle = 1.0 - load / p.capacity[engine]
    slope = p.q[engine] / idle**2
    return slope, p.q[engine] * load / idle - slope * load


def model(p: Problem, points: list[np.ndarray]) -> highspy.HighsLp:
    sources, engines, pairs = len(p.demand), len(p.q), len(p.engine)
    # Variables: flow by pair, open shed and floor shed by source, load and cost by engine.
    start = np.cumsum([0, pairs, sources, sources, engines, engines])
    size, cuts = start[-1], engines * len(points)
    all_pairs, all_sources, all_engines = np.arange(pairs), np.arange(sources), np.arange(engines)
    ones = np.ones
    demand = sparse.csc_matrix((ones(pairs + 2 * sources), (
        np.r_[p.source, all_sources, all_sources], np.r_[all_pairs, start[1] + all_sources, start[2] + all_sources])), (sources, size))
    load = sparse.csc_matrix((np.r_[p.work, -ones(engines)], (
        np.r_[p.engine, all_engines], np.r_[all_pairs, start[3] + all_engines])), (engines, size))
    slopes, bases = zip(*(tangent(p, all_engines, point) for point in points), strict=True)
    rows = np.arange(cuts)
    cut = sparse.csc_matrix((np.r_[ones(cuts), -np.concatenate(slopes)], (
        np.r_[rows, rows], np.r_[np.tile(start[4] + all_engines, len(points)), np.tile(start[3] + all_engines, len(points))])),
        (cuts, size))
    matrix = sparse.vstack([demand, load, cut], format="csc")
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = size, matrix.shape[0]
    lp.col_cost_ = np.r_[p.cost, p.shed_cost, p.floor_shed_cost, np.zeros(engines), ones(engines)]
    lp.col_lower_ = np.zeros(size)
    lp.col_upper_ = np.r_[np.full(pairs, INFINITY), p.demand * (1 - p.floor_fraction), np.full(sources, INFINITY), p.ceiling,
                          np.full(engines, INFINITY)]
    lp.row_lower_ = np.r_[p.demand, np.zeros(engines), np.concatenate(bases)]
    lp.row_upper_ = np.r_[p.demand, np.zeros(engines), np.full(cuts, INFINITY)]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    return lp


def optimum(p: Problem, gap: float, time_limit_s: float) -> dict:
    """Lower and upper bound, CPU seconds and rounds; `gap` is None if the time was over first."""
    assert not len(p.reference)
    begin = time.process_time()
    points = [p.ceiling * share for share in 1 - np.geomspace(1.0, 0.05, TANGENTS)]
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    best = np.inf
    for rounds in range(1, 30):
        solver.setOptionValue("time_limit", max(0.1, time_limit_s - (time.process_time() - begin)) + solver.getRunTime())
        solver.passModel(model(p, points))
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return {"gap": None, "cpu_s": time.process_time() - begin, "rounds": rounds}
        x = np.asarray(solver.getSolution().col_value)
        pairs, sources = len(p.engine), len(p.demand)
        flow, shed = x[:pairs], x[pairs:pairs + sources] + x[pairs + sources:pairs + 2 * sources]
        best = min(best, p.objective(flow, shed))
        bound = solver.getInfo().objective_function_value
        if best - bound <= gap * max(abs(bound), 1e-9):
            return {"gap": (best - bound) / abs(bound), "cpu_s": time.process_time() - begin, "rounds": rounds, "objective": best,
                    "bound": bound}
        points.append(np.minimum(p.load(flow), p.ceiling))
    return {"gap": None, "cpu_s": time.process_time() - begin, "rounds": rounds}
