"""Leaders, monitors, forwarders and the whole control plane fail; requests do not."""

import os
import signal
import statistics
import time

from faults import CONTROL_PLANE, OPTIMIZERS, TOKENS, client_load, cpu_seconds, kill_leaders
from fleet import wait_for
from load import bad, chat, unlike

REST_S = 5.5  # how long an optimizer that resigned does not stand
PERIOD_S = 1.0  # of plans, in the laptop's configuration


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def test_leader_killed(rig, figures, size, seed):
    """Leader killed, 100 requests/s."""
    load = client_load(rig, 100, seed)
    # One that its launcher starts again says that it leads no more; one that stays dead must be missed.
    times = kill_leaders(rig, size("leader_killed"), 30, held=lambda n: n % 3 != 2)
    answers = load.stop()
    figures("times killed", len(times))
    figures("successor's snapshot on all routers, median", statistics.median(times), "s", most=2)
    figures("successor's snapshot on all routers, 95th percentile", percentile(times, 0.95), "s", most=3)
    figures("requests", len(answers))
    figures("failed requests", len(bad(answers)), most=0, exact=True)


def test_leader_frozen(rig, figures, size):
    """Leader frozen, then resumed."""
    began = time.monotonic()
    leader, term = rig.leader(), rig.term()
    pid = rig.freeze(leader)
    frozen = time.monotonic()
    rig.bus.adoption("every router has the successor's snapshot", lambda v: v[0] > term, frozen, 30)
    time.sleep(max(0.0, frozen + size("leader_frozen_s") - time.monotonic()))
    resumed = rig.thaw(pid)
    rig.bus.first("the old leader stands by", "beat", lambda h: h.source == leader and not h.body["leads"], resumed, 20)
    rig.bus.adoption("plans go on", lambda v: v[0] > term, time.monotonic(), 20)
    taken = {r: [h.version for h in rig.bus.accepted(r, began)] for r in rig.bus.routers}
    fallen = sum(b <= a for versions in taken.values() for a, b in zip(versions, versions[1:]))
    old = sum(h.version[0] <= term for r in rig.bus.routers for h in rig.bus.accepted(r, resumed))
    figures("snapshots of the old term applied after its leader resumed", old, most=0, exact=True)
    figures("times that a router's version fell", fallen, most=0, exact=True)


def test_forwarder_killed(rig, figures):
    """Bus forwarder killed."""
    before = rig.bus.last("routing_snapshot").version
    killed = rig.kill("bus-1")
    newest = rig.bus.adoption("every router takes a newer snapshot", lambda v: v > before, killed, 20)
    time.sleep(2)
    for router in rig.bus.routers:
        numbers = [h.version[2] for h in rig.bus.accepted(router, killed)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), (router, numbers)
    figures("next snapshot on all routers", newest, "s", most=2)


def test_control_plane_dead(rig, figures, size, seed):
    """The whole control plane dead, a router restarted meanwhile."""
    lasts = size("control_plane_dead_s")
    pids = [rig.pid(r) for r in rig.bus.routers]

    def serve(seconds: float):
        used = sum(map(cpu_seconds, pids))
        load = client_load(rig, 50, seed)
        time.sleep(seconds)
        answers = load.stop()
        return answers, (sum(map(cpu_seconds, pids)) - used) / len(answers), statistics.median(a.total_s for a in answers)
    before, cpu_before, p50_before = serve(min(lasts, 30))
    rig.kill_and_hold(CONTROL_PLANE)
    answers, cpu, p50 = serve(lasts)
    router = rig.bus.routers[0]
    killed = rig.kill(router)
    first = wait_for("the restarted router serves", lambda: (a := chat(rig.urls[router], "m-small", "again", TOKENS)).good and a, 20, 0.02)
    after = [chat(rig.urls[router], "m-small", unlike(n), TOKENS) for n in range(5)]
    rig.bring_back(CONTROL_PLANE)
    figures("requests without a control plane", len(answers))
    figures("failed requests", len(bad(before + answers + after)), most=0, exact=True)
    figures("CPU per request, rise", max(0.0, cpu / cpu_before - 1), "share", most=0.05)
    figures("median latency, rise", max(0.0, p50 / p50_before - 1), "share", most=0.10)
    figures("killed router serves again after", first.began + first.total_s - killed, "s", most=1)
    assert first.snapshot not in ("", "0.0"), "by the snapshot that it had kept"


def test_solver_fails(rig, figures, size, seed):
    """Leader's solver hangs, returns NaN, crashes, finds no solution."""
    load = client_load(rig, 20, seed)
    held, replaced = [], []
    for fault in ("hang", "nan", "crash", "infeasible")[:size("solver_faults")]:
        leader = wait_for("one leads and one stands by", rig.leader, 30)
        term, since = rig.term(), time.monotonic()
        rig.solver_fault(leader, fault)
        rig.bus.alert("plan-held", since)
        hold = rig.bus.first("the plan is held", "routing_snapshot", lambda h: h.source == leader and h.body["kind"] == "hold", since, 20)
        before = max(h.at for h in rig.bus.of("routing_snapshot", 0, leader) if h.body["kind"] == "optimal" and h.at < hold.at)
        replaced.append(rig.bus.adoption("a successor plans", lambda v: v[0] > term, since, 30))
        holds = {h.version for h in rig.bus.of("routing_snapshot", since, leader) if h.body["kind"] == "hold"}
        assert 1 <= len(holds) <= 3, f"{fault}: replaced after three periods, not {len(holds)}"
        rig.solver_fault(None)
        rig.rested_at = time.monotonic() + REST_S
        held.append(hold.at - before - PERIOD_S)
    answers = load.stop()
    figures("hold plan, after a new one was due", max(held), "s", most=1)
    figures("successor's snapshot on all routers, after the first failure", max(replaced), "s", most=6)
    figures("failed requests", len(bad(answers)), most=0, exact=True)


def test_monitor_starved(rig, figures, size):
    """CPU starved to 10 % for the monitor."""
    began, pid = time.monotonic(), rig.freeze("monitor")
    while time.monotonic() < began + size("monitor_starved_s"):
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.09)
    rig.thaw(pid)
    time.sleep(1)
    verdicts = rig.bus.of("health_verdict", began, "monitor")
    assert len(verdicts) > 3, "it still speaks"
    figures("verdicts while starved", len(verdicts))
    figures("healthy engines declared gone or suspect", sum(h.body["state"] in ("gone", "suspect") for h in verdicts), most=0, exact=True)


def test_disk_full(rig, figures, seed):
    """Disk full: of the standby when the leader dies, and of a router."""
    time.sleep(max(0.0, rig.rested_at - time.monotonic()))  # who just resigned does not stand
    leader = wait_for("one leads and one stands by", rig.leader, 30)
    standby = next(o for o in OPTIMIZERS if o != leader)
    router = rig.bus.routers[0]
    rig.fill_disk(standby)
    rig.fill_disk(router)
    load = client_load(rig, 30, seed)
    term, killed = rig.term(), rig.kill(leader)
    rig.bus.adoption("the leader leads again, since its standby cannot", lambda v: v[0] > term and v[1] == leader, killed, 30)
    assert rig.bus.alert("term-not-kept", killed).source == standby
    assert rig.bus.alert("state-not-kept", killed, timeout_s=20).source == router
    answers = load.stop()
    figures("failed requests", len(bad(answers)), most=0, exact=True)
