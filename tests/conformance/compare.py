"""Runs the suite against Signalbox, nginx and HAProxy (those that are installed) and prints who passes what.

    build/venv/bin/python tests/conformance/compare.py [TARGET...] [--failed]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import targets  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent


def results(target: str) -> dict[str, bool]:
    """Case -> whether it passed; skipped ones are left out."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as junit:
        subprocess.run([sys.executable, "-m", "pytest", FOLDER, "-q", "-p", "no:cacheprovider", "--timeout=60", f"--target={target}",
                        f"--junitxml={junit.name}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=3600)
        out = {}
        for case in ElementTree.parse(junit.name).getroot().iter("testcase"):
            if case.find("skipped") is None:
                area = case.get("classname", "").split(".")[-1].removeprefix("test_")
                out[f"{area}: {case.get('name')}"] = case.find("failure") is None and case.find("error") is None
        return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(targets.STARTERS)}; all that are installed by default")
    parser.add_argument("--failed", action="store_true", help="name each case that a target fails")
    options = parser.parse_args()
    names = options.targets or [name for name in targets.STARTERS if targets.installed(name)]
    unknown = set(names) - set(targets.STARTERS)
    if unknown:
        parser.error(f"unknown target {', '.join(sorted(unknown))}")
    table = {name: results(name) for name in names}
    areas = sorted({case.split(":")[0] for cases in table.values() for case in cases})
    print(f"{'area':<16}" + "".join(f"{name:>16}" for name in names))
    for area in [*areas, ""]:
        row = f"{area or 'all':<16}"
        for name in names:
            mine = [passed for case, passed in table[name].items() if case.startswith(area)]
            row += f"{sum(mine)} of {len(mine)}".rjust(16)
        print(row)
    if options.failed:
        for name in names:
            print("\n" + "\n".join(f"{name} fails {case}" for case, passed in sorted(table[name].items()) if not passed))
    return 0 if all(table.get("signalbox", {"": True}).values()) else 1


if __name__ == "__main__":
    sys.exit(main())
