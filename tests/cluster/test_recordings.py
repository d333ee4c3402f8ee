"""A recording of a fleet that is being broken, opened where nothing but the file is: it tells what was seen live."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from fleet import Fleet, example, wait_for
from load import Load, chat, unlike

TOLD = ("health_verdict", "routing_snapshot", "alert", "fleet_table")


@pytest.fixture
def fleet(new_fleet):
    return new_fleet(example("laptop.toml")).up()


def alone() -> list[str]:
    """The command's beginning that takes the network away, where this user may."""
    done = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return ["unshare", "-n"] if done.returncode == 0 else []


def told(lines: str) -> dict:
    """What was said, by who said it and when: (source, topic, sequence) -> the whole message."""
    rows = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    return {(m["source"], m["topic"], m["sequence"]): m for m in rows}


def leaders(messages: dict) -> list[str]:
    """Who planned for one cluster, term by term."""
    by_term = {m["body"]["version"]["term"]["counter"]: m["source"] for m in messages.values()
               if m["message"] == "routing_snapshot" and m["body"]["cluster"] == "east"}
    return [by_term[term] for term in sorted(by_term)]


def test_a_recording_of_faults_tells_elsewhere_what_was_seen_here(fleet, tmp_path):
    file, seen, url = tmp_path / "faults.sbx", tmp_path / "seen.json", fleet.url("router-east")
    filters = [word for message in TOLD for word in ("--message", message)]
    with open(seen, "w") as out:
        live = subprocess.Popen(fleet.command("tap", "--json", *filters), stdout=out, stderr=subprocess.DEVNULL)
        recorder = subprocess.Popen(fleet.command("tap", "--quiet", "--record", str(file)), stderr=subprocess.DEVNULL)
        load = Load(lambda n: chat(url, "m-large", unlike(n), 8), 10)
        try:
            wait_for("both taps hear the fleet", lambda: file.exists() and file.stat().st_size > 20_000 and seen.stat().st_size > 2_000, 60)
            both_hear = time.monotonic()
            messages = lambda: told(seen.read_text().rpartition("\n")[0])
            fleet.kill(wait_for("a leader is told", lambda: leaders(messages()), 60)[-1])
            fleet.signalbox("stop", "w2")
            gone = lambda m: m["message"] == "health_verdict" and m["body"]["engine"] == "w2" and m["body"]["state"] == "gone"
            wait_for("the loss of the engine is told", lambda: any(map(gone, messages().values())), 60)
            wait_for("another leader's plan", lambda: len(leaders(messages())) > 1, 60)
            decision = wait_for("a decision is recorded", lambda: recorded(fleet, file), 60)
            here = wait_for("the decision is explained", lambda: explained(fleet, decision), 60)
        finally:
            load.stop()
            for tap in (live, recorder):
                tap.send_signal(signal.SIGINT)
                tap.wait(timeout=60)
    here_told = told(seen.read_text())

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(file, elsewhere / "copy.sbx")

    def there(*arguments: str) -> str:
        return subprocess.run([*alone(), fleet.binary, *arguments], cwd=elsewhere, env={"PATH": os.environ["PATH"]}, text=True,
                              capture_output=True, check=True, timeout=120).stdout

    fleet.down()
    there_told = told(there("tap", "--replay", "copy.sbx", "--json", *filters))
    common = here_told.keys() & there_told.keys()
    # One tap began before the other, and ended so; between them nothing is missing and nothing is different.
    assert all(here_told[key]["body"] == there_told[key]["body"] for key in common)
    assert any(gone(here_told[key]) for key in common)
    assert leaders({key: there_told[key] for key in common})[-2:] == leaders(here_told)[-2:]
    missing = [m for key, m in here_told.items() if key not in common and m["sent_s"] >= both_hear]
    assert len(missing) <= len(here_told) // 10, missing[:3]
    rows = json.loads(there("inspect", "engines", "--recording", "copy.sbx", "--json"))["engines"]
    assert {row["engine"]: row["verdict"] for row in rows}["w2"] == "gone"
    assert there("explain", "--recording", "copy.sbx", decision).splitlines()[0] == here.splitlines()[0]


def recorded(fleet: Fleet, file: pathlib.Path) -> str:
    """One more decision, if it can be read in the recording within moments: a router says so many a second, and what it says
    is on its way for a while."""
    decision = chat(fleet.url("router-east"), "m-large", "hello", 8).decision
    for _ in range(5):
        done = fleet.signalbox("explain", "--recording", str(file), decision, check=False, fleet=False)
        if done.returncode == 0:
            return decision
        time.sleep(0.2)
    return ""


def explained(fleet: Fleet, decision: str) -> str:
    done = fleet.signalbox("explain", decision, check=False)
    return done.stdout if done.returncode == 0 else ""
