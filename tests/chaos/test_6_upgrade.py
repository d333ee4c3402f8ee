"""Everything that can be replaced by a newer version is, one after another, while clients ask.

SIGNALBOX_BEFORE names the binary of the version before; without it the versions are alike, and still it is a new file
that takes the old one's place."""

import os
import pathlib
import shutil
import signal
import time

from apart import Apart
from faults import client_load, failed
from fleet import find_binary, wait_for

# As docs/operations.md advises: forwarders one by one, of each pair one at a time.
CONTROL_PLANE = [["bus-1"], ["bus-2"], ["keeper", "monitor", "proxy-east", "optimizer-1"], ["monitor-2", "proxy-west", "optimizer-2"]]


def put_in_place(rig, binary: pathlib.Path) -> None:
    """As a package does it: a new file by the old name. Processes that run keep the old one."""
    for source, name in ((binary, "signalbox"), (binary.with_name("signalbox-solver"), "real")):
        fresh = rig.fleet.binary.with_name("fresh")
        shutil.copy2(source, fresh) if name == "signalbox" else fresh.write_text(str(source))
        fresh.rename(rig.fleet.binary.with_name(name))


def restart(rig, names: list[str]) -> None:
    before = {name: rig.pid(name) for name in names}
    for name in names:
        rig.ask(f"restart {name}")
    def all_ready():
        rows = rig.processes()
        return all(rows[n]["pid"] not in (None, before[n]) and rows[n]["ready"] for n in names)
    wait_for(f"{names} are ready again", all_ready, 120, 0.05)
    rig.settle()


def hand_over(rig, router: str) -> None:
    """A second process of this router beside the first one; then the launcher's is replaced, and the second one leaves."""
    beside = Apart(rig.fleet, router, [], {}, behind_relays=False)
    try:
        wait_for("the successor accepts", lambda: "accepting" in beside.said(), 60)
        own = rig.fleet.state / "logs" / f"{router}.log"
        before = own.read_text().count("accepting")
        restart(rig, [router])
        # Two processes beat by this name: that one is ready does not say which.
        wait_for("the launcher's accepts", lambda: own.read_text().count("accepting") > before, 60)
        beside.process.send_signal(signal.SIGTERM)
        beside.process.wait(timeout=60)
    finally:
        beside.close()


def test_everything_is_replaced(rig, figures, seed):
    """Control plane and routers replaced one after another under load."""
    now, before = find_binary(), pathlib.Path(os.environ.get("SIGNALBOX_BEFORE") or find_binary())
    if before != now:
        put_in_place(rig, before)
        restart(rig, [name for names in CONTROL_PLANE for name in names] + rig.bus.routers)
    load = client_load(rig, 40, seed, stream=True)
    began = time.monotonic()
    put_in_place(rig, now)
    lives = {name: row["pid"] for name, row in rig.processes().items() if row["role"] != "engine-sim"}
    for names in CONTROL_PLANE:
        restart(rig, names)
    for router in rig.bus.routers:
        hand_over(rig, router)
    after = rig.processes()
    assert all(after[name]["pid"] != pid for name, pid in lives.items()), "nobody was left out"
    runs = {name: os.readlink(f"/proc/{after[name]['pid']}/exe") for name in lives}
    assert set(runs.values()) == {str(rig.fleet.binary.resolve())}, "the new file"
    rig.bus.adoption("plans go on", lambda v: True, time.monotonic(), 30)
    answers = load.stop()
    figures("processes replaced", len(lives))
    figures("took", time.monotonic() - began, "s")
    figures("requests", len(answers))
    figures("failed requests", len(failed(answers)), most=0, exact=True)
