"""The two ends of tools/bench/compare, and the benchmark of decisions."""

import json
import subprocess

import pytest

from fleet import find_binary


@pytest.fixture
def engine():
    """The port of a benchmark's engine."""
    process = subprocess.Popen([find_binary(), "bench", "engine", "--ports", "0"], stdout=subprocess.PIPE, text=True)
    yield json.loads(process.stdout.readline())["ports"][0]
    process.terminate()
    process.stdout.close()
    assert process.wait(60) == 0


def streams(port: int, **options: int) -> dict:
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    done = subprocess.run([find_binary(), "bench", "streams", "--url", f"127.0.0.1:{port}", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_event_of_every_stream_arrives(engine):
    for every_us in (0, 1000):
        out = streams(engine, at_once=8, total=24, events=20, every_us=every_us)
        assert (out["failed"], out["events"]) == (0, 24 * 20), out
        assert 0 < out["transit_p50_us"] <= out["transit_p99_us"] <= out["transit_max_us"]


def test_streams_that_are_not_served_have_failed():
    out = streams(1, at_once=2, total=4, events=1)
    assert out["failed"] == 4, out


def test_decisions_are_measured_at_every_size():
    done = subprocess.run([find_binary(), "bench", "decide", "--decisions", "1600"], capture_output=True, text=True, timeout=300)
    rows = json.loads(done.stdout)
    assert [row["engines"] for row in rows] == [10, 100, 1000, 10000]
    assert all(row["decide_ns"] > 0 for row in rows)


def bench(*arguments: str) -> list[dict]:
    done = subprocess.run([find_binary(), "bench", *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_solves_are_measured():
    rows = bench("solve", "5x50x3", "--utilisation", "0.7", "--step", "cold", "--step", "engines_-2%", "--repeat", "1")
    assert [row["step"] for row in rows] == ["cold", "engines_-2%"]
    assert all(row["gap"] <= 1e-3 and row["cpu_ms"] > 0 for row in rows), rows


def test_limits_bind_and_what_they_cost_is_measured():
    rows = {row["limits"]: row for row in bench("limits", "5x100x4", "--repeat", "1")}
    assert list(rows) == ["none", "caps", "spread", "survival", "all"]
    assert rows["none"]["moved"] == 0
    assert rows["caps"]["moved"] == 0 and rows["caps"]["binding"] > 0, rows["caps"]  # caps are part of the solve
    for name in ("spread", "all"):
        assert rows[name]["moved"] > 0, rows[name]
    for name in ("caps", "spread", "all"):
        assert rows[name]["objective"] > rows["none"]["objective"]
        assert rows[name]["solved_gap"] <= 1e-3
