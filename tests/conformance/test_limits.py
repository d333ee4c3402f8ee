"""Sizes and times: large bodies pass, larger ones are refused by name, nobody holds a connection for ever."""

import time

import pytest

from client import until
from upstream import json_answer
from wire import Cut, encode_chunks

MIB = 1 << 20
LIMIT = 64 * MIB
CHUNKED = [("Transfer-Encoding", "chunked")]


def padded(client, size: int) -> bytes:
    """A request body of exactly this size."""
    body = client.body(pad="")
    return body.replace(b'"pad": ""', b'"pad": "' + b"x" * (size - len(body)) + b'"')


# Heads

@pytest.mark.parametrize("size", [8_000, 16_000])
def test_a_head_of_some_kilobytes_passes(client, case, size):
    assert client.ask(client.post(fields={"X-Large": "a" * size})).status == 200
    assert len(case.request().head.get("x-large")) == size


def test_many_fields_pass(client, case):
    assert client.ask(client.post(fields=[(f"X-{i}", str(i)) for i in range(60)])).status == 200
    assert case.request().head.get("x-59") == "59"


def test_a_field_that_is_too_large_is_431(client, case):
    answer = client.ask(client.head(fields=[("X-Large", "a" * 70_000), ("Content-Length", "0")]))
    assert answer.status == 431 and case.nothing_arrived()


def test_too_many_fields_are_431(client, case):
    answer = client.ask(client.head(fields=[(f"X-{i}", "1") for i in range(5000)]))
    assert answer.status == 431 and case.nothing_arrived()


def test_a_head_without_end_is_cut_off_at_the_limit(client):
    with client.connect() as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        for _ in range(200):
            connection.send(b"X-A: " + b"b" * 1000 + b"\r\n")
        assert b" 431 " in connection.rest()[:20]


def test_a_target_of_8000_bytes_passes(client, case):
    path = "/v1/chat/completions?q=" + "a" * 7900
    assert client.ask(client.post(path=path)).status == 200
    assert case.request().target == path


def test_a_target_that_is_too_long_is_414(client, case):
    answer = client.ask(client.head(path="/v1/" + "a" * 40_000, fields=[("Content-Length", "0")]))
    assert answer.status == 414 and case.nothing_arrived()


def test_a_first_line_without_end_is_414(client):
    with client.connect() as connection:
        connection.send(b"GET /" + b"a" * 100_000)
        assert b" 414 " in connection.rest()[:20]


# Bodies

@pytest.mark.parametrize("size", [2 * MIB, LIMIT], ids=["2 MiB", "64 MiB"])
def test_a_large_body_passes(client, case, size):
    body = padded(client, size)
    assert client.ask(client.post(body)).status == 200
    arrived = case.request().body
    assert len(arrived) == size and arrived == body


def test_a_large_chunked_body_passes(client, case):
    body = padded(client, 8 * MIB)
    assert client.ask(client.head(fields=CHUNKED) + encode_chunks(body, 60_000)).status == 200
    assert case.request().body == body


def test_a_body_over_the_limit_is_413_and_names_it(client, case):
    with client.connect() as connection:
        connection.send(client.head(fields=[("Content-Length", str(LIMIT + 1))]))
        answer = connection.answer()
        assert answer.status == 413 and str(LIMIT) in answer.error()["message"]
        assert connection.ends()
    assert case.nothing_arrived()


def test_a_chunked_body_over_the_limit_is_413(client, case):
    with client.connect() as connection:
        connection.send(client.head(fields=CHUNKED))
        piece = b"100000\r\n" + b" " * MIB + b"\r\n"
        for _ in range(65):
            connection.send(piece)
        assert connection.answer().status == 413
    assert case.nothing_arrived()


def test_a_client_that_asks_first_is_told_413_and_not_to_continue(client):
    with client.connect() as connection:
        connection.send(client.head(fields=[("Content-Length", str(LIMIT + 1)), ("Expect", "100-continue")]))
        answer = connection.answer()
        assert answer.status == 413 and answer.interim == []


def test_a_client_that_sends_all_the_same_reads_its_413(client):
    """The answer is not lost in a reset although the client goes on sending."""
    with client.connect() as connection:
        connection.send(client.head(fields=[("Content-Length", str(LIMIT + 1))]))
        for _ in range(8):
            connection.send(b"x" * MIB)
        assert connection.answer().status == 413


def test_a_large_answer_passes(client, case):
    body = b'{"x":"' + b"y" * (8 * MIB) + b'"}'
    case.answers(json_answer(body))
    assert client.ask().body == body


# Slow clients

def test_a_slow_head_is_ended(client):
    with client.connect() as connection:
        began = time.monotonic()
        connection.send(b"POST /v1/chat/completions HTTP/1.1\r\n")
        answered = b""
        while time.monotonic() - began < 20:
            connection.send(b"X-A: b\r\n")
            connection.socket.settimeout(0.2)
            try:
                answered = connection.rest() if connection._more() else b""
                break
            except TimeoutError:
                continue
            except Cut:
                break
        assert time.monotonic() - began < 12, "each new line must not win more time"
        assert answered == b"" or b" 408 " in answered[:20]
    assert client.still_serves()


def test_a_head_that_stops_is_ended(client):
    with client.connect() as connection:
        connection.send(client.post()[:40])
        rest = connection.rest()
        assert rest == b"" or b" 408 " in rest[:20]


def test_a_body_that_stops_is_ended(client, case):
    with client.connect() as connection:
        connection.send(client.post()[:-5])
        rest = connection.rest()
        assert rest == b"" or b" 408 " in rest[:20]
    assert case.nothing_arrived()


def test_a_chunked_body_that_stops_is_ended(client, case):
    with client.connect() as connection:
        connection.send(client.head(fields=CHUNKED) + b"5\r\nab")
        rest = connection.rest()
        assert rest == b"" or b" 408 " in rest[:20]
    assert case.nothing_arrived()


def test_a_body_that_trickles_is_ended(client, case):
    """A byte now and then must not hold a connection as long as the sender likes."""
    with client.connect() as connection:
        connection.send(client.head(fields=[("Content-Length", "1000000")]))
        began = time.monotonic()
        connection.socket.settimeout(0.3)
        while time.monotonic() - began < 25:
            connection.send(b"x")
            try:
                connection._more()
                break
            except TimeoutError:
                continue
            except Cut:
                break
        assert time.monotonic() - began < 20
    assert case.nothing_arrived()


def test_an_idle_connection_is_ended_in_silence(client):
    with client.connect() as connection:
        connection.send(client.post())
        assert connection.answer().status == 200
        assert connection.rest() == b""


def test_a_connection_that_never_speaks_is_ended(client):
    with client.connect() as connection:
        rest = connection.rest()
        assert rest == b"" or b" 408 " in rest[:20]
        assert connection.ends(0.1)


def test_a_client_that_reads_nothing_is_ended_and_its_engine_told(client, case):
    closed = []

    def flood(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 100000000\r\n\r\n")
        try:
            for _ in range(100):
                exchange.send(b"x" * MIB)
        except OSError:
            pass
        closed.append(exchange.closed_after())

    case.answers(flood)
    with client.connect(receive_buffer=4096) as connection:
        connection.send(client.post())
        case.request()
        assert until(lambda: closed, 60)[0] is not None
