"""Traces of requests reach a collector, with the decision's facts; a collector that is away, slow or unwilling is never felt."""

import time

import pytest

from collector import Collector, facts
from fleet import Fleet, example, stop_all, wait_for
from load import bad, chat

SERVER, CLIENT, ERROR = 2, 3, 2
PARENT = "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def collector():
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture(scope="module")
def traced(tmp_path_factory, request, collector):
    config = example("laptop.toml")
    config["traces"] = {"endpoint": collector.url, "share": 1.0, "limit": 1000, "token_file": "token"}
    fleet = Fleet(tmp_path_factory.mktemp("traced"), config)
    (fleet.folder / "token").write_text("first\n")
    try:
        yield fleet.up()
    finally:
        stop_all([fleet], request.node)


@pytest.fixture
def willing(collector):
    """The collector answers as it should, before the test and after it."""
    collector.answer = 200
    yield collector
    collector.answer = 200
    collector.released.set()
    assert not collector.mistakes


def exported(fleet, outcome: str) -> float:
    return fleet.metrics("router-east")[f'signalbox_router_traces_total{{outcome="{outcome}"}}']


def recorded(trace: str, flags: str = "01") -> dict:
    return {"traceparent": f"00-{trace}-{PARENT}-{flags}"}


def test_a_request_is_told_with_the_facts_of_its_decision(traced, willing):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    answer = chat(traced.url("router-east"), "m-small", "hello", max_tokens=3, stream=True, headers=recorded(trace))
    assert answer.good
    request, attempt = wait_for("both spans", lambda: len(willing.trace(trace)) == 2 and willing.trace(trace), 60)
    assert (request.kind, attempt.kind) == (SERVER, CLIENT)
    assert request.parent_span_id.hex() == PARENT and attempt.parent_span_id == request.span_id
    assert request.name == "POST /v1/chat/completions" and attempt.name == "chat m-small"
    said = facts(request)
    assert said["signalbox.decision"] == answer.decision and said["signalbox.engine"] == answer.engine
    assert said["signalbox.snapshot"] == answer.snapshot and said["http.response.status_code"] == 200
    assert said["gen_ai.request.model"] == "m-small" and said["signalbox.attempts"] == 1
    assert said["signalbox.candidates.engines"][0] == answer.engine
    parts = [said[f"signalbox.cost.{part}_s"] for part in ("network", "queue", "prefill", "decode", "price")]
    assert sum(parts) == pytest.approx(said["signalbox.candidates.cost_s"][0], rel=1e-4)
    # What explain says of the decision is what the trace says.
    explained = traced.signalbox("explain", answer.decision).stdout
    assert answer.engine in explained and said["signalbox.class"] in explained
    # Unix time, inside the time that the client saw.
    took_s = (request.end_time_unix_nano - request.start_time_unix_nano) / 1e9
    assert 0 < took_s <= answer.total_s and abs(request.start_time_unix_nano / 1e9 - time.time()) < 60
    (first_byte,) = attempt.events
    assert attempt.start_time_unix_nano <= first_byte.time_unix_nano <= attempt.end_time_unix_nano
    who = next(who for who, span in willing.spans if span.span_id == request.span_id)
    assert who["service.name"] == "signalbox-router" and who["service.instance.id"] == "router-east"
    assert willing.fields[-1]["Authorization"].startswith("Bearer ")


def test_a_trace_begins_here_when_none_came_and_none_is_made_of_one_that_is_not_recorded(traced, willing):
    alone = chat(traced.url("router-east"), "m-small", "hello", max_tokens=1)
    skipped = chat(traced.url("router-east"), "m-small", "hello", max_tokens=1, headers=recorded("5" * 32, "00"))
    last = chat(traced.url("router-east"), "m-small", "hello", max_tokens=1)
    wait_for("the later trace", lambda: willing.of_decision(last.decision), 60)
    spans = wait_for("both spans", lambda: len(spans := willing.of_decision(alone.decision)) >= 2 and spans, 60)
    assert spans[0].parent_span_id == b"" and len(spans) == 2
    assert willing.trace("5" * 32) == [] and willing.of_decision(skipped.decision) == []


def test_a_refusal_is_told_too(traced, willing):
    refused = chat(traced.url("router-east"), "m-unknown", "hello", headers=recorded("6" * 32))
    assert refused.status == 404
    (span,) = wait_for("its span", lambda: willing.trace("6" * 32), 60)
    said = facts(span)
    assert said["error.type"] == "refused" and said["signalbox.refused"] == "unknown_model" and span.status.code == ERROR


@pytest.mark.parametrize("answer", [503, 400, None], ids=["busy", "unwilling", "silent"])
def test_a_collector_in_trouble_is_not_felt_by_requests_and_counted(traced, willing, answer):
    willing.released.clear()
    willing.answer = answer
    failures = traced.metrics("router-east")["signalbox_router_trace_export_failures_total"]
    lost = exported(traced, "refused")
    url = traced.url("router-east")
    assert not bad([chat(url, "m-small", "hello", max_tokens=1) for _ in range(20)])
    if answer == 400:
        wait_for("what it did not want is counted", lambda: exported(traced, "refused") > lost, 60)
    wait_for("a request that failed", lambda: traced.metrics("router-east")["signalbox_router_trace_export_failures_total"] > failures, 60)
    assert not bad([chat(url, "m-small", "hello", max_tokens=1) for _ in range(5)])
    willing.answer = 200
    willing.released.set()
    (traced.folder / "token").write_text("second\n")
    late = chat(url, "m-small", "hello", max_tokens=1)
    assert wait_for("traces come again", lambda: willing.of_decision(late.decision), 60)
    assert willing.fields[-1]["Authorization"] == "Bearer second"
    log = traced.state / "logs" / "router-east.log"
    words = {"traces_refused" if answer == 400 else "traces_not_exported", "traces_exported_again"}
    wait_for("the log tells of it", lambda: all(word in log.read_text() for word in words), 60)


def test_what_waits_is_sent_when_the_router_stops(traced, willing):
    last = chat(traced.url("router-west"), "m-small", "hello", max_tokens=1)
    traced.down()
    assert willing.of_decision(last.decision)
