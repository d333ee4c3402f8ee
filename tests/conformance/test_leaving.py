"""A client that leaves is noticed in every phase, and its engine told within 100 ms; one that stays never suffers from it."""

import socket
import statistics
import threading
import time

import pytest

from client import ATTEMPTS, Client
from upstream import LAST_CHUNK, SSE_HEAD, chunk
from wire import Connection

PROMPT = 0.1
ALIVE = b": alive\n\n"
EVENT = b'data: {"choices":[]}\n\n'


def leave(connection: Connection, how: str) -> None:
    if how == "reset":
        connection.reset()
    elif how == "half":
        connection.socket.shutdown(socket.SHUT_WR)
    else:
        connection.close()


def told_after(client, case, answer_until, how: str, read_first: bool) -> float:
    """How long after the client left the engine saw its connection end."""
    left, closed = {}, {}
    ready, done = threading.Event(), threading.Event()

    def script(exchange):
        answer_until(exchange)
        ready.set()
        closed["at"] = exchange.closed_after()
        done.set()

    case.answers(script)
    connection = client.connect()
    connection.send(client.stream())
    if read_first:
        connection.head()
    assert ready.wait(30)
    time.sleep(0.02)
    left["at"] = time.monotonic()
    leave(connection, how)
    assert done.wait(40) and closed["at"], "the engine was not told"
    return closed["at"] - left["at"]


PHASES = {
    "before the head": (lambda e: None, False),
    "after the head": (lambda e: e.send(SSE_HEAD), False),
    "after an interim answer": (lambda e: e.send(b"HTTP/1.1 102 Processing\r\n\r\n"), False),
    "inside the head": (lambda e: e.send(SSE_HEAD[:30]), False),
    "in the middle of the stream": (lambda e: e.send(SSE_HEAD, chunk(EVENT) * 3), True),
    "inside an event": (lambda e: e.send(SSE_HEAD, chunk(EVENT[:9])), True),
    "after the stream's last event": (lambda e: e.send(SSE_HEAD, chunk(EVENT), chunk(b"data: [DONE]\n\n")), True),
    "in the middle of a whole answer": (lambda e: e.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"), True),
}


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("answer_until, read_first", PHASES.values(), ids=PHASES.keys())
def test_an_engine_is_told_of_a_client_that_left(client, case, answer_until, read_first, how):
    def median() -> float:
        return statistics.median(told_after(client, case, answer_until, how, read_first) for _ in range(3))
    times: list[float] = []
    while len(times) < ATTEMPTS and min(times, default=PROMPT) >= PROMPT:
        times.append(median())
    assert min(times) < PROMPT, times


def test_an_engine_is_told_when_its_answer_backs_up(client, case):
    """The client read nothing and leaves while the router holds a part of the answer."""
    times: list[float] = []
    while len(times) < ATTEMPTS and min(times, default=PROMPT) >= PROMPT:
        times.append(told_of_a_client_that_read_nothing(client, case))
    assert min(times) < PROMPT, times


def told_of_a_client_that_read_nothing(client, case) -> float:
    """After how long."""
    closed, full, done = {}, threading.Event(), threading.Event()

    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 90000000\r\n\r\n")
        exchange.peer.settimeout(0.3)
        try:
            for _ in range(90):
                exchange.send(b"x" * 1_000_000)
        except TimeoutError:
            full.set()
        closed["at"] = exchange.closed_after()
        done.set()

    case.answers(script)
    connection = client.connect(receive_buffer=4096)
    connection.send(client.post())
    assert full.wait(30)
    left = time.monotonic()
    connection.reset()
    assert done.wait(40) and closed["at"]
    return closed["at"] - left


@pytest.mark.parametrize("part", [0.1, 0.6, 0.95], ids=["in its head", "in its body", "near the end of its body"])
def test_a_client_that_leaves_while_it_sends_reaches_no_engine(client, case, part):
    request = client.post(client.body(pad="x" * 500))
    connection = client.connect()
    connection.send(request[:int(len(request) * part)])
    time.sleep(0.02)
    connection.close()
    assert client.still_serves()
    assert case.nothing_arrived()


def test_an_engine_is_told_while_a_large_request_is_on_its_way(client, case):
    """The engine reads nothing of the body; the client leaves."""
    closed = {}

    def stuck(exchange):
        time.sleep(0.1)
        began = time.monotonic()
        left.set()
        closed["after"] = (exchange.closed_after() or began + 99) - began
        seen.set()

    left, seen = threading.Event(), threading.Event()
    case.early = stuck
    connection = client.connect()
    connection.send(client.post(client.body(pad="x" * (24 << 20))))
    assert left.wait(60)
    connection.close()
    assert seen.wait(40) and closed["after"] < 10


def test_a_client_in_a_pipeline_that_leaves_reaches_no_engine_twice(client, case):
    """The second request has not begun when the client leaves: it is not begun at all."""
    closed = threading.Event()

    def script(exchange):
        exchange.closed_after()
        closed.set()

    case.answers(script)
    connection = client.connect()
    connection.send(client.stream() + client.stream())
    case.request()
    time.sleep(0.02)
    connection.close()
    assert closed.wait(40)
    assert client.still_serves() and case.nothing_arrived()


def test_others_on_the_same_engine_go_on(client, target, upstream):
    staying = Client(target, upstream)
    go = threading.Event()

    def script(exchange):
        exchange.send(SSE_HEAD, chunk(EVENT))
        while not go.wait(0.2):
            exchange.send(chunk(ALIVE))
        exchange.send(chunk(EVENT), chunk(b"data: [DONE]\n\n"), LAST_CHUNK)

    staying.case.answers(script)
    kept = staying.connect()
    kept.send(staying.stream())
    answer = kept.head()
    client.case.answers(lambda e: (e.send(SSE_HEAD, chunk(EVENT)), e.closed_after()))
    leaving = client.connect()
    leaving.send(client.stream())
    leaving.head()
    leaving.reset()
    go.set()
    assert kept.body_of(answer).body.replace(ALIVE, b"") == EVENT * 2 + b"data: [DONE]\n\n"
    staying.close()


def test_the_connection_of_a_cancelled_request_is_not_used_again(client, case):
    """Its answer may still be on the way: the next request must not read it as its own."""
    case.answers(lambda e: (e.send(SSE_HEAD, chunk(EVENT)), e.closed_after()), lambda e: e.send(SSE_HEAD, chunk(b"data: 2\n\ndata: [DONE]\n\n"), LAST_CHUNK))
    connection = client.connect()
    connection.send(client.stream())
    connection.head()
    first = case.request()
    connection.close()
    assert client.ask(client.stream()).body == b"data: 2\n\ndata: [DONE]\n\n"
    second = case.request()
    assert (first.engine, first.connection) != (second.engine, second.connection)
