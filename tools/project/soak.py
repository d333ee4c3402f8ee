"""Runs rows of tests/chaos, and the simulated control plane, at their long sizes, and writes what they measured into docs/measured/chaos.md.

tools/soak                                       all rows, with the release build where there is one
tools/soak -k 'forged or subscribers'            some of them, as pytest selects
tools/soak --simulated 1000                      so many seeds of the control plane in virtual time
Each row that ran replaces what the page said of it; the page tells with which build and load.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

from run_tests import ROOT, SANITIZER_OPTIONS

PAGE = ROOT / "docs/measured/chaos.md"
FIGURES = ROOT / "build/chaos/figures.json"
HEAD = "| fault | figure | measured | required | build, load average |\n| --- | --- | --- | --- | --- |\n"
BEGIN, END = "<!-- soak -->\n", "<!-- /soak -->\n"


def rows_on_page(text: str) -> dict[str, list[str]]:
    """Title -> its lines of the table."""
    out: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if not line.startswith("|") or line.startswith(("| fault", "| ---")):
            continue
        title = line.split("|")[1].strip() or title
        out.setdefault(title, []).append(line)
    return out


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def lines_of(report: dict, build: str) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for row in report["rows"]:
        figures = [f for f in report["figures"] if f["row"] == row["row"]]
        note = f"{build}, {row['load']:.1f}" + ("" if row["outcome"] == "passed" else f"; **{row['outcome']}**")
        lines = []
        for n, f in enumerate(figures or [{"name": "", "value": 0, "unit": "", "most": None}]):
            measured = f"{number(f['value'])} {f['unit']}".strip() if f["name"] else ""
            required = "" if f["most"] is None else f"{f['most']:g} {f['unit']}".strip()
            lines.append(f"| {row['row'] if n == 0 else ''} | {f['name']} | {measured} | {required} | {note if n == 0 else ''} |")
        out[row["row"]] = lines
    return out


def write(fresh: dict[str, list[str]]) -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    rows = {**rows_on_page(table), **fresh}
    PAGE.write_text(before + BEGIN + HEAD + "\n".join(line for lines in rows.values() for line in lines) + "\n" + END + after)


def chaos(select: str | None, binary: pathlib.Path, build: str) -> int:
    command = [ROOT / "build/venv/bin/python", "-m", "pytest", "tests/chaos", "-q", *(["-k", select] if select else [])]
    FIGURES.unlink(missing_ok=True)
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **SANITIZER_OPTIONS, "SIGNALBOX_TEST_SIZE": "soak", "SIGNALBOX_BIN": str(binary)})
    if FIGURES.exists():
        write(lines_of(json.loads(FIGURES.read_text()), build))
    return done.returncode


def simulated(seeds: int, build: str) -> int:
    """All seeds in pieces, each as one run of the test, so that one that fails is told early."""
    program = ROOT / "build" / build / "tests/test_tools_simulate_control"
    piece = tomllib.loads((ROOT / "tests/sizes.toml").read_text())["control_plane_under_faults"]["ci"]
    ran = messages = snapshots = failed = 0
    for first in range(1, seeds + 1, piece):
        done = subprocess.run([program, "--run_test=faults_break_no_promise_and_the_fleet_recovers", "--log_level=message"], cwd=ROOT, text=True,
                              capture_output=True, env={**os.environ, **SANITIZER_OPTIONS, "SIGNALBOX_SEED": str(first), "SIGNALBOX_TEST_SIZE": "ci"})
        told = re.search(r"(\d+) seeds, (\d+) messages, (\d+) snapshots", done.stdout + done.stderr)
        if done.returncode or not told:
            failed += 1
            print(done.stdout + done.stderr, file=sys.stderr)
        else:
            ran += int(told[1])
            messages += int(told[2])
            snapshots += int(told[3])
        print(f"seeds {first} to {first + piece - 1}: {'ok' if done.returncode == 0 else 'FAILED'}", flush=True)
    title = "Faults of all kinds in the simulated control plane"
    note = f"{build}, {os.getloadavg()[0]:.1f}"
    write({title: [f"| {title} | seeds | {ran:,} |  | {note} |", f"|  | messages; snapshots | {messages:,}; {snapshots:,} |  |  |",
                   f"|  | pieces of {piece} seeds with a broken promise | {failed} | 0 |  |"]})
    return min(failed, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", dest="select", help="which rows, as pytest's -k")
    parser.add_argument("--simulated", type=int, metavar="SEEDS", help="only the simulated control plane, with so many seeds")
    parser.add_argument("--preset", choices=("release", "dev", "asan", "tsan"), help="the build; release unless there is none")
    options = parser.parse_args()
    build = options.preset or next((p for p in ("release", "dev") if (ROOT / "build" / p / "bin/signalbox").exists()), "dev")
    if options.simulated:
        return simulated(options.simulated, build)
    return chaos(options.select, ROOT / "build" / build / "bin/signalbox", build)


if __name__ == "__main__":
    sys.exit(main())
