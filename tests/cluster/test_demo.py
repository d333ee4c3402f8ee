"""tools/demo is what a newcomer sees first: it ends well, and its table tells of every engine."""

import subprocess
import sys

import pytest

import real_engine
from fleet import ROOT, find_binary


@pytest.mark.parametrize("arguments, engines, froms", [
    ([], {"e1", "e2", "e3", "w1", "w2", "w3"}, {"east", "west"}),
    (["--real"], {"llama-1", "llama-2"}, {"local"}),
], ids=["simulated", "real"])
def test_the_demo_ends_with_a_table_and_no_failure(tmp_path, arguments, engines, froms):
    if "--real" in arguments:
        assert real_engine.installed(), "tools/setup real installs the engine"
    command = [sys.executable, ROOT / "tools/project/demo.py", "--binary", find_binary(), "--folder", tmp_path, "--seconds", "4"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout[done.stdout.index("requests share weight"):].splitlines()[1:]
    rows = [line.split() for line in table[:table.index("")]]
    assert {(row[0], row[1]) for row in rows} == {(where, engine) for where in froms for engine in engines}
    assert all(len(row) == 10 for row in rows), rows
    served = sum(int(row[4]) for row in rows)
    assert served > 0 and f"{served} requests, 0 failed" in done.stdout
    assert "candidates" in done.stdout, "one decision is explained"
