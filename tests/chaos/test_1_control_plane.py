"""Leaders, monitors, forwarders and the whole control plane fail; requests do not."""

import statistics
import time

from faults import CONTROL_PLANE, TOKENS, bad, client_load, cpu_seconds
from fleet import wait_for
from load import chat, unlike

def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def test_leader_killed(rig, figures, size, seed):
    """Leader killed, 100 requests/s."""
    load = client_load(rig, 100, seed)
    times = []
    for n in range(size("leader_killed")):
        leader = wait_for("one leads and one stands by", rig.leader, 30)
        term = rig.term()
        # One that its launcher starts again says that it leads no more; one that stays dead must be missed.
        killed = rig.kill(leader) if n % 3 == 2 else rig.kill_and_hold([leader])
        times.append(rig.bus.adoption("every router has the successor's snapshot", lambda v: v[0] > term, killed, 30))
        rig.mend()
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
    figures("CPU per request, change", abs(cpu / cpu_before - 1), "share", most=0.05)
    figures("median latency, change", abs(p50 / p50_before - 1), "share", most=0.10)
    figures("killed router serves again after", first.began + first.total_s - killed, "s", most=1)
    assert first.snapshot not in ("", "0.0"), "by the snapshot that it had kept"
