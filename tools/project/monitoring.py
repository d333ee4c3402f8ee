"""Prometheus beside a fleet on this machine: scrapes every process and `signalbox exporter`, evaluates the rules of
cluster-config/monitoring, and answers queries."""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "cluster-config" / "monitoring"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url: str, timeout_s: float = 10) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # what is on loopback is asked directly
    return opener.open(url, timeout=timeout_s).read().decode()


def expressions(dashboard: dict) -> list[tuple[str, str]]:
    """(panel, query) of a Grafana dashboard, its variables replaced by "any"."""
    return [(panel["title"], re.sub(r"\$\w+", ".*", target["expr"])) for panel in dashboard["panels"] for target in panel["targets"]]


def dashboards() -> dict[str, dict]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((MONITORING / "dashboards").glob("*.json"))}


def metric_names(text: str) -> set[str]:
    """The names that queries or rules speak of; recorded ones have colons, histograms go by their family."""
    names = re.findall(r"\b(?:signalbox|gen_ai|inference)_?[a-z0-9_:]*", re.sub(r"\{[^}]*\}|\([a-z_, ]*\)|'[^']*'", "", text))
    return {re.sub(r"_bucket$|(?<=_seconds)_(?:count|sum)$", "", name) for name in names}


class Monitoring:
    def __init__(self, fleet, folder: pathlib.Path):
        """`fleet`: of tests/cluster/fleet.py, running."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--config", fleet.file, "--state-dir", fleet.state, "--keys-dir", fleet.folder / "keys"]
        self.exporter = subprocess.Popen([fleet.binary, "exporter", "--listen", "127.0.0.1:0", *map(str, options)],
                                         stdout=subprocess.PIPE, text=True)
        self.exporter_url = self.exporter.stdout.readline().strip()
        self.processes = {process["id"]: (f"127.0.0.1:{fleet.port(int(process['operator']))}", process.get("role", "forwarder"), process.get("cluster", ""))
                          for process in [*fleet.config["bus"], *fleet.config["process"]] if process.get("operator", "").startswith("+")}
        self.prometheus = None

    def exposed(self) -> str:
        """What all of them expose now, as text."""
        urls = [self.exporter_url] + [f"http://{address}/metrics" for address, _, _ in self.processes.values()]
        return "".join(fetch(url) for url in urls)

    def write_config(self) -> pathlib.Path:
        exporter = urllib.parse.urlsplit(self.exporter_url).netloc
        targets = [{"targets": [address], "labels": {"process": name, "role": role, "cluster": cluster}}
                   for name, (address, role, cluster) in self.processes.items()]
        (self.folder / "processes.json").write_text(json.dumps(targets, indent=1))
        (self.folder / "exporter.json").write_text(json.dumps([{"targets": [exporter], "labels": {}}]))
        shutil.copy(MONITORING / "rules.yml", self.folder / "rules.yml")
        file = self.folder / "prometheus.yml"
        shutil.copy(MONITORING / "prometheus.yml", file)
        return file

    def start(self, interval: str = "1s") -> None:
        port = free_port()
        text = self.write_config().read_text().replace("5s", interval)
        (self.folder / "prometheus.yml").write_text(text)
        self.url = f"http://127.0.0.1:{port}"
        self.prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=open(self.folder / "prometheus.log", "w"))
        self.wait("up", lambda series: len(series) > len(self.processes), 60)

    def query(self, expression: str) -> list[dict]:
        answer = json.loads(fetch(f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def wait(self, expression: str, holds, timeout_s: float) -> list[dict]:
        end = time.monotonic() + timeout_s
        while True:
            try:
                series = self.query(expression)
            except OSError:
                series = []
            if holds(series):
                return series
            if time.monotonic() > end:
                raise AssertionError(f"{expression}: not within {timeout_s} s; last {series}")
            time.sleep(0.2)

    def alerts(self) -> dict[str, str]:
        """Name -> state of every rule's alert."""
        groups = json.loads(fetch(f"{self.url}/api/v1/rules"))["data"]["groups"]
        return {rule["name"]: rule["state"] for group in groups for rule in group["rules"] if rule["type"] == "alerting"}

    def stop(self) -> None:
        for process in filter(None, (self.prometheus, self.exporter)):
            process.terminate()
            process.wait(timeout=60)


def show(monitoring: Monitoring, say) -> None:
    """For the demo: that each query of the dashboards is answered, some values, and the state of the alerts."""
    for name, dashboard in dashboards().items():
        answered = [bool(monitoring.query(query)) for _, query in expressions(dashboard)]
        say(f"dashboard {name}: {len(answered)} queries, {sum(answered)} with data now")
    for query in ("sum(rate(signalbox_router_requests_total[30s]))", "max(signalbox_plan_age_seconds)",
                  "sum by (cluster) (signalbox_engine_planned_load) / sum by (cluster) (signalbox_engine_capacity)"):
        for series in monitoring.query(query):
            labels = ",".join(f'{key}="{value}"' for key, value in series["metric"].items())
            say(f"{query} {{{labels}}} = {float(series['value'][1]):.4g}")
    states = monitoring.alerts()
    raised = sorted(name for name, state in states.items() if state != "inactive")
    say(f"{len(states)} alerts are watched; raised: {', '.join(raised) or 'none'}")
    say(f"Prometheus answered at {monitoring.url}")
