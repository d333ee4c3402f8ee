"""The network and the clocks are against the fleet: parts of it do not hear each other, or do not agree on the time."""

import collections
import os
import re
import shutil
import subprocess
import time

import pytest

from apart import Apart
from faults import ATTEMPTS, OPTIMIZERS, client_load, failed
from fleet import wait_for
from load import bad, chat

FAKETIME = ["/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1"]
HOUR_S = 3600


def heard_again(rig, name: str, since: float) -> None:
    rig.bus.first(f"{name} is heard", "beat", lambda h: h.source == name and h.body["ready"], since, 60)


def routes_by(rig, router: str, version) -> bool:
    beat = rig.bus.last("beat", router)
    return beat is not None and (beat.body["snapshot"]["term"]["counter"], beat.body["snapshot"]["term"]["optimizer"],
                                 beat.body["snapshot"]["sequence"]) >= version


def test_bus_partitioned(rig, figures, size):
    """Bus partitioned, one way and both ways."""
    router = "router-west"
    process = rig.apart(router)
    began = time.monotonic()
    heard_again(rig, router, began)
    healed_after, stale, failed = [], 0, 0
    for ways in (("in",), ("out",), ("in", "out")):
        process.cut(*ways)
        lasts = time.monotonic() + size("bus_partitioned_s")
        while time.monotonic() < lasts:
            failed += not chat(rig.urls[router], "m-small", f"cut off {ways} {lasts}", 4).good
        assert "out" not in ways or time.monotonic() - rig.bus.last("beat", router).at > 1, "it is cut off"
        newest = max(h.version for h in rig.bus.of("routing_snapshot"))
        healed = time.monotonic()
        process.cut()
        wait_for("the newest snapshot is in force", lambda n=newest: routes_by(rig, router, n), 30, 0.02)
        healed_after.append(time.monotonic() - healed)
        heard_again(rig, router, healed)
        taken = [h.version for h in rig.bus.accepted(router, healed)]
        stale += sum(version < newest for version in taken)
    versions = [h.version for h in rig.bus.accepted(router, began)]
    figures("newest snapshot in force after the heal", max(healed_after), "s", most=2)
    figures("older snapshots taken after the heal", stale, most=0, exact=True)
    figures("times that the router's version fell", sum(b <= a for a, b in zip(versions, versions[1:])), most=0, exact=True)
    figures("failed requests at the cut-off router", failed, most=0, exact=True)


def planned_loads(rig) -> list[float]:
    """What the plans in force put on each engine, over its capacity: each cluster's rows from the snapshot that its router took."""
    newest = {}
    for router in rig.bus.routers:
        cluster = router.removeprefix("router-")
        taken = rig.bus.accepted(router)[-1].version
        newest[cluster] = next(h.body for h in reversed(rig.bus.of("routing_snapshot"))
                               if h.version == taken and h.body["cluster"] == cluster)
    table = rig.bus.last("fleet_table").body
    out = []
    for index, engine in enumerate(table["engines"]):
        load = 0.0
        for body in newest.values():
            admits = {row["class"]: row for row in body["admits"]}
            slowness = next((row["slowness"] for row in body["prices"] if row["engine"] == index), 1.0)
            for row in body["weights"]:
                if row["engine"] == index and row["class"] in admits:
                    admit = admits[row["class"]]
                    work = admit["output_tokens"] * (engine["per_sequence_s"] + engine["per_context_token_s"] *
                                                     (admit["prompt_tokens"] + admit["output_tokens"] / 2))
                    work += engine["per_prefill_token_s"] * admit["prompt_tokens"]
                    load += slowness * row["weight"] * admit["planned_rps"] * admit["admit"] * work
        out.append(load)
    return out


def test_two_leaders(rig, figures, size, seed):
    """Partition in which both optimizers reach all engines."""
    load = client_load(rig, 60, seed, tokens=20)
    parts = [(OPTIMIZERS[0], "router-east", "bus-2"), (OPTIMIZERS[1], "router-west", "bus-1")]
    sides: list[tuple[Apart, str]] = [(rig.apart(name), bus) for *names, bus in parts for name in names]
    began = time.monotonic()
    for *names, _ in parts:
        for name in names:
            heard_again(rig, name, began)
    cut = time.monotonic()
    for process, bus in sides:
        process.cut("in", "out", bus=bus)
    for optimizer in OPTIMIZERS:
        rig.bus.first(f"{optimizer} leads", "beat", lambda h, o=optimizer: h.source == o and h.body["leads"], cut, 30)
    for optimizer, router, _ in parts:
        rig.bus.first(f"{router} follows {optimizer}", "snapshot_receipt",
                      lambda h, r=router, o=optimizer: h.source == r and h.body["reason"] == "accepted" and h.version[1] == o, cut, 30)
    highest, until = 0.0, time.monotonic() + size("two_leaders_s")
    while time.monotonic() < until:
        highest = max(highest, *planned_loads(rig))
        time.sleep(0.2)
    for process, _ in sides:
        process.cut()
    healed = time.monotonic()
    rig.bus.first("one of them steps down", "beat", lambda h: h.source in OPTIMIZERS and not h.body["leads"], healed + 1, 30)
    answers = load.stop()
    figures("highest planned load on an engine, both leaders together", highest, "of its capacity", most=1, exact=True)
    # Routers are killed to be put behind relays: those requests are the test's own doing.
    failed = [a for a in bad(answers) if a.began > cut]
    print(collections.Counter((a.status, a.reason, a.error, a.attempts, a.engine) for a in failed))
    figures("requests during the partition that failed", len(failed), most=0, exact=True)


def fake_clock(rig, folder) -> tuple[dict[str, str], object]:
    """The environment of a process whose wall clock the test sets, and how: set(seconds ahead of the true time)."""
    library = next((path for path in FAKETIME if os.path.exists(path)), None)
    if library is None:
        pytest.skip("no libfaketime")
    file = folder / "faketime"

    def set_clock(ahead_s: int) -> None:
        fresh = folder / "faketime.new"
        fresh.write_text(f"{ahead_s:+d}\n")
        fresh.rename(file)
    set_clock(0)
    return {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}, set_clock


def test_monitor_hears_nobody(rig, figures):
    """Monitor cut off from all that it hears."""
    process = rig.apart("monitor-2")
    heard_again(rig, "monitor-2", time.monotonic())
    log = process.log.read_text
    before = len(log())
    cut = time.monotonic()
    process.cut("in")
    # What it says does not leave it for long either: nobody acknowledges it.
    wait_for("it knows that it is isolated", lambda: "alert_raised monitor-isolated" in log()[before:], 60)
    known = time.monotonic()
    process.cut()
    heard_again(rig, "monitor-2", known)
    rig.bus.first("it judges again", "health_verdict", lambda h: h.source == "monitor-2" and not h.body["isolated"], known, 60)
    accused = set(re.findall(r"verdict (\S+) is (?:suspect|gone)", log()[before:]))
    rig.bus.heard_out("monitor")  # which hears everybody, and is the judge of who is healthy
    accused -= {h.body["engine"] for h in rig.bus.of("health_verdict", cut, "monitor") if h.body["state"] in ("suspect", "gone")}
    figures("knows that it is isolated after", known - cut, "s", most=6)  # the policy calls 5 s of silence too long
    figures("healthy engines that it declared gone or suspect", len(accused), most=0, exact=True)


def nothing_happens(rig, figures, happen) -> None:
    """That the clocks change neither who leads nor who is well. A machine short of CPU may do so by itself, but not each time."""
    for _ in range(ATTEMPTS):
        rig.calm()
        leader, term = rig.led()
        since = time.monotonic()
        happen()
        rig.bus.heard_out(leader, *rig.bus.monitors)
        leaders = {h.source for h in rig.bus.of("beat", since) if h.body["leads"]}
        verdicts = rig.bus.of("health_verdict", since)
        second = len(leaders) - 1 + (rig.term() != term)
        deaths = sum(h.body["state"] in ("gone", "suspect") for h in verdicts)
        if second == 0 and deaths == 0 and verdicts:
            break
    assert verdicts, "monitors speak"
    figures("second leaders", second, most=0, exact=True)
    figures("healthy engines declared gone or suspect", deaths, most=0, exact=True)


def test_wall_clocks(rig, figures, size, tmp_path):
    """Wall clock one hour ahead and behind."""
    leader, _ = rig.led()
    environment, set_clock = fake_clock(rig, tmp_path)
    names = [next(o for o in OPTIMIZERS if o != leader), "monitor", "proxy-east", "router-west"]
    for name in names:
        rig.apart(name, environment=environment, behind_relays=False)
    began = time.monotonic()
    for name in names:
        heard_again(rig, name, began)

    def jump():
        for ahead_s in (HOUR_S, -HOUR_S, 0):
            set_clock(ahead_s)
            time.sleep(size("clocks_s"))
    nothing_happens(rig, figures, jump)
    rig.bus.adoption("plans go on", lambda v: True, time.monotonic(), 20)


def test_monotonic_clocks(rig, figures, size):
    """Monotonic clocks that began at other times."""
    prefix = ["unshare", "-T", "--monotonic", str(30 * HOUR_S), "--fork", "--kill-child"]
    if os.geteuid() != 0 or shutil.which("unshare") is None or subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("no time namespaces")
    leader, _ = rig.led()
    standby = next(o for o in OPTIMIZERS if o != leader)
    rig.apart(standby, prefix, behind_relays=False)
    rig.apart("proxy-west", prefix, behind_relays=False)
    ahead = time.monotonic() + 20 * HOUR_S  # a watch on the bus has a message's time from its sender
    for name in (standby, "proxy-west"):
        heard_again(rig, name, ahead)
    began = time.monotonic()
    nothing_happens(rig, figures, lambda: time.sleep(size("clocks_s")))
    rig.bus.first("signals with another clock count as fresh", "routing_snapshot", lambda h: h.body["kind"] == "optimal", began, 30)


def test_writes_fail(rig, figures, seed):
    """EIO on write: of every standby when the leader dies, and of a router."""
    leader, term = rig.led()
    standby = next(o for o in OPTIMIZERS if o != leader)
    router = rig.bus.routers[0]
    rig.fail_syncs(standby)
    rig.fail_syncs(router)
    load = client_load(rig, 30, seed)
    since = time.monotonic()
    rig.kill_and_hold([leader])
    led = rig.bus.adoption("the standby leads, since nobody else can", lambda v: v[0] > term and v[1] == standby, since, 60)
    rig.bus.alert("term-not-kept", since, author=standby)
    rig.bus.alert("state-not-kept", since, author=router)
    answers = load.stop()
    rig.mend()
    rig.bus.alert("term-not-kept", since, raised=False, author=standby)
    figures("a leader whose term is not durable, after", led, "s", most=10)
    figures("failed requests", len(failed(answers)), most=0, exact=True)
