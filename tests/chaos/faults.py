"""What is done to a fleet, and how it is made whole again."""

import collections
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

import faulty_solver
from apart import Apart
from bus_watch import BusWatch
from fleet import Fleet, wait_for
from load import Answer, Load, bad, chat, unlike
from member import Keys, Member, place_of

OPTIMIZERS = ["optimizer-1", "optimizer-2"]
CONTROL_PLANE = [*OPTIMIZERS, "monitor", "monitor-2", "keeper", "proxy-east", "proxy-west", "bus-1", "bus-2"]


class Rig:
    """A fleet, its bus under watch, and the faults that are in force."""

    def __init__(self, fleet: Fleet, bus: BusWatch):
        self.fleet, self.bus = fleet, bus
        self.urls = {r: fleet.url(r) for r in bus.routers}
        self._down: set[str] = set()
        self._frozen: set[int] = set()
        self._faulty: set[str] = set()
        self._full: set[str] = set()
        self._solver_fails = False
        self.rested_at = 0.0
        self.loads: list[Load] = []
        self._members: list[Member] = []
        self._apart: dict[str, Apart] = {}
        self._tracers: list[subprocess.Popen] = []

    # --- the launcher

    def ask(self, question: str) -> str:
        """The launcher's answer, without the price of a command's start."""
        folder = os.open(self.fleet.state, os.O_PATH | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(60)
                line.connect(f"/proc/self/fd/{folder}/launcher.sock")
                line.sendall(question.encode() + b"\n")
                return b"".join(iter(lambda: line.recv(65536), b"")).decode()
        finally:
            os.close(folder)

    def processes(self) -> dict[str, dict]:
        return {row["process"]: row for row in json.loads(self.ask("status json"))["processes"]}

    def pid(self, name: str) -> int:
        return self.processes()[name]["pid"]

    # --- faults

    def kill(self, name: str) -> float:
        """Kills a process, which its launcher starts again; the time at which it died."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        return time.monotonic()

    def kill_and_hold(self, names: list[str]) -> float:
        """Kills processes at once and keeps them down; the time at which they died."""
        running = self.processes()
        pids = [running[name]["pid"] for name in names]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)  # so that the launcher's SIGTERM does not let it end in order
        for name in names:
            self.ask(f"stop {name}")
        died = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self._down |= set(names)
        return died

    def bring_back(self, names: list[str]) -> None:
        for name in names:
            self.ask(f"restart {name}")
        self._down -= set(names)

    def freeze(self, name: str) -> int:
        pid = self.pid(name)
        os.kill(pid, signal.SIGSTOP)
        self._frozen.add(pid)
        return pid

    def thaw(self, pid: int) -> float:
        self._frozen.discard(pid)
        os.kill(pid, signal.SIGCONT)
        return time.monotonic()

    def engine_fault(self, engine: str, **faults) -> float:
        """Sets a simulated engine's injected faults; none: clears them."""
        address = next(e["url"] for e in self.fleet.config["engine"] if e["name"] == engine)
        url = self.processes()[engine]["serves"] if "+" in address else address.removeprefix("http://")
        body = json.dumps({"reset": True, **faults}).encode()
        request = urllib.request.Request(f"http://{url}/admin/faults", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30):
            pass
        (self._faulty.add if faults else self._faulty.discard)(engine)
        return time.monotonic()

    def solver_fault(self, optimizer: str | None, fault: str = "") -> None:
        """One optimizer's solver fails from now on; None: nobody's."""
        self._solver_fails = optimizer is not None
        faulty_solver.set_fault(self.fleet.binary, optimizer, fault)

    def fill_disk(self, name: str) -> None:
        """Nothing can be written to a process's state folder any more: a full file system lies over it."""
        folder = self.fleet.state / "processes" / name
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "full", folder]).returncode != 0:
            pytest.skip("mounting a file system takes root")
        self._full.add(name)
        (folder / "full").write_bytes(bytes(4096))

    def fail_syncs(self, name: str) -> None:
        """What a process has written cannot be made durable any more: fsync answers with EIO."""
        command = ["strace", "-f", "-q", "-p", str(self.pid(name)), "-e", "trace=fsync", "-e", "inject=fsync:error=EIO"]
        try:
            tracer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except FileNotFoundError:
            pytest.skip("no strace")
        self._tracers.append(tracer)
        status = pathlib.Path(f"/proc/{self.pid(name)}/status")
        if not wait_for("it is traced", lambda: tracer.poll() is not None or "TracerPid:\t0\n" not in status.read_text(), 60):
            return
        if tracer.poll() is not None:
            pytest.skip(f"processes may not be traced: {tracer.stderr.read().decode()}")

    def apart(self, name: str, prefix: list[str] = (), environment: dict[str, str] | None = None, behind_relays: bool = True) -> Apart:
        """Takes a process from its launcher and runs it behind relays, or by way of `prefix` and in `environment`."""
        self.kill_and_hold([name])
        wait_for(f"{name} is down", lambda: self.pid(name) is None, 60, 0.02)
        self._apart[name] = Apart(self.fleet, name, list(prefix), environment or {}, behind_relays)
        return self._apart[name]

    def member(self, keys: Keys, forwarder: str = "bus-1") -> Member:
        """Somebody on the bus who is not ours."""
        self._members.append(Member(place_of(self.fleet, forwarder), keys))
        return self._members[-1]

    # --- whole again

    def mend(self) -> None:
        while self.loads:
            self.loads.pop().stop()
        while self._members:
            self._members.pop().close()
        for tracer in self._tracers:
            tracer.terminate()
            tracer.wait()
        self._tracers.clear()
        for name, process in self._apart.items():
            process.close()
        self._apart.clear()
        self.bus.forget_after(time.monotonic() + 3600)
        for pid in list(self._frozen):
            self.thaw(pid)
        for engine in list(self._faulty):
            self.engine_fault(engine)
        for name in list(self._full):
            subprocess.run(["umount", self.fleet.state / "processes" / name], check=True)
            self._full.discard(name)
        if self._solver_fails:
            self.solver_fault(None)
        if self._down:
            self.bring_back(sorted(self._down))

    def settle(self, timeout_s: float = 120) -> None:
        """Waits until every process runs and is ready, and the fleet is calm."""
        def whole():
            rows = self.processes()
            return not [n for n, r in rows.items() if r["runs"] != "running" or not (r["ready"] or r["role"] == "engine-sim")]
        wait_for("the fleet is whole", whole, timeout_s, 0.1)
        self.calm(timeout_s)

    def calm(self, timeout_s: float = 120) -> None:
        """Waits until somebody leads, every router has a plan of the leader's, and no monitor accuses an engine."""
        wait_for("one leads and one stands by", self._led, timeout_s, 0.1)
        wait_for("every router follows the leader", lambda: (led := self._led()) and all(self._follows(r, led) for r in self.bus.routers), timeout_s, 0.1)
        wait_for("no engine is accused", lambda: not self.accused(), timeout_s, 0.1)

    def led(self, timeout_s: float = 60) -> tuple[str, int]:
        """Who leads and in which term; waits until somebody does and the other one has listened for long enough to take over."""
        return wait_for("one leads and one stands by", self._led, timeout_s, 0.02)

    def _led(self) -> tuple[str, int] | None:
        snapshot = self.bus.last("routing_snapshot")
        if not snapshot:
            return None
        term, leader, _ = max(s.version for s in [snapshot, *self.bus.of("routing_snapshot", snapshot.at - 10)])
        beats = [self.bus.last("beat", name) for name in OPTIMIZERS]
        if any(b is None or time.monotonic() - b.at > 1.5 or not b.body["ready"] for b in beats):
            return None
        leads = {b.source: b.body["leads"] for b in beats}
        listened = all(b.body["uptime_s"] > 1.2 and b.body["term"]["counter"] == term for b in beats if b.source != leader)
        return (leader, term) if leads.pop(leader) and not any(leads.values()) and listened else None

    def _follows(self, router: str, led: tuple[str, int]) -> bool:
        beat = self.bus.last("beat", router)
        term = beat and beat.body["snapshot"]["term"]
        return bool(term) and (term["optimizer"], term["counter"]) == led

    def accused(self) -> set[tuple[str, str]]:
        """Which monitor calls which engine suspect or gone, by its last word."""
        latest = {(h.source, h.body["engine"]): h.body["state"] for h in self.bus.of("health_verdict", time.monotonic() - 60)}
        return {who for who, state in latest.items() if state in ("suspect", "gone")}

    def term(self) -> int:
        return max(h.version[0] for h in self.bus.of("routing_snapshot"))


MODELS = ("m-large", "m-small")
TOKENS = 8
# At what a machine short of CPU may spoil by itself, but not each time. A soak has a machine of its own.
ATTEMPTS = 1 if os.environ.get("SIGNALBOX_TEST_SIZE") == "soak" else 3


def client_load(rig: Rig, rate_per_s: float, seed: int, models: tuple[str, ...] = MODELS, stream: bool = False,
                tokens: int = TOKENS) -> Load:
    """Requests over all routers and these models in turn."""
    urls = list(rig.urls.values())
    def send(n: int):
        return chat(urls[n % len(urls)], models[n // len(urls) % len(models)], unlike(n + 1_000_000 * seed), tokens, stream=stream)
    rig.loads.append(Load(send, rate_per_s, seed))
    return rig.loads[-1]


def failed(answers: list[Answer]) -> list[Answer]:
    """Those without a whole answer; printed by cause."""
    found = bad(answers)
    print(collections.Counter((a.status, a.reason, a.error, a.attempts, a.engine, bool(a.chunk_times)) for a in found))
    return found


def overloaded(lost: list[Answer]) -> bool:
    """Whether these were all refused as more than the fleet can do: a machine short of CPU makes its engines slow."""
    return bool(lost) and all(a.reason in ("shed_by_plan", "shed_by_limit", "queue_full", "queue_timeout") for a in lost)


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill_leaders(rig: Rig, times: int, within_s: float, held=lambda n: True) -> list[float]:
    """Kills whoever leads, again and again; how long each time every router waited for its successor's snapshot. `held`: whether the
    nth one stays dead until then, or its launcher starts it again at once."""
    took = []
    for n in range(times):
        leader, term = rig.led()
        killed = rig.kill_and_hold([leader]) if held(n) else rig.kill(leader)
        took.append(rig.bus.adoption("every router has the successor's snapshot", lambda v, t=term: v[0] > t, killed, within_s))
        if held(n):
            rig.bring_back([leader])
    return took


@contextlib.contextmanager
def running(fleet: Fleet):
    """The fleet from its start to its end, as a rig."""
    try:
        fleet.up()
        yield Rig(fleet, BusWatch(fleet))
    finally:
        fleet.down()
