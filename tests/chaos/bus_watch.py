"""What is said on a fleet's bus, heard by a tap in the background. Times are the senders' own: on one machine the
envelope's monotonic time is time.monotonic()."""

import dataclasses
import json
import subprocess
import threading
import time

from fleet import Fleet, wait_for

HEARD = ["beat", "snapshot_receipt", "routing_snapshot", "keep_alive", "health_verdict", "alert", "outcome_report", "engine_signal",
         "fleet_table", "policy", "order"]

Version = tuple[int, str, int]  # term, optimizer, sequence


def version_of(body: dict) -> Version:
    return body["term"]["counter"], body["term"]["optimizer"], body["sequence"]


@dataclasses.dataclass
class Heard:
    at: float
    kind: str
    topic: str
    source: str
    life: int  # the random part of the sender's incarnation
    sequence: int
    body: dict

    @property
    def version(self) -> Version:
        return version_of(self.body["version"])


class BusWatch:
    def __init__(self, fleet: Fleet, messages: list[str] | None = None):
        self.fleet = fleet
        self.engines = [engine["name"] for engine in fleet.config["engine"]]
        self.routers, self.monitors = ([p["id"] for p in fleet.config["process"] if p["role"] == role] for role in ("cluster-router", "health-monitor"))
        self._heard: dict[str, list[Heard]] = {}
        self._forgotten: set[int] = set()  # lives
        self._lock = threading.Lock()
        self.start(messages or HEARD)
        fleet.on_down.append(self.stop)

    def start(self, messages: list[str]) -> None:
        kinds = [part for message in messages for part in ("--message", message)]
        self.tap = subprocess.Popen(self.fleet.command("tap", "--json", *kinds), stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.tap.stdout:
            message = json.loads(line)
            heard = Heard(message["sent_s"], message["message"], message["topic"], message["source"],
                          message["incarnation"]["random"], message["sequence"], message["body"])
            with self._lock:
                if heard.life not in self._forgotten:
                    self._heard.setdefault(heard.kind, []).append(heard)

    def stop(self) -> None:
        self.tap.terminate()
        self.tap.wait(timeout=20)
        self._reader.join()

    def forget_after(self, at: float) -> None:
        """Messages of processes whose clock was ahead, and what may yet come of them: they would count as news for ever."""
        with self._lock:
            self._forgotten |= {h.life for heard in self._heard.values() for h in heard if h.at >= at}
            for heard in self._heard.values():
                heard[:] = [h for h in heard if h.life not in self._forgotten]

    def _said(self, kind: str) -> list[Heard]:
        with self._lock:
            return list(self._heard.get(kind, []))

    def of(self, kind: str, since: float = 0.0, source: str | None = None) -> list[Heard]:
        """In the order of arrival."""
        return [h for h in self._said(kind) if h.at >= since and source in (None, h.source)]

    def last(self, kind: str, source: str | None = None) -> Heard | None:
        for heard in reversed(self._said(kind)):
            if source in (None, heard.source):
                return heard
        return None

    def first(self, what: str, kind: str, fits, since: float, timeout_s: float) -> Heard:
        """The first message of a kind since a time that fits; waits for it."""
        return wait_for(what, lambda: next((h for h in self.of(kind, since) if fits(h)), None), timeout_s, 0.02)

    def alert(self, name: str, since: float, raised: bool = True, author: str | None = None, timeout_s: float = 60) -> Heard:
        """An alert that stands is repeated each 10 s."""
        return self.first(f"alert {name} is {'raised' if raised else 'cleared'} by {author or 'anybody'}", "alert",
                          lambda h: h.body["name"] == name and h.body["raised"] == raised and author in (None, h.source), since, timeout_s)

    def heard_out(self, *sources: str, timeout_s: float = 60) -> None:
        """Waits until all that these processes have said by now is heard: what one says comes in its order."""
        now = time.monotonic()
        for source in sources:
            self.first(f"{source} is heard", "beat", lambda h, s=source: h.source == s, now, timeout_s)

    def accepted(self, router: str, since: float = 0.0) -> list[Heard]:
        """The receipts by which a router took a snapshot."""
        return [h for h in self.of("snapshot_receipt", since, router) if h.body["reason"] == "accepted"]

    def adoption(self, what: str, fits, since: float, timeout_s: float) -> float:
        """When every router had accepted a version that fits: seconds after `since`."""
        def taken():
            firsts = [next((h.at for h in self.accepted(r, since) if fits(h.version)), None) for r in self.routers]
            return None if None in firsts else max(firsts)
        return wait_for(what, taken, timeout_s, 0.02) - since

    def weight_rows(self, snapshot: Heard, engine: str) -> list[float]:
        """The engine's weights in one snapshot, of the classes that have one."""
        index = self.engines.index(engine)
        return [row["weight"] for row in snapshot.body["weights"] if row["engine"] == index]

    def lives(self, engine: str) -> set[int]:
        """Those of an engine that monitors have spoken of."""
        return {h.body["incarnation"]["random"] for h in self._said("health_verdict") if h.body["engine"] == engine}

    def zero_weight(self, engine: str, since: float, timeout_s: float) -> float:
        """When every router had taken a snapshot in which the engine has no weight: seconds after `since`."""
        def empty(version: Version) -> bool:
            found = [s for s in self.of("routing_snapshot", since) if s.version == version]
            return bool(found) and all(sum(self.weight_rows(s, engine)) == 0 for s in found)
        return self.adoption(f"{engine} has no weight on any router", empty, since, timeout_s)

    def sent(self, engine: str, since: float, until: float) -> float:
        """The share of all attempts begun in that time that went to the engine, by the routers' own counts."""
        index, mine, all_ = self.engines.index(engine), 0.0, 0.0
        for router in self.routers:
            before: dict[int, float] = {}
            for report in self.of("outcome_report", 0.0, router):
                for row in report.body["engines"]:
                    begun = row["attempts"] + row["inflight"] - before.get(row["engine"], 0.0)
                    before[row["engine"]] = row["inflight"]
                    if since <= report.at < until:
                        all_ += begun
                        mine += begun if row["engine"] == index else 0.0
        return mine / all_ if all_ else 0.0
