"""Requests in every legal form arrive at an engine as they were meant (RFC 9112, 2 to 7; RFC 9110, 7 to 10)."""

import gzip
import re
import zlib

import pytest

from upstream import json_answer
from wire import encode_chunks

CHUNKED = [("Transfer-Encoding", "chunked")]


def test_a_body_with_a_length_arrives_byte_for_byte(client, case):
    body = client.body(note="ü € \U0001f600 \\u0000")
    assert client.ask(client.post(body)).status == 200
    request = case.request()
    assert request.body == body
    assert request.target == "/v1/chat/completions" and request.method == "POST"


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_a_chunked_body_arrives_whole_in_any_chunking(client, case, size):
    body = client.body(pad="x" * (300_000 if size > 7 else 300))
    assert client.ask(client.head(fields=CHUNKED) + encode_chunks(body, size)).status == 200
    assert case.request().body == body


@pytest.mark.parametrize("name, change", [
    ("an extension", lambda c: c.replace(b"\r\n", b";name=value\r\n", 1)),
    ("a quoted extension", lambda c: c.replace(b"\r\n", b';name="a; b"\r\n', 1)),
    ("leading zeros", lambda c: b"0000" + c),
    ("upper case", lambda c: c[:c.index(b"\r")].upper() + c[c.index(b"\r"):]),
    ("a long last chunk", lambda c: c[:-5] + b"000\r\n\r\n"),
    ("trailers", lambda c: c[:-2] + b"X-Digest: abc\r\nX-Other: def\r\n\r\n"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_a_chunked_body_may_have(client, case, name, change):
    body = client.body(pad="y" * 150)
    assert client.ask(client.head(fields=CHUNKED) + change(encode_chunks(body, 100000))).status == 200
    request = case.request()
    assert request.body == body
    assert not request.head.all("x-digest"), "a trailer must not become a header field"


def test_a_request_may_arrive_byte_by_byte(client, case):
    request = client.post()
    with client.connect() as connection:
        connection.send(*(request[i:i + 1] for i in range(len(request))))
        assert connection.answer().status == 200
    assert case.request().body == client.body()


def test_a_chunked_request_may_arrive_byte_by_byte(client, case):
    request = client.head(fields=CHUNKED) + encode_chunks(client.body(), 5)
    with client.connect() as connection:
        connection.send(*(request[i:i + 1] for i in range(len(request))))
        assert connection.answer().status == 200
    assert case.request().body == client.body()


@pytest.mark.parametrize("fields", [
    [("CONTENT-TYPE", "application/json")], [("content-type", "  application/json\t ")], [("Content-Type", "application/json; charset=utf-8")],
    [("Content-Type", "text/plain")], [],
], ids=["upper case name", "space around the value", "a parameter", "another type", "no type"])
def test_fields_are_read_without_regard_to(client, case, fields):
    body = client.body()
    assert client.ask(client.head(fields=[*fields, ("content-LENGTH", str(len(body)))]) + body).status == 200
    assert case.request().body == body


def test_an_empty_line_before_a_request_is_skipped(client):
    assert client.ask(b"\r\n" + client.post()).status == 200


def test_an_absolute_target_is_understood(client, case):
    body = client.body()
    head = client.head(path="http://router/v1/chat/completions?a=b", fields=[("Content-Length", str(len(body)))])
    assert client.ask(head + body).status == 200
    assert case.request().target.endswith("/v1/chat/completions?a=b")


def test_a_query_passes_untouched(client, case):
    path = "/v1/chat/completions?api-version=2024-10-21&x=%2F%20+%C3%BC"
    assert client.ask(client.post(path=path)).status == 200
    assert case.request().target == path


# Expect: 100-continue (RFC 9110, 10.1.1)

def test_continue_is_said_before_the_body(client, case):
    body = client.body()
    with client.connect() as connection:
        connection.send(client.head(fields=[("Content-Length", str(len(body))), ("Expect", "100-continue")]))
        assert connection.head().status == 100
        connection.send(body)
        assert connection.answer().status == 200
    assert case.request().body == body


def test_continue_is_said_before_a_chunked_body(client, case):
    with client.connect() as connection:
        connection.send(client.head(fields=[*CHUNKED, ("Expect", "100-Continue")]))
        assert connection.head().status == 100
        connection.send(encode_chunks(client.body(), 9))
        assert connection.answer().status == 200
    assert case.request().body == client.body()


def test_a_client_need_not_wait_for_continue(client, case):
    with client.connect() as connection:
        connection.send(client.post(fields={"Expect": "100-continue"}))
        assert connection.answer().status == 200
    assert case.request().body == client.body()


def test_an_unknown_expectation_is_refused(client, case):
    answer = client.ask(client.post(fields={"Expect": "a-miracle"}))
    assert answer.status == 417
    assert case.nothing_arrived()


def test_an_old_clients_expectation_is_ignored(client):
    body = client.body()
    head = client.head(version="HTTP/1.0", fields=[("Content-Length", str(len(body))), ("Expect", "100-continue")])
    answer = client.ask(head + body)
    assert answer.status == 200 and answer.interim == []


# What passes to the engine and what does not (RFC 9110, 7.6)

@pytest.mark.parametrize("name, value", [
    ("Authorization", "Bearer sk-secret"), ("OpenAI-Organization", "org-1"),
    ("Accept", "text/event-stream"), ("X-Stainless-Lang", "python"), ("User-Agent", "a/1"), ("X-Latin", "caf\xe9"), ("X-Empty", ""),
])
def test_a_field_passes_to_the_engine(client, case, name, value):
    assert client.ask(client.post(fields={name: value})).status == 200
    assert case.request().head.all(name) == [value]


TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_trace_goes_on_to_the_engine(client, case):
    fields = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
    assert client.ask(client.post(fields=fields)).status == 200
    head = case.request().head
    (passed,) = head.all("traceparent")
    version, trace, parent, flags = passed.split("-")
    assert (version, trace, flags) == ("00", TRACE, "01") and re.fullmatch("[0-9a-f]{16}", parent)
    assert head.all("tracestate") == ["vendor=1"]


def test_the_routers_own_span_is_the_parent_of_the_engines(client, case):
    case.answers(json_answer(b"{}", "503 Busy"), json_answer())
    answer = client.ask(client.post(fields={"traceparent": f"00-{TRACE}-{PARENT}-01"}))
    failed, served = (case.request().head.get("traceparent").split("-")[2] for _ in range(2))
    assert len({PARENT, failed, served}) == 3, "each attempt is a span of its own"
    assert answer.get("traceresponse") == f"00-{TRACE}-{served}-01"


@pytest.mark.parametrize("value", [
    "", "nonsense", f"00-{TRACE}-{PARENT}", f"00-{TRACE}-{PARENT}-01-more", f"ff-{TRACE}-{PARENT}-01", f"00-{TRACE.upper()}-{PARENT}-01",
    f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01", f"00_{TRACE}_{PARENT}_01",
], ids=["empty", "nonsense", "short", "long", "version ff", "upper case", "no trace", "no parent", "other separators"])
def test_a_trace_that_is_not_one_ends_here(client, case, value):
    assert client.ask(client.post(fields={"traceparent": value, "tracestate": "vendor=1"})).status == 200
    head = case.request().head
    assert head.all("traceparent") == [] and head.all("tracestate") == []


def test_repeated_fields_pass_in_order(client, case):
    assert client.ask(client.post(fields=[("X-A", "1"), ("X-B", "2"), ("X-A", "3")])).status == 200
    head = case.request().head
    assert head.all("x-a") in (["1", "3"], ["1, 3"]) and head.all("x-b") == ["2"]


@pytest.mark.parametrize("fields", [
    [("Connection", "x-private, keep-alive"), ("X-Private", "1")], [("Keep-Alive", "timeout=5")], [("TE", "trailers"), ("Connection", "TE")],
    [("Proxy-Connection", "keep-alive")], [("Proxy-Authorization", "Basic eA==")], [("Upgrade", "h2c"), ("Connection", "Upgrade")],
    [("Connection", "a"), ("Connection", "x-private"), ("X-Private", "1")],
], ids=["named by Connection", "Keep-Alive", "TE", "Proxy-Connection", "Proxy-Authorization", "Upgrade", "named by a second Connection"])
def test_a_field_of_one_connection_stays(client, case, fields):
    assert client.ask(client.post(fields=fields)).status == 200
    head = case.request().head
    for name, _ in fields:
        if name != "Connection":
            assert head.all(name) == [], name
    assert "x-private" not in head.get("connection").lower()


def test_framing_cannot_be_dropped_by_connection(client, case):
    """A Connection field that names Content-Length must not take the body's length away."""
    assert client.ask(client.post(fields={"Connection": "content-length, host"})).status in (200, 400)
    if not case.nothing_arrived():
        assert case.request().body == client.body()


def test_a_gateway_says_via(client, case):
    """RFC 9110, 7.6.3: it MUST, in each request that it forwards."""
    assert client.ask(client.post(fields={"Via": "1.1 before"})).status == 200
    via = ", ".join(case.request().head.all("via"))
    assert via.startswith("1.1 before, 1.1 "), via


def test_an_expectation_is_not_passed_on_after_it_was_met(client, case):
    assert client.ask(client.post(fields={"Expect": "100-continue"})).status == 200
    assert case.request().body == client.body()


# Content codings

def test_a_compressed_answer_passes_untouched(client, case):
    packed = gzip.compress(b'{"choices":[]}')
    case.answers(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)
    answer = client.ask(client.post(fields={"Accept-Encoding": "gzip"}))
    assert answer.get("content-encoding") == "gzip" and gzip.decompress(answer.body) == b'{"choices":[]}'
    assert case.request().head.get("accept-encoding") == "gzip"


@pytest.mark.parametrize("coding, pack", [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)])
def test_a_compressed_request_is_routed_and_passes_untouched(client, case, coding, pack):
    body = client.body(pad="z" * 5000)
    assert client.ask(client.post(pack(body), {"Content-Encoding": coding})).status == 200
    request = case.request()
    assert request.body == pack(body) and request.head.get("content-encoding") == coding


def test_the_model_of_a_compressed_request_counts(client, case):
    answer = client.ask(client.post(gzip.compress(client.body(model="nobodys")), {"Content-Encoding": "gzip"}))
    assert answer.status == 404 and answer.error()["code"] == "model_not_found"
    assert case.nothing_arrived()


def test_a_broken_compression_is_refused(client, case):
    answer = client.ask(client.post(b"\x1f\x8b not gzip", {"Content-Encoding": "gzip"}))
    assert answer.status == 400 and case.nothing_arrived()


def test_an_unknown_compression_is_refused_by_name(client, case):
    answer = client.ask(client.post(fields={"Content-Encoding": "br"}))
    assert answer.status == 415 and "gzip" in answer.get("accept-encoding")
    assert case.nothing_arrived()


def test_a_compression_bomb_is_refused(client, case):
    bomb = gzip.compress(b'{"model":"m","pad":"' + b"0" * (80 << 20) + b'"}', 9)
    answer = client.ask(client.post(bomb, {"Content-Encoding": "gzip"}))
    assert answer.status == 413 and case.nothing_arrived()


@pytest.mark.parametrize("name", ["x", "messages", "stream_options"])
def test_deep_json_hurts_nobody(client, name):
    body = f'{{"model":"m","{name}":'.encode() + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert client.ask(client.post(body)).status in (200, 400)
    assert client.still_serves()
