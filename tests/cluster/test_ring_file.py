"""The routers' ring files: a decision is explained after its router was killed, without any fleet, and while the disk is full."""

import contextlib
import json
import os
import shutil
import subprocess

import pytest

from fleet import example, wait_for
from load import Stream, chat


def explained(fleet, decision: str, *arguments: str, fleet_too: bool = True) -> dict | None:
    done = fleet.signalbox("explain", decision, "--json", *arguments, check=False, fleet=fleet_too)
    assert done.returncode in (0, 2), done.stderr
    return json.loads(done.stdout) if done.returncode == 0 else None


def in_ring(fleet, decision: str, file) -> dict | None:
    return explained(fleet, decision, "--ring", str(file), fleet_too=False)


def metric(fleet, router: str, name: str) -> float:
    """Of a family without labels, or of all its series together."""
    return sum(value for series, value in fleet.metrics(router).items() if series.startswith(name))


@pytest.fixture
def fleet(new_fleet):
    return new_fleet(example("laptop.toml")).up()


def ring_of(fleet, router: str):
    return fleet.state / "processes" / router / "decisions.ring"


def test_decisions_of_before_a_kill_are_explained(fleet, tmp_path):
    ring = ring_of(fleet, "router-east")
    answers = [chat(fleet.url("router-east"), "m-large", f"hello {n}", 3) for n in range(8)]
    assert all(a.good for a in answers), answers
    refused = chat(fleet.url("router-east"), "no-such-model", "hello", 3)
    stream = Stream(fleet.url("router-east"), {"model": "m-small", "messages": [{"role": "user", "content": "tell me"}], "max_tokens": 8000,
                                               "stream": True, "ignore_eos": True})
    for decision in [*(answer.decision for answer in answers), refused.decision, stream.decision]:
        wait_for("it is filed", lambda d=decision: in_ring(fleet, d, ring), 60)
    whole = explained(fleet, answers[0].decision)
    assert whole["kept"] == "whole"
    before = fleet.pid("router-east")
    fleet.kill("router-east")
    stream.connection.close()
    wait_for("it serves again", lambda: fleet.processes()["router-east"]["pid"] not in (None, before) and
             chat(fleet.url("router-east"), "m-large", "and now", 2).good, 60, every_s=0.3)
    for answer in answers:
        record = explained(fleet, answer.decision)
        assert record["kept"] == "filed"
        assert record["engine_name"] == answer.engine and record["class_name"] == "chat"
        assert record["candidates"][0]["fate"] == "chosen" and record["attempts"][0]["end"] == "succeeded"
    brief = explained(fleet, answers[0].decision)
    for key in ("seed", "took_s", "status", "rule", "policy", "table"):
        assert brief[key] == whole[key], key
    assert brief["snapshot"]["sequence"] == whole["snapshot"]["sequence"]
    assert explained(fleet, refused.decision)["status"] == 404
    assert explained(fleet, stream.decision)["attempts"][0]["end"] == "open"
    new = chat(fleet.url("router-east"), "m-large", "a new one", 2)
    assert explained(fleet, new.decision)["kept"] == "whole"

    text = fleet.signalbox("explain", answers[0].decision).stdout
    assert "no longer known" in text and "UTC" in text and "cost least" in text
    copy = shutil.copy(ring, tmp_path / "copy.ring")
    fleet.down()
    text = fleet.signalbox("explain", answers[0].decision, "--ring", copy, fleet=False).stdout
    assert answers[0].engine in text and "of class chat" in text
    gone = fleet.signalbox("explain", "00000000-1", "--ring", copy, fleet=False, check=False)
    assert gone.returncode == 2 and "older than the file goes back" in gone.stderr
    wrong = fleet.signalbox("explain", answers[0].decision, "--ring", str(fleet.file), fleet=False, check=False)
    assert wrong.returncode == 2 and "no ring file" in wrong.stderr


def alerted(fleet) -> list[dict]:
    return [row for row in fleet.inspect("alerts")["alerts"] if row["alert"] == "decisions-not-kept"]


def test_a_full_disk_ends_the_filing_and_nothing_else(new_fleet):
    fleet = new_fleet(example("laptop.toml"))
    folder = fleet.state / "processes" / "router-east"
    folder.mkdir(parents=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", folder]).returncode != 0:
        pytest.skip("mounting a file system takes root")
    fleet.on_down.append(lambda: subprocess.run(["umount", "--lazy", folder], check=True))
    fleet.up()
    pid = fleet.pid("router-east")
    first = chat(fleet.url("router-east"), "m-large", "hello", 2)
    wait_for("it is filed", lambda: in_ring(fleet, first.decision, ring_of(fleet, "router-east")), 60)
    ballast = folder / "ballast"
    file = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(file, bytes(4096)):
            pass
    os.close(file)

    def lost():
        for n in range(20):
            assert chat(fleet.url("router-east"), "no-such-model", "x", 2).status == 404
        return metric(fleet, "router-east", "signalbox_router_decisions_lost_total") > 0
    wait_for("records find no room", lost, 60)
    assert wait_for("an alert says so", lambda: alerted(fleet), 60)[0]["subject"] == "router-east"
    served = [chat(fleet.url("router-east"), "m-large", f"still {n}", 2) for n in range(5)]
    assert all(a.good for a in served), served
    assert explained(fleet, served[-1].decision)["kept"] == "whole"
    ballast.unlink()
    wait_for("they are filed again", lambda: in_ring(fleet, chat(fleet.url("router-east"), "m-large", "again", 2).decision, ring_of(fleet, "router-east")), 60, every_s=0.5)
    wait_for("the alert is cleared", lambda: not alerted(fleet), 60)
    assert fleet.pid("router-east") == pid
