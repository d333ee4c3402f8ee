"""A router that is stopped finishes what it has and says so; its successor takes over the port, and nobody is refused.

Only for a Signalbox that the suite may start itself.
"""

import http.client
import threading
import time

import pytest

import targets
from client import until
from test_streams import DONE, event
from upstream import LAST_CHUNK, SSE_HEAD, Case, chunk, json_answer
from wire import Connection


# Who hands over here is not in a hurry: what fails, fails by the handover.
PATIENT = targets.POLICY.replace("first_byte 3s gap 2s", "first_byte 20s gap 20s")


@pytest.fixture(params=["signalbox", "signalbox-loops"])
def router(request, upstream, tmp_path):
    """A router of the test's own, with the engines of all, of one event loop and of four."""
    if request.config.getoption("--base-url") or request.config.getoption("--target") != "signalbox":
        pytest.skip("starts routers of its own")
    short = request.node.get_closest_marker("short_grace") is not None
    running = targets.STARTERS[request.param](tmp_path, [engine.port for engine in upstream.engines], policy=PATIENT,
                                              drain_grace="700ms" if short else "60s")
    yield running
    running.close()


ALIVE = b": alive\n\n"


class Held:
    """A stream that the test holds open; its engine shows that it lives, as the limit of a gap wants it."""

    def __init__(self, upstream, url: str, token: str):
        self.go, self.case = threading.Event(), Case(token)
        upstream.cases[token] = self.case
        self.case.answers(self.script)
        self.connection = Connection(url)
        body = b'{"model":"m","stream":true}'
        self.connection.send(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-case: {token}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        self.answer = self.connection.head()

    def script(self, exchange) -> None:
        exchange.send(SSE_HEAD, chunk(event("a")))
        while not self.go.wait(0.2):
            exchange.send(chunk(ALIVE))
        exchange.send(chunk(event("b") + DONE), LAST_CHUNK)

    def body(self) -> bytes:
        return self.connection.body_of(self.answer).body.replace(ALIVE, b"")


def test_a_stream_finishes_after_the_signal(router, upstream):
    held = Held(upstream, router.url, "handover-1")
    router.process.terminate()
    time.sleep(0.1)
    assert router.process.poll() is None
    held.go.set()
    assert held.body() == event("a") + event("b") + DONE
    assert router.process.wait(60) == 0


@pytest.mark.short_grace
def test_a_stream_that_outlasts_the_grace_ends_in_words(router, upstream):
    held = Held(upstream, router.url, "handover-2")
    router.process.terminate()
    body = held.body()
    assert body.startswith(event("a")) and b'"code":"draining"' in body and b"[DONE]" not in body
    assert router.process.wait(60) == 0


def test_a_stopping_router_is_not_ready(router, upstream):
    held = Held(upstream, router.url, "handover-3")
    router.process.terminate()
    address = router.operator_url.removeprefix("http://")
    end, status = time.monotonic() + 30, 200
    while status == 200 and time.monotonic() < end:
        operator = http.client.HTTPConnection(address, timeout=30)
        operator.request("GET", "/readyz")
        status = operator.getresponse().status
        operator.close()
    assert status == 503
    held.go.set()
    held.body()


class Load:
    """Clients that open a connection for each request and note every failure."""

    def __init__(self, url: str, upstream, threads: int = 4):
        self.url, self.failures, self.count, self.stop = url, [], 0, threading.Event()
        self.case = Case("handover-load")
        upstream.cases[self.case.token] = self.case
        self.case.answers(json_answer())
        self.threads = [threading.Thread(target=self.run, args=(n % 2 == 0,)) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self, keep: bool) -> None:
        body = b'{"model":"m"}'
        request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-case: handover-load\r\n%sContent-Length: %d\r\n\r\n%s" % (
            b"" if keep else b"Connection: close\r\n", len(body), body)
        connection = None
        while not self.stop.is_set():
            try:
                connection = connection or Connection(self.url)
                connection.send(request)
                answer = connection.answer()
                if answer.status != 200:
                    self.failures.append(f"{answer.start} {answer.body!r}")
                self.count += 1
                if answer.get("connection") == "close":
                    connection.close()
                    connection = None
            except Exception as error:  # noqa: BLE001: every kind of failure counts
                self.failures.append(repr(error))
                connection = None

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(60)


@pytest.mark.parametrize("who_leaves", ["the older", "the newer"])
def test_a_successor_takes_over_and_nobody_is_refused(router, upstream, tmp_path, who_leaves):
    held = Held(upstream, router.url, f"handover-{who_leaves}")
    load = Load(router.url, upstream)
    second = targets.Target("signalbox", router.url, router.operator_url)
    try:
        second.start(router.command, tmp_path / "second.log", f"{router.url}/v1/models/m")
        leaving, staying = (router, second) if who_leaves == "the older" else (second, router)
        wait_until_logged(second, "accepting")
        before = load.count
        while load.count < before + 50 and not load.failures:
            time.sleep(0.01)
        leaving.process.terminate()
        held.go.set()
        assert held.body() == event("a") + event("b") + DONE
        assert leaving.process.wait(60) == 0
        before = load.count
        while load.count < before + 50 and not load.failures:
            time.sleep(0.01)
        load.end()
        assert not load.failures, load.failures[:3]
        assert staying.process.poll() is None
    finally:
        load.end()
        second.close()


def wait_until_logged(target: targets.Target, word: str) -> None:
    until(lambda: word in target.log.read_text(), 60)
