"""What is wrong gets a precise error, and nothing else suffers."""

import http.client
import json
import socket
import subprocess
import urllib.parse

import msgpack
import pytest
import zmq

from fleet import EXAMPLES, example, wait_for
from load import chat, unlike


def post(url: str, body: bytes, path: str = "/v1/chat/completions", **headers: str) -> tuple[int, dict, str]:
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request("POST", path, body, {"content-type": "application/json", **headers})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, json.loads(text)["error"] if text else {}, response.getheader("x-signalbox-reason") or ""


@pytest.mark.parametrize("edit, where, what", [
    (lambda text: text.replace("port_base", "port_bse"), ":", "port_base"),
    (lambda text: text.replace('cluster = "west"', 'cluster = "wset"', 1), ":", "west"),
    (lambda text: text.replace("a = 0.02\n", 'a = "fast"\n', 1), ":", "a"),
    (lambda text: text + "\n[[bus\n", ":", ""),
], ids=["unknown key", "unknown cluster", "wrong type", "broken toml"])
def test_a_bad_config_is_named_with_line_and_column(new_fleet, edit, where, what):
    fleet = new_fleet(example("laptop.toml"))
    text = fleet.file.read_text()
    assert edit(text) != text
    fleet.file.write_text(edit(text))
    done = fleet.signalbox("up", "--detach", "--free-ports", check=False)
    assert done.returncode == 2
    line = next(line for line in done.stderr.splitlines() if line.startswith(f"{fleet.file}:"))
    number, column = line.removeprefix(f"{fleet.file}:").split(":")[:2]
    assert int(number) >= 1 and int(column) >= 1
    assert what in line
    assert fleet.running() == []


def test_a_bad_policy_is_named_with_line_and_column(new_fleet):
    text = (EXAMPLES / "laptop.policy").read_text()
    bad = text.replace("criticality critical", "criticality critcal", 1)
    fleet = new_fleet(example("laptop.toml"), policy=bad)
    number = next(i for i, line in enumerate(bad.splitlines(), 1) if "critcal" in line)
    check = fleet.signalbox("policy", "check", str(fleet.folder / "fleet.policy"), check=False, fleet=False)
    assert check.returncode == 1
    assert f"fleet.policy:{number}:" in check.stderr and "critical" in check.stderr
    up = fleet.signalbox("up", "--detach", "--free-ports", check=False)
    assert up.returncode == 2
    assert f"fleet.policy:{number}:" in up.stderr
    assert fleet.running() == []


def test_a_reload_tells_what_came_of_it(new_fleet):
    fleet = new_fleet(example("laptop.toml")).up()
    policy = fleet.folder / "fleet.policy"
    good = policy.read_text()
    done = fleet.signalbox("order", "reload", "--wait", "30")
    assert done.stdout == "keeper: done, policy laptop version 1 is in force\n"
    policy.write_text(good.replace("criticality critical", "criticality critcal", 1))
    refused = fleet.signalbox("order", "reload", "keeper", "--wait", "30", check=False)
    assert refused.returncode == 1
    assert refused.stdout.startswith("keeper: refused, ") and "fleet.policy:" in refused.stdout
    policy.write_text(good.replace("version 1 ", "version 2 ", 1))
    assert "version 2 is in force" in fleet.signalbox("order", "reload", "--wait", "30").stdout
    for arguments, what in [(["resign", "keeper"], "'keeper' is not a global-optimizer"), (["network", "west", "mars", "1"], "no cluster 'mars'"),
                            (["network", "west", "east", "11"], "RTT: Value 11 not in range 0")]:
        wrong = fleet.signalbox("order", *arguments, check=False)
        assert wrong.returncode == 2 and what in wrong.stderr, wrong.stderr


def test_the_command_line_outranks_the_environment(new_fleet, monkeypatch):
    good, bad = new_fleet(example("laptop.toml"), name="good"), new_fleet(example("laptop.toml"), name="bad")
    bad.file.write_text("[[")
    monkeypatch.setenv("SIGNALBOX_CONFIG", str(good.file))
    for command in (["up"], ["status"], ["down"], ["keys", "init", "--config"]):
        done = bad.signalbox(*command, str(bad.file), fleet=False, check=False)
        assert done.returncode == 2 and f"{bad.file}:1:" in done.stderr, done.stderr


def test_a_misspelt_command_is_named(new_fleet):
    done = new_fleet(example("laptop.toml")).signalbox("staus", fleet=False, check=False)
    assert (done.returncode, done.stderr) == (2, "signalbox: there is no command 'staus'; did you mean 'status'?\n")


@pytest.mark.parametrize("arguments", [["run", "cluster-router", "--id", "x"], ["run", "forwarder", "--config", "/nowhere", "--id", "x"],
                                       ["policy", "check", "/nowhere"]], ids=lambda words: " ".join(words[:2]))
def test_an_error_that_cannot_be_written_is_one_all_the_same(new_fleet, arguments):
    """A full disk under a log: an exit code, no crash."""
    binary = new_fleet(example("laptop.toml")).binary
    with open("/dev/full", "w") as full:
        assert subprocess.run([binary, *arguments], stdout=full, stderr=full).returncode == 2


@pytest.mark.parametrize("body, status, part", [
    (b"{", 400, "JSON"),
    (b"[]", 400, ""),
    (b'{"messages": []}', 400, "model"),
    (b'{"model": 7}', 400, "model"),
    (b'{"model": "no-such-model", "messages": []}', 404, "no-such-model"),
], ids=["not json", "not an object", "no model", "model is a number", "unknown model"])
def test_a_bad_request_gets_an_openai_error(laptop, body, status, part):
    got, error, reason = post(laptop.url("router-east"), body)
    assert got == status
    assert part in error["message"] and error["type"]
    assert reason


def test_bytes_that_are_no_request_hurt_nobody(laptop):
    address = urllib.parse.urlsplit(laptop.url("router-west"))
    for raw in (b"\x00" * 100, b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
                b"Content-Length: 2\r\n\r\nab", b"A" * 100_000):
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            connection.sendall(raw)
            answer = connection.recv(4096)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4") or answer.startswith(b"HTTP/1.1 5"), answer
    assert chat(laptop.url("router-west"), "m-small", unlike(2)).good


def test_a_stranger_on_the_bus_is_not_heard(laptop):
    """Without keys no connection comes about; what is sent reaches nobody."""
    def uptimes() -> dict[str, float] | None:
        rows = {row["process"]: row["uptime_s"] for row in laptop.inspect("processes")["processes"]}
        return rows if {p["id"] for p in laptop.config["process"]} <= set(rows) else None
    before = wait_for("all processes are heard", uptimes, 60)
    context = zmq.Context()
    stranger = context.socket(zmq.PUB)
    stranger.linger = 0
    stranger.connect(f"tcp://127.0.0.1:{laptop.port(20)}")
    envelope = msgpack.packb(["monitor", [1, 1], 1, 0, 0, 10, 1, 0])
    for _ in range(200):
        stranger.send_multipart([b"verdict/e1/monitor/", envelope, msgpack.packb({1: "e1", 3: 3}), b""])
    stranger.close()
    context.term()
    assert chat(laptop.url("router-east"), "m-large", unlike(3)).good
    after = wait_for("all processes are heard", uptimes, 60)
    assert all(after[name] >= before[name] for name in before), "nobody was restarted"
    wait_for("every engine is ready", lambda: all(row["verdict"] == "ready" for row in laptop.inspect("engines")["engines"]), 60)
