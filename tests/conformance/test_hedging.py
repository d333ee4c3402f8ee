"""With a policy that hedges, a request whose engine is late goes to a second one too. Only for a Signalbox of the suite's own."""

import time

import pytest

import targets
from client import Client, until
from test_streams import DONE, event
from upstream import LAST_CHUNK, SSE_HEAD, chunk

POLICY = targets.POLICY.replace("attempts 2", "attempts 2 hedge tokens 4096 quantile 90% least 20ms").replace(
    "first_byte 3s", "first_byte 20s")


@pytest.fixture(scope="module")
def hedging(request, upstream, tmp_path_factory):
    if request.config.getoption("--base-url") or request.config.getoption("--target") != "signalbox":
        pytest.skip("starts a router of its own")
    running = targets.signalbox(tmp_path_factory.mktemp("hedging"), [engine.port for engine in upstream.engines], POLICY)
    yield running
    running.close()


@pytest.fixture
def asking(hedging, upstream):
    """A client of a router that knows how soon first bytes come."""
    before = Client(hedging, upstream)
    before.case.answers(SSE_HEAD + chunk(event("warm") + DONE) + LAST_CHUNK)
    for _ in range(25):
        assert before.ask(before.stream()).status == 200
    made = Client(hedging, upstream)
    yield made
    made.close()
    before.close()


def test_a_late_engine_is_overtaken_and_told_to_stop(asking):
    stopped = []

    def silent(exchange):
        stopped.append(exchange.closed_after())

    asking.case.answers(silent, SSE_HEAD + chunk(event("a") + DONE) + LAST_CHUNK)
    answer = asking.ask(asking.stream())
    assert answer.status == 200 and answer.body == event("a") + DONE
    assert answer.get("x-signalbox-attempts") == "2"
    first, second = asking.case.request(), asking.case.request()
    assert first.engine.name != second.engine.name
    assert answer.get("x-signalbox-engine") == second.engine.name
    assert until(lambda: stopped)[0] is not None, "the late engine was not told"


def test_a_long_request_is_not_sent_twice(asking):
    def late(exchange):
        time.sleep(0.3)  # later than any first byte before
        exchange.send(SSE_HEAD, chunk(event("a") + DONE), LAST_CHUNK)

    asking.case.answers(late)
    long = asking.body(stream=True, messages=[{"role": "user", "content": "word " * 10_000}])
    answer = asking.ask(asking.post(long))
    assert answer.body == event("a") + DONE and answer.get("x-signalbox-attempts") == "1"
    asking.case.request()
    assert asking.case.nothing_arrived()
