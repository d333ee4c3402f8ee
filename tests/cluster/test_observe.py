"""tap, inspect, explain: what they show is what is so."""

import json
import re
import urllib.error
import urllib.request

import pytest

from fleet import wait_for
from load import chat, unlike


def tap(fleet, *arguments: str) -> list[dict]:
    done = fleet.signalbox("tap", "--json", *arguments)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_tap_shows_the_latest_values_at_once_and_then_what_is_said(laptop):
    expected = {"beat", "engine_signal", "health_verdict", "fleet_table", "routing_snapshot", "keep_alive", "policy",
                "demand_report", "snapshot_receipt"}
    heard = wait_for("all of it is heard", lambda: (some := tap(laptop, "--seconds", "2")) and expected <= {m["message"] for m in some} and some, 60)
    assert all(message["topic"].endswith("/") for message in heard)
    numbers = {}
    for message in heard:  # nothing twice, nothing backwards, although two forwarders carry it
        key = (message["source"], str(message["incarnation"]), message["topic"])
        assert message["sequence"] > numbers.get(key, 0)
        numbers[key] = message["sequence"]


@pytest.mark.parametrize("arguments, passes", [
    (["--message", "engine_signal"], lambda m: m["message"] == "engine_signal"),
    (["--topic", "beat/health-monitor/"], lambda m: m["topic"].startswith("beat/health-monitor/")),
    (["--engine", "w1"], lambda m: "/w1/" in m["topic"]),
    (["--cluster", "west", "--message", "demand_report"], lambda m: m["body"]["cluster"] == "west"),
], ids=["message", "topic", "engine", "cluster"])
def test_tap_filters(laptop, arguments, passes):
    heard = wait_for("something is heard", lambda: tap(laptop, "--seconds", "2", *arguments), 60)
    assert all(passes(message) for message in heard)


def test_tap_knows_the_messages(laptop):
    done = laptop.signalbox("tap", "--message", "routing_snapshto", check=False)
    assert done.returncode == 2
    assert "no message is called 'routing_snapshto'; there are engine_signal" in done.stderr


def test_what_tap_records_it_replays(laptop, tmp_path):
    file = tmp_path / "bus.sbx"
    live = wait_for("something is heard", lambda: tap(laptop, "--count", "150", "--seconds", "30", "--record", str(file)), 60)
    replayed = tap(laptop, "--replay", str(file))
    key = lambda m: (m["source"], m["topic"], m["sequence"], json.dumps(m["body"]))
    assert {key(m) for m in live} <= {key(m) for m in replayed}
    verdicts = tap(laptop, "--replay", str(file), "--message", "health_verdict")
    assert verdicts and len(verdicts) < len(replayed)


def test_without_a_bus_there_is_a_clear_error(laptop):
    for command in (["tap", "--seconds", "1"], ["inspect", "leader", "--wait", "1"]):
        done = laptop.signalbox(*command, "--port-base", "19900", check=False)
        assert done.returncode == 3
        assert "no forwarder of the bus is there (tcp://127.0.0.1:19921" in done.stderr


def test_inspect_snapshot_is_a_plan(laptop):
    def optimal():
        tables = laptop.inspect("snapshot")
        return tables if all(row["kind"] == "optimal" and 0 <= row["gap"] < 0.1 for row in tables["snapshots"]) else None
    tables = wait_for("both clusters have an optimal plan", optimal, 60)
    assert {row["cluster"] for row in tables["snapshots"]} == {"east", "west"}
    sums = {}
    for row in tables["weights"]:
        sums[row["cluster"], row["class"]] = sums.get((row["cluster"], row["class"]), 0) + row["weight"]
    assert sums and all(abs(total - 1) < 1e-3 for total in sums.values()), sums


def test_inspect_engines_leader_routers_policy(laptop):
    def rows(what: str, well) -> list[dict]:
        return wait_for(f"{what} are well", lambda: (rows := laptop.inspect(what)[what]) and all(map(well, rows)) and rows, 60)
    engines = rows("engines", lambda row: row["verdict"] == "ready" and row["signal_age_s"] < 3)
    assert [row["engine"] for row in engines] == ["e1", "e2", "e3", "w1", "w2", "w3"]
    assert wait_for("one leads", laptop.leader, 60)["optimizer"] in ("optimizer-1", "optimizer-2")
    routers = rows("routers", lambda row: row["ready"] and row["last_receipt"] == "accepted")
    assert {row["router"] for row in routers} == {"router-east", "router-west"}
    assert {row["class"] for row in laptop.inspect("policy")["classes"]} == {"chat", "draft", "batch", "small"}


def test_inspect_weights_tells_why(laptop):
    tables = laptop.inspect("weights", "--engine", "w1")
    assert all(row["engine"] == "w1" for row in tables["weights"])
    assert {row["cluster"] for row in tables["price"]} == {"east", "west"}
    unknown = laptop.signalbox("inspect", "weights", "--engine", "w9", check=False)
    assert unknown.returncode == 2 and "the fleet has no engine 'w9'" in unknown.stderr


def test_explain_says_why_this_engine_and_not_the_others(laptop):
    answer = chat(laptop.url("router-west"), "m-large", unlike(11))
    assert answer.good, answer
    record = json.loads(laptop.signalbox("explain", f" {answer.decision}\r", "--json").stdout)  # as cut from a header
    assert record["decision"] == answer.decision
    assert record["engine_name"] == answer.engine
    assert record["class_name"] == "chat"
    fates = [row["fate"] for row in record["candidates"]]
    assert fates.count("chosen") == 1
    assert len(fates) == 6, "every engine has a fate"
    text = laptop.signalbox("explain", answer.decision).stdout
    assert answer.engine in text and "candidates" in text and "attempts" in text


def test_explain_of_nothing(laptop):
    done = laptop.signalbox("explain", "no-such-decision", check=False)
    assert done.returncode == 2
    assert "no router keeps decision 'no-such-decision'" in done.stderr
    for word in ("", "../metrics", "a b"):
        done = laptop.signalbox("explain", word, check=False)
        assert done.returncode == 2
        assert f"'{word}' is not the id of a decision" in done.stderr


def test_every_process_has_an_operator_port(laptop):
    for row in [*laptop.config["bus"], *laptop.config["process"]]:
        laptop.wait_ready(row["id"])
        base = f"http://127.0.0.1:{laptop.port(int(row['operator']))}"
        pages = {page: urllib.request.urlopen(f"{base}/{page}", timeout=30).read().decode() for page in ("healthz", "readyz", "metrics")}
        assert pages["healthz"] == "alive\n"
        role = row.get("role", "forwarder")
        assert f'signalbox_process_info{{role="{role}",id="{row["id"]}"' in pages["metrics"]
        assert "\nsignalbox_ready 1\n" in pages["metrics"]
        if role == "forwarder":
            forwarded = re.search(r"^signalbox_forwarder_forwarded_total (\d+)$", pages["metrics"], re.M)
            assert int(forwarded[1]) > 0 and "topics cached" in pages["readyz"]
    with pytest.raises(urllib.error.HTTPError) as nothing:
        urllib.request.urlopen(f"http://127.0.0.1:{laptop.port(10)}/nothing", timeout=10)
    assert "GET /explain/" in nothing.value.read().decode()
