"""Measures the solver beside HiGHS and Clarabel on the same instances: tables and a growth plot for docs/measured/solver.md.

    build/venv/bin/python tests/optimizer/oracle/compare.py --solver build/release/bin/signalbox-solver --write
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np

import exact
import piecewise
from request import read_request

ROOT = pathlib.Path(__file__).resolve().parents[3]
SIZES = ("5x50x3", "20x500x10", "50x2000x20", "100x10000x20")
STEPS = {"cold": "cold", "noise_2%": "warm, demand ±2 %", "model_+15%": "one model +15 %", "engines_-2%": "2 % of engines lost"}
# CPU milliseconds that are required to a certified 0.1 %; twice that at 90 % utilisation and with ties.
REQUIRED = {("50x2000x20", "noise_2%"): 20, ("50x2000x20", "model_+15%"): 100, ("50x2000x20", "engines_-2%"): 100,
            ("50x2000x20", "cold"): 250, ("100x10000x20", "noise_2%"): 300, ("100x10000x20", "model_+15%"): 1000,
            ("100x10000x20", "engines_-2%"): 1000, ("100x10000x20", "cold"): 2000}
GAP = 1e-3
CLARABEL_SIZES, HIGHS_LIMIT_S = SIZES[:2], 40


def bench(solver: pathlib.Path, size: str, utilisation: float, ties: bool, repeat: int, dump: pathlib.Path) -> list[dict]:
    command = [solver, "bench", size, "--utilisation", str(utilisation), "--repeat", str(repeat), "--dump", dump]
    command += [item for step in STEPS for item in ("--step", step)] + (["--ties"] if ties else [])
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def rivals(path: pathlib.Path, size: str) -> dict:
    problem = read_request(path)
    found = {"highs": piecewise.optimum(problem, GAP, HIGHS_LIMIT_S)}
    if size in CLARABEL_SIZES:
        begin = time.process_time()
        above, below = exact.optimum(problem)
        found["clarabel"] = {"cpu_s": time.process_time() - begin, "objective": above, "bound": below}
    return found


def variants():
    for utilisation in (0.7, 0.9):
        for ties in (False, True):
            yield utilisation, ties, f"{utilisation:.0%}{', ties' if ties else ''}".replace("%", " %")


def measure(solver: pathlib.Path, repeat: int, with_rivals: bool) -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            for utilisation, ties, name in variants():
                ours = bench(solver, size, utilisation, ties, repeat, pathlib.Path(folder))
                row = {"size": size, "variant": name, "hard": ties or utilisation > 0.8, "ours": {r["step"]: r for r in ours}}
                dumped = sorted(pathlib.Path(folder).glob("*-cold.request"))
                if with_rivals and not ties:
                    row |= rivals(dumped[0], size)
                for path in pathlib.Path(folder).glob("*.request"):
                    path.unlink()
                print(json.dumps(row), flush=True)
                rows.append(row)
    return rows


def milliseconds(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def table(rows: list[dict]) -> list[str]:
    out = ["| clusters x engines x models | utilisation | pairs | " + " | ".join(f"{name}, ms" for name in STEPS.values()) +
           " | worst gap | memory, MB |", "| --- | --- | ---: |" + " ---: |" * (len(STEPS) + 2)]
    for row in rows:
        cells = []
        for step in STEPS:
            r = row["ours"][step]
            required = REQUIRED.get((row["size"], step))
            cell = milliseconds(r["median_ms"])
            if required:
                limit = required * (2 if row["hard"] else 1)
                cell += f" of {limit}" + ("" if r["median_ms"] <= limit else " **missed**")
            cells.append(cell)
        worst = max(r["gap"] for r in row["ours"].values())
        memory = max(r["peak_mb"] for r in row["ours"].values())
        cold = row["ours"]["cold"]
        out.append(f"| {row['size']} | {row['variant']} | {cold['pairs']:,} | " + " | ".join(cells) + f" | {worst:.2%} | {memory:.0f} |")
    return out


def rival_table(rows: list[dict]) -> list[str]:
    out = ["| size | utilisation | ours, cold, ms | HiGHS, ms | Clarabel, ms | our objective above the best bound of all |",
           "| --- | --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        if "highs" not in row:
            continue
        highs, clarabel, cold = row["highs"], row.get("clarabel"), row["ours"]["cold"]
        bounds = [cold["bound"], *(r["bound"] for r in (highs, clarabel) if r and "bound" in r)]
        best = max(bounds)
        said = milliseconds(1e3 * highs["cpu_s"]) if highs["gap"] is not None else f"none in {HIGHS_LIMIT_S} s"
        out.append(f"| {row['size']} | {row['variant']} | {milliseconds(cold['median_ms'])} | {said} | "
                   f"{milliseconds(1e3 * clarabel['cpu_s']) if clarabel else '-'} | {(cold['objective'] - best) / abs(best):.1e} |")
    return out


def limits_table(binary: pathlib.Path) -> list[str]:
    """What the policy's limits on rows add to a plan of 50x2000x20, in the optimizer's process."""
    done = subprocess.run([binary, "bench", "limits", "50x2000x20"], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    free = rows[0]["objective"]
    out = ["| limits | solve, cold, ms | its gap | rows, ms | verification, ms | weights moved | limits that bind | not held | objective above no limits | weights | snapshots, kB | the largest, kB |",
           "| --- |" + " ---: |" * 11]
    for r in rows:
        out.append(f"| {r['limits']} | {milliseconds(r['solve_ms'])} | {r['solved_gap']:.2%} | {milliseconds(r['rows_ms'])} | {milliseconds(r['verify_ms'])} | {r['moved']:,} | {r['binding']:,} | "
                   f"{r['not_held']:,} | {r['objective'] / free - 1:.2%} | {r['weights']:,} | {r['all_bytes'] / 1e3:,.0f} | "
                   f"{r['largest_snapshot_bytes'] / 1e3:,.0f} |")
    return out


def slope(rows: list[dict], step: str) -> float:
    points = [(row["ours"][step]["pairs"], row["ours"][step]["median_ms"]) for row in rows if not row["hard"]]
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def plot(rows: list[dict]) -> str:
    """CPU time against non-zeros, both logarithmic."""
    width, height, left, bottom = 640, 400, 70, 50
    colours = dict(zip(STEPS, ("#1f5f9f", "#b5541c", "#2f7d4f", "#7a3f8f"), strict=True))
    x = lambda pairs: left + (np.log10(pairs) - 2) / 5 * (width - left - 20)
    y = lambda ms: height - bottom - (np.log10(max(ms, 1e-2)) + 2) / 6 * (height - bottom - 20)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for power in range(2, 8):
        parts.append(f'<line x1="{x(10**power):.1f}" x2="{x(10**power):.1f}" y1="20" y2="{height - bottom}" stroke="#ddd"/>'
                     f'<text x="{x(10**power):.1f}" y="{height - bottom + 18}" text-anchor="middle">{10**power:,}</text>')
    for power in range(-2, 5):
        parts.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(10**power):.1f}" y2="{y(10**power):.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(10**power) + 4:.1f}" text-anchor="end">{10**power:g} ms</text>')
    parts.append(f'<text x="{(width + left) / 2}" y="{height - 10}" text-anchor="middle">pairs (source, engine)</text>')
    for i, (step, name) in enumerate(STEPS.items()):
        for variant in dict.fromkeys(row["variant"] for row in rows):
            points = [(row["ours"][step]["pairs"], row["ours"][step]["median_ms"]) for row in rows if row["variant"] == variant]
            path = " ".join(f"{x(p):.1f},{y(t):.1f}" for p, t in points)
            dash = "" if variant == "70 %" else ' stroke-dasharray="3 4" opacity="0.5"'
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colours[step]}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{left + 12}" y="{38 + 17 * i}" fill="{colours[step]}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def write(rows: list[dict], repeat: int, binary: pathlib.Path) -> None:
    page = ROOT / "docs/measured/solver.md"
    head, _, _ = page.read_text().partition("<!-- measured -->\n")
    slopes = "; ".join(f"{name} {slope(rows, step):.2f}" for step, name in STEPS.items())
    lines = [f"Median CPU time of {repeat} solves to a certified gap of 0.1 %, one thread.", "", *table(rows), "", "## Growth", "",
             f"Exponent of the time over the pairs, at 70 % without ties: {slopes}. Whole lines: 70 %; dashed: 90 % and ties.", "",
             "![CPU time against non-zeros](solver-growth.svg)", "", "## Beside other solvers", "", *rival_table(rows),
             "", "## With the policy's limits", "", *limits_table(binary)]
    page.write_text(head + "<!-- measured -->\n" + "\n".join(lines) + "\n")
    (ROOT / "docs/measured/solver-growth.svg").write_text(plot(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", type=pathlib.Path, default=ROOT / "build/release/bin/signalbox-solver")
    parser.add_argument("--signalbox", type=pathlib.Path, default=ROOT / "build/release/bin/signalbox",
                        help="for the limits of the policy, which are held outside the solver")
    parser.add_argument("--repeat", type=int, default=5, help="solves of each step")
    parser.add_argument("--no-rivals", action="store_true", help="neither HiGHS nor Clarabel")
    parser.add_argument("--write", action="store_true", help="writes docs/measured/solver.md and its plot")
    options = parser.parse_args()
    rows = measure(options.solver, options.repeat, not options.no_rivals)
    print("\n".join([*table(rows), "", *rival_table(rows)]))
    if options.write:
        write(rows, options.repeat, options.signalbox)


if __name__ == "__main__":
    main()
