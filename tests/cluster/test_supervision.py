"""Processes under a supervisor: the launcher or systemd. Who hangs is found, who rotates keys loses nothing."""

import configparser
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess

import pytest

from fleet import ROOT, Fleet, east, wait_for
from load import chat

UNITS = ROOT / "cluster-config" / "systemd"


def small() -> dict:
    """Of everything one, of forwarders two."""
    config = east()
    config["process"] = [p for p in config["process"] if p["id"] != "optimizer-2"]
    return config


def test_a_process_whose_loops_do_not_turn_is_started_anew(new_fleet):
    config = small()
    config.setdefault("intervals", {})["watchdog"] = "4s"
    fleet = new_fleet(config).up()
    before = fleet.pid("keeper")
    fleet.kill("keeper", signal.SIGSTOP)
    row = wait_for("keeper runs again", lambda: (row := fleet.processes()["keeper"])["pid"] not in (None, before) and row["ready"] and row, 60)
    assert row["last_end"] == "killed by signal 9 (Killed)"
    assert "keeper: hangs, its loops have not turned for 4 s" in (fleet.state / "logs/launcher.log").read_text()


def test_keys_are_rotated_while_the_fleet_runs(new_fleet):
    fleet = new_fleet(small()).up()
    directory = fleet.folder / "keys" / "directory.tsv"
    old = directory.read_text()
    for step in ("every process has new keys", "the new keys are in use", "the old keys are worth nothing"):
        assert step in fleet.signalbox("keys", "rotate").stdout
        for name in fleet.processes():
            if not name.startswith("e"):
                restart(fleet, name)
        assert chat(fleet.url("router-east"), "m-small", f"after: {step}", 4).good
    assert "no rotation is under way" in fleet.signalbox("keys", "rotate", "--show").stdout
    assert not set(old.splitlines()) & set(directory.read_text().splitlines())
    beats = fleet.signalbox("inspect", "routers", "--json", check=False)
    assert beats.returncode == 0, "whoever has the new keys is heard"


def restart(fleet: Fleet, name: str) -> None:
    before = fleet.processes()[name]
    fleet.signalbox("restart", name)
    wait_for(f"{name} is ready again", lambda: (row := fleet.processes()[name])["pid"] not in (None, before["pid"]) and row["ready"], 60)
    wait_for("nobody is the worse for it", lambda: all(row["ready"] for row in fleet.processes().values()), 60)


def test_units_are_what_systemd_accepts(tmp_path, new_fleet):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    binary = new_fleet(small()).binary
    for unit in UNITS.iterdir():
        (tmp_path / unit.name).write_text(unit.read_text().replace("/usr/bin/signalbox", str(binary)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "signalbox@router-east.service", tmp_path / "signalbox.target"],
                          capture_output=True, text=True, timeout=60, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"})
    complaints = [line for line in done.stderr.splitlines() if "signalbox" in line]
    assert done.returncode == 0 and not complaints, done.stderr


def unit_command(fleet: Fleet, instance: str) -> list[str]:
    """The unit's command line, on this fleet's files."""
    text = (UNITS / "signalbox@.service").read_text()
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string(text)
    words = shlex.split(unit["Service"]["ExecStart"].replace("%i", instance))
    ours = {"/usr/bin/signalbox": fleet.binary, "/etc/signalbox/fleet.toml": fleet.file, "/var/lib/signalbox": fleet.state,
            "/etc/signalbox/keys": fleet.folder / "keys"}
    assert unit["Service"]["Type"] == "notify" and set(ours) <= set(words)
    return [str(ours.get(word, word)) for word in words]


class Supervisor:
    """Stands in for systemd: it starts a unit's command and hears what it says of itself."""

    def __init__(self, command: list[str], log: pathlib.Path):
        self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ear.bind(b"")
        self.ear.settimeout(0.2)
        name = "@" + self.ear.getsockname()[1:].decode()
        with log.open("w") as stderr:
            self.process = subprocess.Popen(command, stderr=stderr,
                                            env={**os.environ, "NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000000"})
        self.heard = ""

    def hears(self, word: str) -> bool:
        """Whether it says so before it ends."""
        def said():
            ended = self.process.poll() is not None
            try:
                self.heard += self.ear.recv(256).decode() + "\n"
            except TimeoutError:
                return ended  # and all that it said before is heard
            return word in self.heard
        if word not in self.heard:
            wait_for(word, said, 60, 0)
        return word in self.heard

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.ear.close()


def started(fleet: Fleet, instance: str) -> Supervisor:
    """The unit's process, once it says that it runs; what it listens on may be taken by others meanwhile: then elsewhere."""
    log = fleet.folder / f"{instance}.log"
    for port_base in range(12_000, 30_000, 700):
        unit = Supervisor([*unit_command(fleet, instance), "--port-base", str(port_base)], log)
        if unit.hears("READY=1"):
            return unit
        unit.close()
        assert "in use" in log.read_text(), log.read_text()
    raise AssertionError("no free ports")


@pytest.mark.parametrize("instance", ["keeper", "bus-1"])
def test_a_unit_says_that_it_has_started_and_lives(new_fleet, instance):
    fleet = new_fleet(small())
    fleet.state.mkdir(mode=0o700)
    fleet.signalbox("keys", "init")
    unit = started(fleet, instance)
    try:
        assert unit.hears("WATCHDOG=1")
        unit.process.send_signal(signal.SIGTERM)
        assert unit.hears("STOPPING=1")
        assert unit.process.wait(timeout=30) == 0
    finally:
        unit.close()
