"""Weights follow what is measured: a slow engine, a longer network; the legacy balancer beside it overshoots."""

import time

import pytest

from fleet import example, wait_for
from load import Load, chat, unlike
from watch import SnapshotWatch, swing

CLASSES = ["chat", "draft", "batch", "small"]  # as in laptop.policy
RATE = 8.0


@pytest.fixture
def loads():
    """loads(fleet) starts load on both routers, on both models; stopped after the test."""
    running = []

    def start(fleet, rate: float = RATE) -> list[Load]:
        for router in ("router-east", "router-west"):
            url = fleet.url(router)
            running.append(Load(lambda n, url=url: chat(url, ("m-large", "m-small")[n % 2], unlike(n), 24), rate, seed=len(running)))
        return running

    yield start
    for load in running:
        load.stop()


def settled(watch: SnapshotWatch, cluster: str, request_class: str, engine: str, timeout_s: float = 40) -> float:
    """Waits until the engine's weight has hardly moved for five snapshots; returns it."""
    def calm():
        last = watch.weights(cluster, request_class, engine)[-5:]
        return len(last) == 5 and max(last) - min(last) < 0.08 and (sum(last) / 5 + 1e-9)
    return wait_for(f"the weight of {engine} in {cluster} settles", calm, timeout_s)


def test_a_slow_engine_loses_weight_and_nothing_swings(new_fleet, loads):
    fleet = new_fleet(example("laptop.toml")).up()
    loads(fleet)
    watch = SnapshotWatch(fleet, CLASSES)
    before = settled(watch, "west", "chat", "w1")
    assert before > 0.2, "the fastest engine carries a share worth taking"
    slowed = time.monotonic()
    fleet.faults("w1", slow=3)
    wait_for("the weight falls", lambda: [w for w in watch.weights("west", "chat", "w1", slowed) if w < 0.8 * before], 15)
    after = settled(watch, "west", "chat", "w1")
    assert after < 0.7 * before, (before, after)
    calm = time.monotonic()
    wait_for("ten more snapshots", lambda: len(watch.of("west", calm)) >= 10, 30)
    assert swing(watch.weights("west", "chat", "w1", calm)) < 0.3


def test_a_longer_network_keeps_requests_at_home(new_fleet, loads):
    fleet = new_fleet(example("laptop.toml")).up()
    loads(fleet)
    watch = SnapshotWatch(fleet, CLASSES)
    before = settled(watch, "east", "chat", "w1")
    assert before > 0.05, "the east uses the west's fast engine"
    fleet.signalbox("order", "network", "east", "west", "2.0")
    wait_for("the east leaves the west's engine", lambda: watch.weights("east", "chat", "w1")[-1] < 0.5 * before, 15)


def test_the_legacy_balancer_swings_where_the_optimizer_does_not(new_fleet, loads):
    config = example("feedback.toml")
    config["control"].update(feedback_gain=2.0, feedback_delay=3)
    fleet = new_fleet(config).up()
    loads(fleet)
    watch = SnapshotWatch(fleet, CLASSES)
    wait_for("weights come", lambda: len(watch.of("east")) >= 5, 30)
    slowed = time.monotonic()
    fleet.faults("e1", slow=3)
    wait_for("twenty periods", lambda: len(watch.of("east", slowed)) >= 20, 60)
    series = watch.weights("east", "chat", "e1", slowed)
    assert swing(series) > 0.3, series
