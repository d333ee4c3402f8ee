"""A fleet of real processes for a test: `signalbox up --detach` in a folder of its own, on a block of ports of its own."""

import copy
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import tomllib
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "cluster-config" / "examples"


def size(section: str) -> int:
    """How large the test of this section of tests/sizes.toml is: on every run, or with SIGNALBOX_TEST_SIZE=soak."""
    row = tomllib.loads((ROOT / "tests/sizes.toml").read_text())[section]
    return row["soak" if os.environ.get("SIGNALBOX_TEST_SIZE") == "soak" else "ci"]


def find_binary() -> pathlib.Path:
    """SIGNALBOX_BIN, else the first build that there is."""
    candidates = [os.environ.get("SIGNALBOX_BIN"), *(ROOT / "build" / p / "bin/signalbox" for p in ("asan", "dev", "release"))]
    for candidate in filter(None, candidates):
        if pathlib.Path(candidate).exists():
            return pathlib.Path(candidate).resolve()
    raise FileNotFoundError("no signalbox binary; run tools/make dev")


def to_toml(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return "{ " + ", ".join(f"{key} = {to_toml(item)}" for key, item in value.items()) + " }"


def dump_toml(config: dict) -> str:
    """A fleet's configuration as text: plain keys first, then tables, then lists of tables."""
    lines = [f"{key} = {to_toml(value)}" for key, value in config.items()
             if not isinstance(value, dict) and not is_tables(value)]
    for name, table in config.items():
        for row, head in [(table, f"[{name}]")] if isinstance(table, dict) else \
                [(row, f"[[{name}]]") for row in table] if is_tables(table) else []:
            lines += ["", head, *(f"{key} = {to_toml(value)}" for key, value in row.items())]
    return "\n".join(lines) + "\n"


def is_tables(value) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def example(name: str) -> dict:
    """A configuration of cluster-config/examples, to be edited by a test."""
    return tomllib.loads((EXAMPLES / name).read_text())


def east() -> dict:
    """The laptop fleet without its western half."""
    config = example("laptop.toml")
    config["cluster"] = [c for c in config["cluster"] if c["name"] == "east"]
    config["engine"] = [e for e in config["engine"] if e["cluster"] == "east"]
    config["process"] = [p for p in config["process"] if p.get("cluster", "east") == "east"]
    config.pop("link", None)
    return config


def resident_bytes(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_for(what: str, condition, timeout_s: float, every_s: float = 0.05):
    """The first true value of condition(); fails with `what` and its last value."""
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"{what}: not within {timeout_s} s; last: {value!r}")
        time.sleep(every_s)


class Fleet:
    def __init__(self, folder: pathlib.Path, config: dict, policy: pathlib.Path | str | None = None,
                 binary: pathlib.Path | None = None):
        self.folder = folder
        self.config = copy.deepcopy(config)
        self.state = folder / "state"
        self.file = folder / "fleet.toml"
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(policy, str):
            (folder / "fleet.policy").write_text(policy)
        else:
            shutil.copy(policy or EXAMPLES / self.config["policy"], folder / "fleet.policy")
        self.config["policy"] = "fleet.policy"
        self.write_config()
        self.binary = binary or find_binary()
        self.on_down = []  # what to call before the fleet is stopped

    def write_config(self) -> None:
        self.file.write_text(dump_toml(self.config))

    def command(self, *arguments: str) -> list[str]:
        """The line of one command on this fleet."""
        options = ["--config", self.file, "--state-dir", self.state, "--keys-dir", self.folder / "keys"]
        return [str(part) for part in (self.binary, *arguments, *options)]

    def signalbox(self, *arguments: str, check: bool = True, timeout_s: float = 120, fleet: bool = True) -> subprocess.CompletedProcess:
        """One command on this fleet, to its end."""
        line = self.command(*arguments) if fleet else [self.binary, *arguments]
        done = subprocess.run(line, capture_output=True, text=True, timeout=timeout_s)
        if check and done.returncode != 0:
            raise AssertionError(f"signalbox {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}\n{self.log_tails()}")
        return done

    def up(self, wait_s: float = 120) -> "Fleet":
        self.signalbox("up", "--detach", "--free-ports", "--wait", str(wait_s), timeout_s=wait_s + 30)
        return self

    def down(self) -> None:
        """Stops everything and looks whether something is left."""
        while self.on_down:
            self.on_down.pop()()
        self.signalbox("down", check=False)
        self.wait_gone()

    def wait_gone(self) -> None:
        wait_for("processes of the fleet end", lambda: not self.running(), 60)

    def running(self) -> list[int]:
        """Processes, ours and what they started, that know this state folder; the launcher too."""
        mark = str(self.state).encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                        found.append(int(entry.name))
                except OSError:
                    pass  # it ended meanwhile
        return found

    def status(self) -> dict:
        return json.loads(self.signalbox("status", "--json").stdout)

    def processes(self) -> dict[str, dict]:
        return {row["process"]: row for row in self.status()["processes"]}

    def pid(self, name: str) -> int:
        pid = self.processes()[name]["pid"]
        assert pid, f"{name} does not run"
        return pid

    def wait_ready(self, name: str) -> dict:
        """Its row, once it is ready."""
        return wait_for(f"{name} is ready", lambda: (row := self.processes()[name])["ready"] and row, 60)

    def kill(self, name: str, sig: int = signal.SIGKILL) -> None:
        os.kill(self.pid(name), sig)

    def inspect(self, what: str, *arguments: str) -> dict:
        """The tables of `signalbox inspect`; empty ones if there is none of it."""
        done = self.signalbox("inspect", what, "--json", "--wait", "10", *arguments, check=False)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def port(self, offset: int) -> int:
        return self.status()["fleet"][0]["port_base"] + offset

    def url(self, router: str) -> str:
        """Where a router serves clients."""
        return "http://" + self.processes()[router]["serves"]

    def engine_url(self, engine: str) -> str:
        return "http://" + self.processes()[engine]["serves"]

    def faults(self, engine: str, **values) -> None:
        """What an engine-sim does wrong from now on."""
        request = urllib.request.Request(self.engine_url(engine) + "/admin/faults", json.dumps(values).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200

    def operator_url(self, name: str) -> str:
        """Where a process or a forwarder serves its operators."""
        row = next(row for row in (*self.config["process"], *self.config["bus"]) if row["id"] == name)
        return f"http://127.0.0.1:{self.port(int(row['operator'].removeprefix('+')))}"

    def metrics(self, name: str) -> dict[str, float]:
        """Series -> value, as that process tells them."""
        with urllib.request.urlopen(self.operator_url(name) + "/metrics", timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
        return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}

    def weights(self, cluster: str, request_class: str) -> dict[str, float]:
        """Engine -> weight in the snapshot in force."""
        return {row["engine"]: row["weight"] for row in self.inspect("snapshot", "--cluster", cluster)["weights"]
                if row["class"] == request_class}

    def leader(self) -> dict | None:
        """The row of the optimizer that leads."""
        leading = [row for row in self.inspect("leader")["optimizers"] if row["leads"] and row["beat_age_s"] < 2]
        return max(leading, key=lambda row: row["term"], default=None)

    def log_tails(self, lines: int = 15) -> str:
        """The ends of all logs, for a failing test."""
        out = ""
        for log in sorted((self.state / "logs").glob("*.log")):
            tail = log.read_text(errors="replace").splitlines()[-lines:]
            out += f"--- {log.name}\n" + "\n".join(tail) + "\n"
        return out


def stop_all(fleets: list[Fleet], node) -> None:
    """Stops them after a test, or a file of tests; of one that failed the logs are shown first."""
    failed = getattr(node, "failed_call", False) or getattr(node, "testsfailed", 0) > 0
    for fleet in fleets:
        if failed:
            print(fleet.log_tails())
        fleet.down()
