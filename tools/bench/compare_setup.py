"""What tools/bench/compare and tools/bench/faults do first: build, and see who can run here."""

import subprocess
import sys

import proxies


def prepare(build: bool, targets: list[str]) -> None:
    if build:
        subprocess.run([proxies.ROOT / "tools/setup", "build", "run", "bench"], check=True)
        subprocess.run([proxies.ROOT / "tools/make", "release", *targets], check=True)


def choose(names: list[str]) -> list[str]:
    """Those that are installed; says of the others what is missing."""
    out = []
    for name in names:
        reason = proxies.why_not(name)
        if reason:
            print(f"{name}: skipped: {reason}", file=sys.stderr)
        else:
            out.append(name)
    return out
