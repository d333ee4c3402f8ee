"""Builds and runs every test of the repository and sums them up.

What runs: all Boost.Test programs under the address and undefined-behaviour sanitizers, those marked CONCURRENT again
under the thread sanitizer, those marked SIMULATION in the release build instead, and pytest over the folders of tests/
with the sanitized binary. Every suite leaves a JUnit file in build/junit; the table and the last line are made from those
files. A program that dies without one counts as a failed test, as does a skipped test that tests/may_skip.txt does not
list, and every report of a sanitizer, also one of a process that its supervisor started again.

tools/test --preset tsan --only 'pytest cluster'    the fleets of tests/cluster under the thread sanitizer (20 minutes)
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
JUNIT = ROOT / "build" / "junit"
REPORTS = ROOT / "build" / "sanitizers"
UNIT_TIMEOUT_S = 900
PYTEST_TIMEOUT_S = 2400

SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={ROOT}/tests/support/tsan.supp",
    "LSAN_OPTIONS": f"suppressions={ROOT}/tests/support/lsan.supp:print_suppressions=0",
}


def sanitizers(reports: pathlib.Path) -> dict[str, str]:
    """The environment in which each process writes its reports to a file of its own, REPORTS.PID."""
    return {name: f"{options}:log_path={reports}" for name, options in SANITIZER_OPTIONS.items()}


@dataclasses.dataclass
class Suite:
    name: str
    command: list[str]
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    timeout_s: float = UNIT_TIMEOUT_S

    @property
    def junit(self) -> pathlib.Path:
        return JUNIT / f"{self.file_name}.xml"

    @property
    def reports(self) -> pathlib.Path:
        """What the names of its processes' sanitizer reports begin with."""
        return REPORTS / self.file_name

    @property
    def file_name(self) -> str:
        return self.name.replace("/", ".").replace(" ", ".")


@dataclasses.dataclass
class Outcome:
    suite: str
    seconds: float
    passed: int = 0
    failed: list[str] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)
    output: str = ""


def say(text: str) -> None:
    print(f"test: {text}", flush=True)


def build(preset: str, targets: list[str]) -> None:
    say(f"building {preset} {' '.join(targets)}".rstrip())
    began = time.monotonic()
    if subprocess.run([ROOT / "tools/make", preset, *targets]).returncode != 0:
        print("0 passed, 1 failed, 0 skipped")
        sys.exit(1)
    say(f"built {preset} in {time.monotonic() - began:.0f} s")


def unit_suites(preset: str, *choice: str) -> list[Suite]:
    """The Boost.Test programs that CTest knows in this preset's build, of which it lists those that these options choose."""
    command = ["ctest", "--test-dir", str(ROOT / "build" / preset), "--show-only=json-v1", *choice]
    listing = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    suites = []
    for test in listing["tests"]:
        if "command" not in test:
            say(f"{preset} {test['name']} is not built and is left out")
            continue
        suite = Suite(f"{preset} {test['name']}", test["command"])
        suite.command = [*suite.command, "--log_level=error", "--report_level=no", f"--logger=JUNIT,all,{suite.junit}"]
        suites.append(suite)
    return suites


def pytest_suite(name: str, preset: str, soak: bool) -> Suite:
    """The tests of tests/NAME."""
    suite = Suite(f"pytest {name}", [], timeout_s=6 * 3600 if soak else PYTEST_TIMEOUT_S)
    suite.command = [str(ROOT / "build/venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider",
                     f"--junitxml={suite.junit}", f"tests/{name}"]
    suite.environment = {
        "SIGNALBOX_BIN": str(ROOT / "build" / preset / "bin/signalbox"),
        "SIGNALBOX_BUILD": str(ROOT / "build" / preset),
    }
    return suite


def pytest_folders() -> list[str]:
    """Every folder of tests/ that holds pytest files, the quick laws first: what a new folder holds runs unasked."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    return sorted(map(str, folders), key=lambda name: (name != "rooms", name))


def run(suite: Suite) -> Outcome:
    suite.junit.unlink(missing_ok=True)
    for old in REPORTS.glob(f"{suite.file_name}.[0-9]*"):
        old.unlink()
    began = time.monotonic()
    process = subprocess.Popen(suite.command, cwd=ROOT, env={**os.environ, **sanitizers(suite.reports), **suite.environment},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               start_new_session=True)
    ended = ""
    try:
        output, _ = process.communicate(timeout=suite.timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        ended = f"killed after {suite.timeout_s:.0f} s"
    outcome = Outcome(suite.name, time.monotonic() - began, output=output)
    read_junit(suite.junit, outcome)
    if process.returncode != 0 and not ended:
        ended = f"exit code {process.returncode}"
    if ended and not outcome.failed:
        outcome.failed.append(f"the program: {ended}")
    if not outcome.passed and not outcome.failed and not outcome.skipped:
        outcome.failed.append("the program: it ran no test")
    read_reports(suite, outcome)
    return outcome


def read_reports(suite: Suite, outcome: Outcome) -> None:
    """One failure for each kind of report, as the sanitizer sums it up."""
    kinds: dict[str, str] = {}
    for path in sorted(REPORTS.glob(f"{suite.file_name}.[0-9]*")):
        text = path.read_text(errors="replace")
        summaries = re.findall(r"SUMMARY: (\w+Sanitizer: .*)", text) or re.findall(r"runtime error: .*", text)
        for summary in summaries or [text.strip()[:200]]:
            kinds.setdefault(summary, text)
    outcome.failed += kinds
    outcome.output += "".join(f"\n{text[:8000]}" for text in list(kinds.values())[:8])


def read_junit(path: pathlib.Path, outcome: Outcome) -> None:
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        outcome.failed.append(f"the program: no JUnit file ({error})")
        return
    for case in cases:
        name = f"{case.get('classname', '')}.{case.get('name', '')}".lstrip(".")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.append(name)
        elif case.find("skipped") is not None:
            outcome.skipped.append(name)
        else:
            outcome.passed += 1


def forbid_unlisted_skips(outcome: Outcome, listed: set[str]) -> None:
    for name in [name for name in outcome.skipped if name not in listed]:
        outcome.skipped.remove(name)
        outcome.failed.append(f"{name} (skipped, but not in tests/may_skip.txt)")


def may_skip() -> set[str]:
    lines = (line.split("#")[0].strip() for line in (ROOT / "tests/may_skip.txt").read_text().splitlines())
    return {line.split()[0] for line in lines if line}


def run_all(suites: list[Suite], parallel: int) -> list[Outcome]:
    listed = may_skip()
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        for outcome in pool.map(run, suites):
            forbid_unlisted_skips(outcome, listed)
            outcomes.append(outcome)
            if outcome.failed:
                print(outcome.output, flush=True)
                say(f"{outcome.suite}: FAILED {', '.join(outcome.failed)}")
    return outcomes


def report(outcomes: list[Outcome], seconds: float) -> int:
    print(f"\n{'suite':<52} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for o in outcomes:
        print(f"{o.suite:<52} {o.passed:>7} {len(o.failed):>7} {len(o.skipped):>8} {o.seconds:>8.1f}")
    for o in outcomes:
        for name in o.failed:
            print(f"failed: {o.suite}: {name}")
    print(f"\nin {seconds:.0f} s, builds included")
    failed = sum(len(o.failed) for o in outcomes)
    print(f"{sum(o.passed for o in outcomes)} passed, {failed} failed, {sum(len(o.skipped) for o in outcomes)} skipped")
    return 1 if failed else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="TEXT", help="only suites whose name holds TEXT, e.g. messages/bus or 'pytest cluster'")
    parser.add_argument("--soak", action="store_true", help="the long sizes of tests/sizes.toml (SIGNALBOX_TEST_SIZE=soak)")
    parser.add_argument("--preset", default="asan", help="what units and cluster run as (default: asan)")
    parser.add_argument("--no-build", action="store_true", help="run what is built already")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.soak:
        os.environ["SIGNALBOX_TEST_SIZE"] = "soak"
    began = time.monotonic()
    for folder in (JUNIT, REPORTS):
        folder.mkdir(parents=True, exist_ok=True)
    wanted = lambda name: not options.only or options.only in name
    if not options.no_build:
        build(options.preset, [])
        if wanted("tsan") or not options.only:
            build("tsan", ["concurrent_tests"])
        if wanted("pytest fuzz") or not options.only:
            build("fuzz", ["fuzzers"])
        if wanted("pytest bench") or wanted("release tools/simulate/control") or not options.only:
            # Instructions are counted, and virtual time is simulated, in optimised code.
            build("release", ["bench_relay", "simulation_tests"])

    units = unit_suites(options.preset, "-LE", "simulation")
    if (ROOT / "build/release/CTestTestfile.cmake").exists():
        units += unit_suites("release", "-L", "simulation")
    if (ROOT / "build/tsan/CTestTestfile.cmake").exists():
        units += unit_suites("tsan", "-L", "concurrent")
    processes = [pytest_suite(name, options.preset, options.soak) for name in pytest_folders()]
    outcomes = run_all([s for s in units if wanted(s.name)], parallel=os.cpu_count() or 1)
    outcomes += run_all([s for s in processes if wanted(s.name)], parallel=1)
    return report(outcomes, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
