"""The optimum by an interior-point solver that shares nothing with ours: Clarabel on the exact second-order cone form.

With u = 1 - y/c the congestion cost is q c (1/u - 1), and t >= 1/u is the rotated cone |(2, t - u)| <= t + u.
"""

import clarabel
import numpy as np
from scipy import sparse

from problem import Problem


def optimum(p: Problem) -> tuple[float, float]:
    """(objective, lower bound) that bracket the optimum."""
    sources, engines, pairs = len(p.demand), len(p.q), len(p.engine)
    churn = pairs if len(p.reference) else 0
    # Variables: flow by pair, open shed and floor shed by source, t by engine, flow moved away by pair.
    start = np.cumsum([0, pairs, sources, sources, engines, churn])
    size = start[-1]
    costs = np.concatenate([p.cost, p.shed_cost, p.floor_shed_cost, p.q * p.capacity, np.full(churn, p.churn_cost)])
    scale = 1.0 / max(1.0, np.abs(costs).max())

    def matrix(rows, columns, values, height):
        return sparse.csc_matrix((values, (rows, columns)), shape=(height, size))

    all_sources, all_engines, all_pairs = np.arange(sources), np.arange(engines), np.arange(pairs)
    ones = np.ones
    demands = matrix(np.concatenate([p.source, all_sources, all_sources]),
                     np.concatenate([all_pairs, start[1] + all_sources, start[2] + all_sources]),
                     ones(pairs + 2 * sources), sources)
    loads = matrix(p.engine, all_pairs, p.work, engines)
    open_shed = matrix(all_sources, start[1] + all_sources, ones(sources), sources)
    positive = -sparse.identity(size, format="csc")[np.r_[0:start[3], start[4]:size]]
    blocks = [demands, positive, open_shed, loads]
    bounds = [p.demand, np.zeros(positive.shape[0]), p.demand * (1.0 - p.floor_fraction), p.ceiling]
    cones = [clarabel.ZeroConeT(sources), clarabel.NonnegativeConeT(positive.shape[0] + sources + engines)]
    if churn:  # moved >= reference - flow
        blocks.append(matrix(np.r_[all_pairs, all_pairs], np.r_[all_pairs, start[4] + all_pairs], -ones(2 * pairs), pairs))
        bounds.append(-p.reference)
        cones.append(clarabel.NonnegativeConeT(pairs))
    capped = list(p.capped())
    if capped:
        rows = np.repeat(np.arange(len(capped)), [len(group) for _, group, _ in capped])
        blocks.append(matrix(rows, np.concatenate([group for _, group, _ in capped]), ones(len(rows)), len(capped)))
        bounds.append(np.array([most for _, _, most in capped]))
        cones.append(clarabel.NonnegativeConeT(len(capped)))
    # Rows of one cone: t + u, t - u, 2, each as bound - A x.
    by_load = p.work / p.capacity[p.engine]
    t = start[3] + all_engines
    blocks.append(matrix(np.concatenate([3 * p.engine, 3 * all_engines, 3 * p.engine + 1, 3 * all_engines + 1]),
                         np.concatenate([all_pairs, t, all_pairs, t]),
                         np.concatenate([by_load, -ones(engines), -by_load, -ones(engines)]), 3 * engines))
    bounds.append(np.tile([1.0, -1.0, 2.0], engines))
    cones += [clarabel.SecondOrderConeT(3)] * engines

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    answer = clarabel.DefaultSolver(sparse.csc_matrix((size, size)), costs * scale, sparse.vstack(blocks, format="csc"),
                                    np.concatenate(bounds), cones, settings).solve()
    assert str(answer.status) in ("Solved", "AlmostSolved"), answer.status
    constant = (p.q * p.capacity).sum()
    return answer.obj_val / scale - constant, answer.obj_val_dual / scale - constant
