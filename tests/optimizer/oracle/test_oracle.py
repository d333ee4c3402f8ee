"""The solver against an independent convex solver, on random instances of every kind."""

import os
import pathlib

import numpy as np
import pytest

from exact import optimum
from problem import instances
from solver import Solver

ROOT = pathlib.Path(__file__).resolve().parents[3]
COUNT = 270  # of which a quarter has caps
AGREEMENT = 1e-4
# Within caps, where sweeps are what is left when the search for prices fails: how near the plan is, and how well that is known.
CAPPED_AGREEMENT, CAPPED_GAP, CAPPED_CERTIFIED = 5e-3, 1e-2, 0.95
TARGET_GAP = 5e-5
ORACLE_ERROR = 1e-6  # relative; what the oracle's own primal and dual differ by at most
ORACLE_ROUNDING = 1e-6  # of instances where there is nothing to do


def solver_binary() -> pathlib.Path:
    builds = [os.environ.get("SIGNALBOX_BUILD"), *(ROOT / "build" / preset for preset in ("asan", "dev", "release"))]
    for build in filter(None, builds):
        if (binary := pathlib.Path(build) / "bin/signalbox-solver").exists():
            return binary
    pytest.fail("no signalbox-solver is built; run tools/make dev signalbox-solver")


def check_feasible(p, plan) -> None:
    served = np.bincount(p.source, plan.flow, len(p.demand))
    assert plan.flow.min(initial=0) >= 0 and plan.shed.min(initial=0) >= 0
    assert np.allclose(served + plan.shed, p.demand, rtol=1e-9, atol=1e-12)
    assert np.all(p.load(plan.flow) <= p.ceiling * (1 + 1e-9))
    for _, group, most in p.capped():
        assert plan.flow[group].sum() <= most + 1e-8 * p.demand.max()
    assert plan.objective == pytest.approx(p.objective(plan.flow, plan.shed), rel=1e-9, abs=1e-9)


def test_the_solver_agrees_with_an_independent_solver_and_never_claims_too_much():
    wrong, capped, certified = [], 0, 0
    with Solver(solver_binary()) as solver:
        for name, p in instances(COUNT):
            above, below = optimum(p)
            size = max(abs(above), ORACLE_ROUNDING / ORACLE_ERROR)
            assert abs(above - below) <= ORACLE_ERROR * size, f"{name}: the oracle is off by {above - below}"
            for gap in (1e-3, TARGET_GAP):
                plan = solver.solve(p, gap)
                check_feasible(p, plan)
                if plan.lower_bound > above + ORACLE_ERROR * size:
                    wrong.append(f"{name}: claims that nothing is below {plan.lower_bound}, but {above} is")
                if plan.objective < below - ORACLE_ERROR * size:
                    wrong.append(f"{name}: objective {plan.objective} is below the optimum {below}")
                if p.caps:
                    if gap > TARGET_GAP:
                        capped, certified = capped + 1, certified + (plan.stop == "certified")
                    if plan.gap > CAPPED_GAP or plan.objective > above + CAPPED_AGREEMENT * size:
                        wrong.append(f"{name}: {plan.objective} against {above}, certified {plan.gap:.2e}")
                    continue
                if plan.gap > gap or plan.stop != "certified":
                    wrong.append(f"{name}: asked for {gap}, certified {plan.gap:.2e} ({plan.stop})")
                if gap == TARGET_GAP and plan.objective > above + AGREEMENT * size:
                    wrong.append(f"{name}: {plan.objective} against {above}")
    assert capped > 50 and certified >= CAPPED_CERTIFIED * capped, f"{certified} of {capped} within caps are certified"
    assert not wrong, f"{len(wrong)} of {COUNT}:\n" + "\n".join(wrong)
