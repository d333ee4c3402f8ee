"""Streams of server-sent events: byte for byte, at once, and never a quiet end where an engine failed."""

import json
import threading
import time

import pytest

from client import ATTEMPTS, Client
from upstream import LAST_CHUNK, SSE_HEAD, chunk

DONE = b"data: [DONE]\n\n"


def event(text: str = "x", **more) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}], **more}, ensure_ascii=False).encode() + b"\n\n"


STREAM = b": ping\n\n" + event("für ", id="1") + event("\U0001f682\U0001f6a6") + event("a\\n\\nb") + \
    event("", usage={"prompt_tokens": 3, "completion_tokens": 4}) + DONE


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[i:i + size] for i in range(0, len(body), size)]


def streamed(client, case, body: bytes, pieces: list[bytes], head: bytes = SSE_HEAD, last: bytes = LAST_CHUNK):
    case.answers(lambda e: e.send(head, *map(chunk, pieces), last))
    answer = client.ask(client.stream())
    assert answer.status == 200 and answer.body == body, answer.body[-300:]
    return answer


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 100, 10_000])
def test_a_stream_passes_byte_for_byte_in_chunks_of(client, case, size):
    streamed(client, case, STREAM, cut(STREAM, size))


@pytest.mark.parametrize("size", [1, 2, 7, 33])
def test_a_stream_passes_in_segments_of(client, case, size):
    """The chunks' own lines may be cut as well."""
    wire = SSE_HEAD + b"".join(map(chunk, cut(STREAM, 40))) + LAST_CHUNK
    case.answers(lambda e: e.send(*cut(wire, size)))
    assert client.ask(client.stream()).body == STREAM


@pytest.mark.parametrize("body", [
    STREAM.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + STREAM, b"event: message\nid: 7\nretry: 100\n" + STREAM,
    b"data:{\"a\":1}\n\n" + DONE, b"data: {\"a\":\ndata: 1}\n\n" + DONE, b"\n\n\n" + STREAM, b"data\n\n" + DONE,
    STREAM + b": bye\n\n", b"data: \xff\xfe\n\n" + DONE,
], ids=["CR LF", "a byte order mark", "named fields", "no space", "an event of two lines", "empty lines", "a field without a value",
        "a comment after the end", "bytes that are no UTF-8"])
def test_a_stream_is_not_changed_by(client, case, body):
    streamed(client, case, body, [body])


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_long_event_passes(client, case, size):
    body = event("y" * size) + DONE
    streamed(client, case, body, cut(body, 16_384))


def test_a_stream_with_a_length_passes(client, case):
    case.answers(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(STREAM) + STREAM)
    assert client.ask(client.stream()).body == STREAM


def test_a_stream_that_ends_with_its_connection_passes(client, case):
    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", STREAM)
        exchange.close()
    case.answers(script)
    assert client.ask(client.stream()).body == STREAM


def test_an_old_client_gets_its_stream(client, case):
    case.answers(lambda e: e.send(SSE_HEAD, *map(chunk, cut(STREAM, 50)), LAST_CHUNK))
    body = client.body(stream=True)
    answer = client.ask(client.head(version="HTTP/1.0", fields=[("Content-Length", str(len(body)))]) + body)
    assert answer.body == STREAM and not answer.all("transfer-encoding")


def test_events_arrive_one_by_one(client, case):
    """Each event is at the client before the engine makes the next: nothing is collected."""
    medians: list[float] = []
    while len(medians) < ATTEMPTS and min(medians, default=1.0) >= 0.04:  # a delayed acknowledgement would be 40 ms
        medians.append(median_delay(client, case))
    assert min(medians) < 0.04, medians


def median_delay(client, case) -> float:
    """From an engine's event to its client."""
    go = threading.Semaphore(0)
    count = 10

    def script(exchange):
        exchange.send(SSE_HEAD)
        for i in range(count):
            assert go.acquire(timeout=30)
            exchange.send(chunk(event(str(i))))
        assert go.acquire(timeout=30)
        exchange.send(chunk(DONE), LAST_CHUNK)

    case.answers(script)
    with client.connect() as connection:
        connection.send(client.stream())
        case.request()
        delays, got, answer = [], b"", None
        for i in range(count):
            began = time.monotonic()
            go.release()
            answer = answer or connection.head()
            size = int(connection._line(), 16)
            got += connection._take(size + 2)[:-2]
            delays.append(time.monotonic() - began)
            assert got.endswith(event(str(i)))
        go.release()
        assert connection.body_of(answer).body == DONE
        return sorted(delays)[count // 2]


def test_a_stream_keeps_the_connection(client, case):
    case.answers(lambda e: e.send(SSE_HEAD, chunk(STREAM), LAST_CHUNK))
    with client.connect() as connection:
        for _ in range(3):
            connection.send(client.stream())
            assert connection.answer().body == STREAM


def test_streams_side_by_side_do_not_mix(client, target, upstream):
    clients = [Client(target, upstream) for _ in range(20)]
    bodies = [b"".join(event(f"{n}-{i}") for i in range(20)) + DONE for n in range(20)]
    answers = {}

    def one(n: int) -> None:
        clients[n].case.answers(lambda e: e.send(SSE_HEAD, *map(chunk, cut(bodies[n], 37)), LAST_CHUNK))
        answers[n] = clients[n].ask(clients[n].stream()).body

    threads = [threading.Thread(target=one, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for each in clients:
        each.close()
    assert [answers.get(n) for n in range(20)] == bodies


def test_a_slow_reader_holds_its_engine_up_and_loses_nothing(client, case):
    size, state = 12 << 20, {"sent": 0}
    body = b"".join(event("z" * 1000 + str(i)) for i in range(size // 1050)) + DONE

    def script(exchange):
        exchange.send(SSE_HEAD)
        for piece in cut(body, 1 << 16):
            exchange.send(chunk(piece))
            state["sent"] += len(piece)
        exchange.send(LAST_CHUNK)

    case.answers(script)
    with client.connect(receive_buffer=32768) as connection:
        connection.send(client.stream())
        answer = connection.head()
        seen = -1
        while seen != state["sent"]:        # until the engine cannot send any more
            seen = state["sent"]
            time.sleep(0.15)
        assert seen < size, "a router must not take a whole stream into its memory"
        assert connection.body_of(answer).body == body


# Other APIs' streams end in their own way

@pytest.mark.parametrize("path, last", [
    ("/v1/completions", DONE),
    ("/v1/responses", b'event: response.completed\ndata: {"type":"response.completed","response":{}}\n\n'),
    ("/v1/responses", b'event: response.failed\ndata: {"type":"response.failed","response":{}}\n\n'),
    ("/v1/messages", b'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
    ("/v1/audio/speech", event("whatever")),
], ids=["completions", "responses", "failed response", "messages", "unknown API"])
def test_a_stream_may_end_in_its_apis_way(client, case, path, last):
    body = event() + last
    case.answers(lambda e: e.send(SSE_HEAD, chunk(body), LAST_CHUNK))
    assert client.ask(client.post(client.body(stream=True), path=path)).body == body


# A stream that breaks

def last_event(body: bytes) -> dict:
    last = body.strip(b"\n").split(b"\n\n")[-1].strip(b"\n")
    assert body.endswith(b"\n\n") and last.startswith(b"data: "), body[-300:]
    return json.loads(last[6:])


BROKEN = {
    "its engine ends between events": ([event("a")], "close"),
    "its engine resets between events": ([event("a")], "reset"),
    "its engine ends inside an event": ([event("a"), event("b")[:20]], "close"),
    "its engine ends inside a line's end": ([event("a"), event("b")[:-1]], "close"),
    "its engine ends without saying so": ([event("a")], "last"),
    "a chunk is malformed": ([event("a")], "malformed"),
}


@pytest.mark.parametrize("pieces, end", BROKEN.values(), ids=BROKEN.keys())
def test_a_client_gets_an_error_event_when(client, case, pieces, end):
    def script(exchange):
        exchange.send(SSE_HEAD)
        for piece in pieces:
            exchange.send(chunk(piece))
            time.sleep(0.03)
        if end == "last":
            return exchange.send(LAST_CHUNK)
        if end == "malformed":
            return exchange.send(b"xyz\r\n")
        exchange.close() if end == "close" else exchange.reset()

    case.answers(script)
    answer = client.ask(client.stream())
    assert answer.status == 200 and answer.body.startswith(event("a"))
    assert last_event(answer.body)["error"]["message"]
    assert b"[DONE]" not in answer.body


def test_a_client_gets_an_error_event_when_its_engine_stops_sending(client, case):
    case.answers(lambda e: (e.send(SSE_HEAD, chunk(event("a"))), e.closed_after()))
    answer = client.ask(client.stream())
    assert last_event(answer.body)["error"]["code"] and b"[DONE]" not in answer.body


def test_an_event_of_error_of_the_engine_passes_as_it_is(client, case):
    body = event("a") + b'data: {"error":{"message":"out of memory","type":"server_error","param":null,"code":null}}\n\n'
    case.answers(lambda e: e.send(SSE_HEAD, chunk(body), LAST_CHUNK))
    assert client.ask(client.stream()).body == body


def test_an_engine_that_closes_after_done_has_not_failed(client, case):
    """[DONE] came; that the last chunk is missing is no loss."""
    def script(exchange):
        exchange.send(SSE_HEAD, chunk(STREAM))
        time.sleep(0.03)
        exchange.close()
    case.answers(script)
    answer = client.ask(client.stream())
    assert answer.body == STREAM


def test_an_engine_that_never_starts_is_given_up(client, case):
    """Neither engine sends a byte: the limits of time end it, with a reason."""
    case.answers(lambda e: e.closed_after(), lambda e: e.closed_after())
    answer = client.ask(client.stream())
    assert answer.status in (502, 503, 504) and answer.error()["message"]
