"""Engines die, hang, crawl and are restarted; clients see none of it, or are told."""

import collections
import time

from faults import client_load, failed
from fleet import wait_for
from load import bad
from watch import swing


def before_first_byte(answers) -> list:
    """Failed requests of which the client had no byte yet; printed by cause."""
    failed = [a for a in bad(answers) if not a.chunk_times]
    print(collections.Counter((a.status, a.reason, a.error, a.attempts) for a in failed))
    return failed


def cut_in_silence(answers) -> list:
    """Streams that ended early without an error event."""
    return [a for a in bad(answers) if a.chunk_times and '"error"' not in a.text]


def ready(rig, engine: str, since: float) -> None:
    rig.bus.first(f"{engine} may serve again", "health_verdict",
                  lambda h: h.body["engine"] == engine and h.body["state"] in ("ready", "starting"), since, 60)


def test_engine_killed(rig, figures, seed):
    """Engine killed."""
    load = client_load(rig, 40, seed, stream=True, tokens=24)
    wait_for("load flows", lambda: len(load.so_far()) >= 40, 30)
    killed = rig.kill_and_hold(["e1"])
    gone = rig.bus.zero_weight("e1", killed, 60)
    rig.bring_back(["e1"])
    answers = load.stop()
    figures("requests", len(answers))
    figures("failed before the first byte", len(before_first_byte(answers)), most=0, exact=True)
    figures("streams cut without an error event", len(cut_in_silence(answers)), most=0, exact=True)
    figures("weight 0 on every router", gone, "s", most=2)
    ready(rig, "e1", killed + gone)


def test_engine_hung_and_slow(rig, figures, seed):
    """Engine hung; 10x slow."""
    load = client_load(rig, 40, seed, stream=True)
    began = time.monotonic()
    time.sleep(4)
    hung, slow = rig.engine_fault("w1", hang=True), rig.engine_fault("w3", slow=10)
    noticed = rig.bus.first("w1 is not called ready", "health_verdict",
                            lambda h: h.body["engine"] == "w1" and h.body["state"] != "ready", hung, 20).at - hung
    time.sleep(max(0.0, slow + 8 - time.monotonic()))
    ended = time.monotonic()
    for engine in ("w1", "w3"):
        rig.engine_fault(engine)
    answers = load.stop()
    rig.bus.heard_out(*rig.bus.routers)
    figures("failed requests", len(failed(answers)), most=0, exact=True)
    figures("hung: noticed", noticed, "s", most=1)
    for engine, what in (("w1", "hung"), ("w3", "10x slow")):
        before, after = rig.bus.sent(engine, began + 1, hung), rig.bus.sent(engine, slow + 5, ended)
        assert before > 0.02, f"{engine} had work"
        figures(f"{what}: share of attempts after 5 s, to that before", after / before, "", most=0.2)


def test_region_lost(rig, figures, seed):
    """A whole region lost."""
    west = ["w1", "w2", "w3"]
    load = client_load(rig, 20, seed, models=("m-large",), stream=True)
    others = client_load(rig, 20, seed + 1, models=("m-small",), stream=True)
    wait_for("load flows", lambda: len(load.so_far()) >= 30, 30)
    killed = rig.kill_and_hold(west)
    gone = max(rig.bus.zero_weight(engine, killed, 60) for engine in west)
    settled = time.monotonic()
    time.sleep(2)
    rig.bring_back(west)
    for engine in west:
        ready(rig, engine, settled)
    back = time.monotonic()
    time.sleep(6)
    rig.bus.adoption("plans go on", lambda v: True, time.monotonic(), 30)
    answers = load.stop()
    figures("requests of a critical class", len(answers))
    # Of their three engines two died at once, and the policy tries two.
    figures("requests of another class that failed before the first byte", len(before_first_byte(others.stop())))
    figures("failed before the first byte", len(before_first_byte(answers)), most=0, exact=True)
    figures("weight 0 on every router", gone, "s", most=2)
    loads = [row["planned_load"] / row["capacity"] for s in rig.bus.of("routing_snapshot", settled) for row in s.body["prices"]
             if row["capacity"] > 0]
    figures("highest planned load, of what may be planned", max(loads), "", most=1.001, exact=True)
    weights = [sum(rig.bus.weight_rows(s, "w1")) for s in rig.bus.of("routing_snapshot", back) if s.body["cluster"] == "west"]
    figures("w1's weight going back and forth during recovery", swing(weights), "", most=0.5)


def test_engines_restarted(rig, figures, size, seed):
    """Engines restarted one after another under load."""
    load = client_load(rig, 40, seed, stream=True)
    for n in range(size("engines_restarted")):
        engine = rig.bus.engines[n % len(rig.bus.engines)]
        life = rig.bus.lives(engine)
        rig.ask(f"restart {engine}")
        rig.bus.first(f"{engine} may serve in another life", "health_verdict",
                      lambda h, e=engine, known=life: h.body["engine"] == e and h.body["state"] in ("ready", "starting")
                      and h.body["incarnation"]["random"] not in known, 0, 60)
    answers = load.stop()
    figures("restarts", size("engines_restarted"))
    figures("requests", len(answers))
    figures("failed before the first byte", len(before_first_byte(answers)), most=0, exact=True)
    figures("streams cut without an error event", len(cut_in_silence(answers)), most=0, exact=True)
