"""Connections are used again on both sides, in order, and a stale one costs the client nothing (RFC 9112, 9)."""

import threading
import time

import pytest

from client import ATTEMPTS
from upstream import OK_BODY, json_answer
from wire import encode_chunks


def test_a_connection_serves_many_requests(client):
    with client.connect() as connection:
        for _ in range(20):
            connection.send(client.post())
            assert connection.answer().status == 200


def test_engines_connections_are_used_again(client, case):
    with client.connect() as connection:
        for _ in range(20):
            connection.send(client.post())
            assert connection.answer().status == 200
    seen = {(e.engine.name, e.connection) for e in (case.request() for _ in range(20))}
    assert len(seen) <= 2, seen


@pytest.mark.parametrize("count", [2, 3, 30])
def test_pipelined_requests_are_answered_in_order(client, case, count):
    case.answers(lambda e: e.send(json_answer(e.body)))
    bodies = [client.body(n=1, pad=str(i)) for i in range(count)]
    with client.connect() as connection:
        connection.send(b"".join(client.post(body) for body in bodies))
        assert [connection.answer().body for _ in bodies] == bodies


def test_pipelined_chunked_requests_are_answered_in_order(client, case):
    case.answers(lambda e: e.send(json_answer(e.body)))
    bodies = [client.body(pad=str(i)) for i in range(5)]
    with client.connect() as connection:
        connection.send(b"".join(client.head(fields=[("Transfer-Encoding", "chunked")]) + encode_chunks(body, 7) for body in bodies))
        assert [connection.answer().body for _ in bodies] == bodies


def test_a_pipeline_may_be_cut_anywhere(client, case):
    case.answers(lambda e: e.send(json_answer(e.body)))
    bodies = [client.body(pad=str(i)) for i in range(3)]
    wire = b"".join(client.post(body) for body in bodies)
    with client.connect() as connection:
        connection.send(*(wire[i:i + 11] for i in range(0, len(wire), 11)))
        assert [connection.answer().body for _ in bodies] == bodies


def test_a_slow_first_request_does_not_let_the_second_overtake(client, case):
    def script(exchange):
        if b"first" in exchange.body:
            time.sleep(0.1)
        exchange.send(json_answer(exchange.body))
    case.answers(script)
    first, second = client.body(pad="first"), client.body(pad="second")
    with client.connect() as connection:
        connection.send(client.post(first) + client.post(second))
        assert [connection.answer().body for _ in range(2)] == [first, second]


def test_a_pipeline_is_answered_up_to_a_malformed_request(client):
    with client.connect() as connection:
        connection.send(client.post() + b"RUBBISH\r\n\r\n" + client.post())
        assert connection.answer().status == 200
        assert connection.answer().status == 400
        assert connection.ends()


def test_mixed_methods_in_a_pipeline_keep_their_framing(client):
    with client.connect() as connection:
        connection.send(client.head("HEAD", "/v1/models") + client.head("GET", "/v1/models") + client.post() + client.head("HEAD", "/v1/models"))
        assert connection.answer("HEAD").body == b""
        assert connection.answer("GET").body
        assert connection.answer().body == OK_BODY
        assert connection.answer("HEAD").status == 200
        assert not connection.unread


@pytest.mark.parametrize("value", ["close", "Close", "keep-alive, close"])
def test_close_is_honoured_and_said(client, value):
    with client.connect() as connection:
        connection.send(client.post(fields={"Connection": value}))
        answer = connection.answer()
        assert answer.status == 200 and "close" in answer.get("connection")
        assert connection.ends(2)


def test_an_old_client_is_closed_unless_it_asks(client):
    body = client.body()
    head = [("Content-Length", str(len(body)))]
    with client.connect() as connection:
        connection.send(client.head(version="HTTP/1.0", fields=head) + body)
        assert connection.answer().status == 200 and connection.ends(2)
    with client.connect() as connection:
        for _ in range(2):
            connection.send(client.head(version="HTTP/1.0", fields=[*head, ("Connection", "keep-alive")]) + body)
            answer = connection.answer()
            assert answer.status == 200 and "keep-alive" in answer.get("connection").lower()


def test_an_old_client_without_host_is_served(client):
    body = client.body()
    head = client.head(version="HTTP/1.0", host=None, fields=[("Content-Length", str(len(body)))])
    assert client.ask(head + body).status == 200


def test_a_later_minor_version_is_served(client):
    assert client.ask(client.post(version="HTTP/1.2")).status == 200


def test_a_connection_that_its_engine_closed_while_idle_costs_nothing(client, case):
    """As llama-server does after each streamed answer, in spite of its promise."""
    def script(exchange):
        exchange.send(json_answer())
        exchange.close()
    case.answers(script)
    with client.connect() as connection:
        for _ in range(10):
            connection.send(client.post())
            assert connection.answer().body == OK_BODY


def test_a_connection_that_its_engine_closes_as_the_next_request_comes_costs_nothing(client, case):
    """The race that nobody can avoid: the request is on its way when the engine closes. No byte of an answer came: it is sent again."""
    seen = {}

    def script(exchange):
        key = (exchange.engine.name, exchange.connection)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:
            return exchange.close()
        exchange.send(json_answer())

    case.answers(script)
    with client.connect() as connection:
        for _ in range(12):
            connection.send(client.post())
            answer = connection.answer()
            assert answer.body == OK_BODY and answer.get("x-signalbox-attempts", "1") == "1"


def test_a_fresh_connection_that_closes_is_not_tried_for_ever(client, case):
    case.answers(lambda e: e.close())
    assert client.ask().status in (502, 503)
    assert case.attempts <= 4


def test_many_connections_at_once_are_served(client, case):
    connections = [client.connect() for _ in range(200)]
    for connection in connections:
        connection.send(client.post())
    assert all(connection.answer().status == 200 for connection in connections)


def test_an_idle_connection_does_not_hold_up_others(client):
    _idle = [client.connect() for _ in range(50)]
    took: list[float] = []
    while len(took) < ATTEMPTS and min(took, default=0.5) >= 0.5:
        began = time.monotonic()
        assert client.ask().status == 200
        took.append(time.monotonic() - began)
    assert min(took) < 0.5, took


def test_requests_at_one_time_reach_engines_at_one_time(client, case):
    barrier = threading.Barrier(8)

    def script(exchange):
        barrier.wait(30)
        exchange.send(json_answer())

    case.answers(script)
    connections = [client.connect() for _ in range(8)]
    for connection in connections:
        connection.send(client.post())
    assert all(connection.answer().status == 200 for connection in connections)
