"""Every fuzzer runs clean from its kept corpus: all kept inputs, then new ones for the seconds of tests/sizes.toml.

`tools/make fuzz fuzzers` builds them (clang's libFuzzer, address and undefined-behaviour sanitizers). An input that fails is
kept beside the program's log; add it to tests/fuzz/corpus with the repair.
"""

import os
import pathlib
import re
import subprocess
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
BUILT = ROOT / "build" / "fuzz" / "fuzz"
SECONDS = tomllib.loads((ROOT / "tests/sizes.toml").read_text())["fuzz"][os.environ.get("SIGNALBOX_TEST_SIZE") or "ci"]
NAMES = sorted(re.findall(r"^signalbox_fuzzer\((\w+)", (ROOT / "tests/fuzz/CMakeLists.txt").read_text(), re.M))


def test_every_fuzzer_has_a_corpus():
    assert NAMES == sorted(folder.name for folder in CORPUS.iterdir() if any(folder.iterdir()))


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_clean(name, tmp_path):
    program = BUILT / f"fuzz_{name}"
    assert program.exists(), "tools/make fuzz fuzzers builds it"
    found = tmp_path / "found"
    found.mkdir()
    command = [program, found, CORPUS / name, f"-max_total_time={SECONDS}", f"-artifact_prefix={tmp_path}/", "-timeout=5",
               "-rss_limit_mb=2048", "-max_len=65536", "-print_final_stats=1"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", timeout=SECONDS + 120)
    runs = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
    failing = [path for path in tmp_path.iterdir() if path != found]
    assert done.returncode == 0, f"{failing}\n{done.stderr[-3000:]}"
    assert runs and int(runs[1]) > len(list((CORPUS / name).iterdir()))
    print(f"{name}: {runs[1]} runs, {len(list(found.iterdir()))} new inputs")
