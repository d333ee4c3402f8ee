"""Every snapshot as it is broadcast, watched by a tap in the background."""

import json
import subprocess
import threading
import time

from fleet import Fleet


class SnapshotWatch:
    """`snapshots` grows: {"at", "cluster", "version": (term, optimizer, sequence), "kind", "weights": {(class, engine): w}}."""

    def __init__(self, fleet: Fleet, classes: list[str]):
        self.fleet, self.classes = fleet, classes
        self.engines = [engine["name"] for engine in fleet.config["engine"]]
        self.snapshots: list[dict] = []
        self.tap = subprocess.Popen(fleet.command("tap", "--json", "--message", "routing_snapshot"), stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        fleet.on_down.append(self.stop)

    def _read(self) -> None:
        for line in self.tap.stdout:
            body = json.loads(line)["body"]
            version = body["version"]
            self.snapshots.append({
                "at": time.monotonic(), "cluster": body["cluster"], "kind": body["kind"],
                "version": (version["term"]["counter"], version["term"]["optimizer"], version["sequence"]),
                "weights": {(self.classes[row["class"]], self.engines[row["engine"]]): row["weight"] for row in body["weights"]},
            })

    def of(self, cluster: str, since: float = 0.0) -> list[dict]:
        return [s for s in list(self.snapshots) if s["cluster"] == cluster and s["at"] >= since]

    def weights(self, cluster: str, request_class: str, engine: str, since: float = 0.0) -> list[float]:
        """The engine's weight in each snapshot, in order."""
        return [s["weights"].get((request_class, engine), 0.0) for s in self.of(cluster, since)]

    def stop(self) -> None:
        self.tap.terminate()
        self.tap.wait(timeout=20)
        self._reader.join()


def swing(series: list[float]) -> float:
    """How far a series goes back and forth: its total variation beyond its net change."""
    return sum(abs(b - a) for a, b in zip(series, series[1:])) - abs(series[-1] - series[0]) if series else 0.0
