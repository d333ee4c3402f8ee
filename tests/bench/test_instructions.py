"""Instructions of our own code on the router's hot paths, counted by callgrind in an optimised build: they do not depend on how busy the
machine is. A limit is what was measured when it was last set, and the tolerance; who makes a path dearer on purpose sets it anew."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

RELAY = pathlib.Path(os.environ.get("BENCH_RELAY", pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/bench_relay"))
TOLERANCE = 0.15  # libraries and processors choose their own variants of memcpy and of parsing JSON
MEASURED = {"decide": 2_440, "request": 24_500, "request_8k": 40_200, "event": 1_650}
MOST_FOR_FILING = 0.03  # of a request, for its record in the ring file
MOST_FOR_OBSERVING = 0.08  # of its own instructions, for its record, metrics and traces; with what the kernel does for it less than half as much

pytestmark = pytest.mark.skipif(not RELAY.exists() or not shutil.which("valgrind"), reason="no release build of bench_relay, or no valgrind")


def counted(words: list, act=None, options: list = ()) -> int:
    """Instructions of one run; `act` is done while it runs, and ends it."""
    process = subprocess.Popen(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *options, RELAY, *map(str, words)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        if act:
            act()
            process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    return int(re.search(r"Collected : (\d+)", said).group(1))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        return holder.getsockname()[1]


def connect(port: int) -> socket.socket:
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except OSError:
            assert time.monotonic() < end, "nobody listens"
            time.sleep(0.02)


def ask(line: socket.socket, prompt: str = "x" * 850, **body) -> bytes:
    """One request, of 1 KB by default, and its whole answer."""
    message = {"model": "m", "messages": [{"role": "user", "content": prompt}], **body}
    text = json.dumps(message, separators=(",", ":")).encode()
    line.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(text) + text)
    got = b""
    while b"\r\n\r\n" not in got:
        got += line.recv(65536)
    head, _, got = got.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    while len(got) < int(length.group(1)) if length else not got.endswith(b"0\r\n\r\n"):
        got += line.recv(65536)
    assert head.startswith(b"HTTP/1.1 200"), head
    return got


@pytest.fixture
def engine():
    port = free_port()
    process = subprocess.Popen([RELAY, "engine", str(port)])
    connect(port).close()
    yield port
    process.kill()
    process.wait()


def relayed(engine: int, act, way: str = "gateway", options: list = ()) -> int:
    port = free_port()

    def work():
        with connect(port) as line:
            act(line)

    return counted([way, port, engine], work, options)


def hold(path: str, each: float) -> None:
    print(f"{path}: {each:.0f} instructions, {MEASURED[path]} when last set")
    assert each <= MEASURED[path] * (1 + TOLERANCE), f"{path} became dearer"
    assert each >= MEASURED[path] * 0.5, f"{path} became far cheaper: set its figure anew"


def test_a_decision():
    runs = [counted(["decide", 1000, times]) for times in (1000, 11000)]
    hold("decide", (runs[1] - runs[0]) / 10000)


def test_a_decision_costs_the_same_among_many_engines():
    each = {}
    for engines in (10, 1000):
        runs = [counted(["decide", engines, times]) for times in (1000, 6000)]
        each[engines] = (runs[1] - runs[0]) / 5000
    print(each)
    assert each[1000] <= 1.5 * each[10]


def test_a_relayed_request(engine):
    runs = [relayed(engine, lambda line, n=n: [ask(line) for _ in range(n)]) for n in (50, 350)]
    hold("request", (runs[1] - runs[0]) / 300)


def test_a_relayed_request_of_8_kb(engine):
    prompts = [f"{n} " + "word " * 1_570 for n in range(8)]
    runs = [relayed(engine, lambda line, n=n: [ask(line, prompts[i % 8]) for i in range(n)]) for n in (50, 250)]
    hold("request_8k", (runs[1] - runs[0]) / 200)


def test_what_observation_costs_a_request(engine):
    """The share in a request of its record, of metrics and of traces of one request in a hundred, the threads that write included. Of the
    router's own instructions: what the kernel does for a request is in docs/measured/gateway.md, and makes the share smaller."""
    requests = 3000  # thirty of them traced
    each = {}
    for way in ("beside", "filing", "observed"):
        runs = [relayed(engine, lambda line, n=n: [ask(line) for _ in range(n)], way) for n in (50, 50 + requests)]
        each[way] = (runs[1] - runs[0]) / requests
    meters = ["--toggle-collect=signalbox::gateway::Histogram::add*", "--toggle-collect=signalbox::gateway::Meters::of*"]
    runs = [relayed(engine, lambda line, n=n: [ask(line) for _ in range(n)], "beside", meters) for n in (50, 350)]
    metrics = (runs[1] - runs[0]) / 300
    assert metrics > 10, "the meters are found"
    without = each["beside"] - metrics
    shares = {"records": (each["filing"] - each["beside"]) / without, "traces": (each["observed"] - each["filing"]) / without,
              "metrics": metrics / without}
    print(f"{without:.0f} instructions; " + ", ".join(f"{what} {share:.2%}" for what, share in shares.items()))
    assert shares["records"] <= MOST_FOR_FILING
    assert sum(shares.values()) <= MOST_FOR_OBSERVING


def test_a_relayed_event(engine):
    runs = [relayed(engine, lambda line, n=n: ask(line, stream=True, events=n, every_ms=2)) for n in (50, 350)]
    hold("event", (runs[1] - runs[0]) / 300)
