"""What dies takes nothing with it."""

import collections
import os
import signal
import time
import urllib.request

import pytest

from fleet import example, wait_for
from load import Load, bad, chat, unlike
from watch import SnapshotWatch

CLASSES = ["chat", "draft", "batch", "small"]


@pytest.fixture
def fleet(new_fleet):
    return new_fleet(example("laptop.toml")).up()


def steady(fleet, rate: float = 10, stream: bool = False, tokens: int = 24) -> Load:
    urls = [fleet.url("router-east"), fleet.url("router-west")]
    return Load(lambda n: chat(urls[n % 2], ("m-large", "m-small")[n // 2 % 2], unlike(n), tokens, stream=stream), rate)


def running(engine: str) -> float:
    """Requests that the engine at this address is at work on, by its own metrics."""
    with urllib.request.urlopen(engine + "/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith("vllm:num_requests_running")))


def test_a_dead_forwarder_loses_no_snapshot(fleet):
    watch = SnapshotWatch(fleet, CLASSES)
    wait_for("snapshots come", lambda: len(watch.of("east")) >= 3, 60)
    fleet.kill("bus-1")
    killed = time.monotonic()
    wait_for("snapshots go on", lambda: len(watch.of("east", killed)) >= 6, 60)
    terms = collections.defaultdict(list)  # on a slow machine there may be more than one, each with numbers of its own
    for snapshot in watch.of("east"):
        terms[snapshot["version"][:2]].append(snapshot["version"][2])
    assert all(numbers == list(range(numbers[0], numbers[0] + len(numbers))) for numbers in terms.values()), terms


def test_a_dead_leader_is_replaced_and_no_request_fails(fleet):
    load = steady(fleet)
    wait_for("load flows", lambda: len(load.so_far()) >= 10, 30)
    first = wait_for("somebody leads", fleet.leader, 60)
    pid = fleet.pid(first["optimizer"])
    os.kill(pid, signal.SIGSTOP)  # so that it does not end in order
    fleet.signalbox("stop", first["optimizer"])
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    second = wait_for("a successor leads", lambda: (row := fleet.leader()) and row["term"] > first["term"] and row, 60)
    assert second["optimizer"] != first["optimizer"]
    def taken():
        rows = fleet.inspect("routers")["routers"]
        return len(rows) == 2 and all(str(row["snapshot"]).startswith(f"{second['term']}@") for row in rows)
    wait_for("every router routes by the successor's snapshot", taken, 60)
    print(f"replaced on all routers after {time.monotonic() - killed:.2f} s")
    wait_for("more load flows", lambda n=len(load.so_far()): len(load.so_far()) >= n + 10, 30)
    answers = load.stop()
    assert not bad(answers), bad(answers)[:3]


def test_a_dead_engine_loses_no_request_that_had_no_byte(fleet):
    load = steady(fleet, rate=20, stream=True, tokens=150)
    wait_for("load flows", lambda: len(load.so_far()) >= 20, 30)
    pid, url = fleet.pid("e1"), fleet.engine_url("e1")
    wait_for("e1 has work", lambda: running(url) >= 2, 60, 0.01)
    os.kill(pid, signal.SIGKILL)
    wait_for("e1 is started again", lambda: fleet.processes()["e1"]["restarts"] == 1, 60)
    wait_for("more load flows", lambda n=len(load.so_far()): len(load.so_far()) >= n + 40, 30)
    answers = load.stop()
    lost = [a for a in bad(answers) if not a.chunk_times]
    assert not lost, lost[:3]
    assert any(a.attempts == 2 for a in answers) or any(a.chunk_times for a in bad(answers)), \
        "the engine had work when it died"


def test_a_dead_control_plane_leaves_the_routers_serving(new_fleet):
    config = example("laptop.toml")
    config.setdefault("intervals", {})["watchdog"] = "0s"  # who is stopped here is not to be found
    fleet = new_fleet(config).up()
    wait_for("both routers have a snapshot", lambda: all(row["snapshot"] for row in fleet.inspect("routers")["routers"]), 60)
    gone = ["optimizer-1", "optimizer-2", "monitor", "keeper", "proxy-east", "proxy-west", "bus-1", "bus-2"]
    for name in gone:
        fleet.kill(name, signal.SIGSTOP)  # dead to the others, and not started again
    load = steady(fleet, rate=15)
    wait_for("load flows", lambda: len(load.so_far()) >= 60, 30)
    answers = load.stop()
    for name in gone:
        fleet.kill(name, signal.SIGCONT)
    assert not bad(answers), bad(answers)[:3]
    assert len({a.engine for a in answers}) >= 4, "the plan in force goes on spreading requests"
