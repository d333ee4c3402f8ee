"""Leadership as a lease in etcd, a real one: leaders die and freeze, and so does etcd."""

import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import time

import pytest

from faults import ATTEMPTS, OPTIMIZERS, client_load, failed, kill_leaders, overloaded, running
from fleet import Fleet, east, wait_for

LEASE_S = 2


class Etcd:
    """One member, on ports of its own, which keeps what it knows in a folder."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        for port in range(30_100, 32_000, 130):  # below the ports that outgoing connections take
            self.client, self.peer = (f"http://127.0.0.1:{p}" for p in (port, port + 1))
            self.start()
            with contextlib.ExitStack() as unless:
                unless.callback(self.stop)
                if self.answers():
                    unless.pop_all()
                    return
        raise AssertionError((folder / "etcd.log").read_text()[-3000:])

    def start(self) -> None:
        with (self.folder / "etcd.log").open("a") as log:
            self.process = subprocess.Popen(
                ["etcd", "--data-dir", self.folder / "data", "--listen-client-urls", self.client, "--advertise-client-urls", self.client,
                 "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer, "--initial-cluster", f"default={self.peer}"],
                stdout=log, stderr=log)

    def answers(self) -> bool:
        """Whether it does before it ends."""
        def asked():
            done = subprocess.run(["curl", "-sf", "-m", "1", f"{self.client}/health"], capture_output=True, text=True)
            return self.process.poll() is not None or "true" in done.stdout
        wait_for("etcd answers or ends", asked, 180)
        return self.process.poll() is None

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory):
    if shutil.which("etcd") is None:
        pytest.skip("no etcd: tools/setup etcd")
    member = Etcd(tmp_path_factory.mktemp("etcd"))
    yield member
    member.stop()


@pytest.fixture(scope="module")
def shared_rig(etcd, tmp_path_factory):
    """In the place of the fleet that other rows share: one whose optimizers agree by etcd."""
    config = east()
    config["control"] = {**config.get("control", {}), "coordination": "etcd", "etcd": [etcd.client], "lease": f"{LEASE_S}s"}
    with running(Fleet(tmp_path_factory.mktemp("chaos-etcd") / "fleet", config)) as rig:
        yield rig


def terms_taken(rig, since: float) -> list[list[int]]:
    return [[h.version[0] for h in rig.bus.accepted(router, since)] for router in rig.bus.routers]


def test_leader_killed(rig, figures, size, seed):
    """With etcd: leader killed, 100 requests/s."""
    for _ in range(ATTEMPTS):
        load = client_load(rig, 100, seed)
        times = kill_leaders(rig, size("etcd_leader_killed"), 60)
        answers = load.stop()
        if not overloaded(lost := failed(answers)):
            break
    figures("times killed", len(times))
    figures("successor's snapshot on all routers, median", statistics.median(times), "s", most=4)
    figures("requests", len(answers))
    figures("failed requests", len(lost), most=0, exact=True)


def test_leader_frozen(rig, figures):
    """With etcd: leader frozen until its lease is over, then resumed."""
    began = time.monotonic()
    leader, term = rig.led()
    pid = rig.freeze(leader)
    rig.bus.adoption("every router has the successor's snapshot", lambda v: v[0] > term, began, 60)
    resumed = rig.thaw(pid)
    rig.bus.first("the old leader stands by", "beat", lambda h: h.source == leader and not h.body["leads"], resumed, 20)
    rig.bus.adoption("plans go on", lambda v: v[0] > term, time.monotonic(), 20)
    figures("snapshots of the old term applied after its leader resumed",
            sum(t <= term for terms in terms_taken(rig, resumed) for t in terms), most=0, exact=True)
    figures("times that a router's term fell", sum(b < a for terms in terms_taken(rig, began) for a, b in zip(terms, terms[1:])), most=0, exact=True)


@pytest.mark.parametrize("how", ["frozen", "killed"])
def test_etcd_dies(rig, etcd, figures, seed, how):
    """With etcd: etcd frozen; killed."""
    leader, term = rig.led()
    load = client_load(rig, 30, seed)
    lost = time.monotonic()
    if how == "frozen":
        os.kill(etcd.process.pid, signal.SIGSTOP)
    else:
        etcd.stop()
    stopped = rig.bus.first("the leader steps down", "beat", lambda h: h.source == leader and not h.body["leads"], lost, 30).at
    rig.bus.alert("coordination-lost", lost, timeout_s=30)
    time.sleep(1)
    rig.bus.heard_out(*OPTIMIZERS)  # nobody speaks as a leader for a while
    said = [h for h in rig.bus.of("routing_snapshot", stopped) if h.source in OPTIMIZERS]
    if how == "frozen":
        os.kill(etcd.process.pid, signal.SIGCONT)
    else:
        etcd.start()
        assert etcd.answers()
    back = time.monotonic()  # one that was started anew gives every lease its whole time again
    leads_again = rig.bus.adoption("somebody leads again, in a higher term", lambda v: v[0] > term, back, 60)
    rig.bus.alert("coordination-lost", back, raised=False, timeout_s=30)
    answers = load.stop()
    figures(f"{how}: leader stepped down after", stopped - lost, "s", most=LEASE_S)
    figures(f"{how}: snapshots said without a lease", len(said), most=0, exact=True)
    figures(f"{how}: next snapshot on all routers, after etcd is back", leads_again, "s", most=4)
    figures(f"{how}: failed requests", len(failed(answers)), most=0, exact=True)
