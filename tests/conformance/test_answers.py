"""An engine's answer arrives as it was meant, and one that is no valid HTTP does not (RFC 9112, 6 and 8; RFC 9110, 15)."""

import time

import pytest

from upstream import LAST_CHUNK, OK_BODY, chunk, json_answer
from wire import Cut

CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def close_after(*parts: bytes):
    def script(exchange):
        exchange.send(*parts)
        exchange.close()
    return script


@pytest.mark.parametrize("size", [1, 3, 64, 1000])
def test_a_chunked_answer_arrives_whole_in_any_chunking(client, case, size):
    case.answers(lambda e: e.send(CHUNKED_HEAD, *(chunk(OK_BODY[i:i + size]) for i in range(0, len(OK_BODY), size)), LAST_CHUNK))
    assert client.ask().body == OK_BODY


def test_an_answer_may_arrive_byte_by_byte(client, case):
    answer = CHUNKED_HEAD + chunk(OK_BODY) + LAST_CHUNK
    case.answers(lambda e: e.send(*(answer[i:i + 1] for i in range(len(answer)))))
    assert client.ask().body == OK_BODY


def test_an_answer_that_ends_with_its_connection_arrives(client, case):
    case.answers(close_after(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + OK_BODY))
    assert client.ask().body == OK_BODY


def test_an_old_engines_answer_arrives(client, case):
    case.answers(close_after(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + OK_BODY))
    answer = client.ask()
    assert answer.start.startswith("HTTP/1.1") and answer.body == OK_BODY


def test_an_empty_answer_arrives(client, case):
    case.answers(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert client.ask().body == b""


def test_no_content_has_no_body_and_no_framing(client, case):
    case.answers(b"HTTP/1.1 204 No Content\r\n\r\n")
    with client.connect() as connection:
        connection.send(client.post(), client.post())
        first = connection.answer()
        assert first.status == 204 and not first.all("transfer-encoding")
        assert connection.answer().status == 204


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted", "206 Partial Content"])
def test_a_good_status_passes(client, case, status):
    case.answers(json_answer(OK_BODY, status))
    assert client.ask().status == int(status[:3])


def test_a_redirect_passes_and_is_not_followed(client, case):
    case.answers(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n")
    answer = client.ask()
    assert answer.status == 307 and answer.get("location") == "http://elsewhere/"


@pytest.mark.parametrize("interim", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n",
                                     b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 5],
                         ids=["100", "102", "103", "five"])
def test_interim_answers_do_not_disturb(client, case, interim):
    case.answers(interim + json_answer())
    with client.connect() as connection:
        connection.send(client.post())
        assert connection.answer().body == OK_BODY
        connection.send(client.post())
        assert connection.answer().body == OK_BODY


def test_endless_interim_answers_are_a_fault(client, case):
    def script(exchange):
        try:
            for _ in range(100_000):
                exchange.send(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)
        except OSError:
            pass
    case.answers(script, script)
    answer = client.ask()
    assert answer.status in (502, 504)


@pytest.mark.parametrize("fields", [("Set-Cookie: a=1", "Set-Cookie: b=2"), ("X-Ratelimit-Remaining: 7",), ("openai-processing-ms: 12",),
                                    ("Server: vllm",), ("Date: Sun, 06 Nov 1994 08:49:37 GMT",), ("Cache-Control: no-store",)])
def test_a_field_passes_to_the_client(client, case, fields):
    case.answers(json_answer(OK_BODY, "200 OK", *fields))
    answer = client.ask()
    name = fields[0].split(":")[0]
    assert answer.all(name) == [f.split(": ", 1)[1] for f in fields]


@pytest.mark.parametrize("lines, gone", [
    (("Keep-Alive: timeout=5",), "keep-alive"), (("Connection: x-private", "X-Private: 1"), "x-private"),
    (("Proxy-Authenticate: Basic",), "proxy-authenticate"), (("Upgrade: h2c", "Connection: upgrade"), "upgrade"),
    (("Connection: keep-alive", "Connection: x-private", "X-Private: 1"), "x-private"),
], ids=["Keep-Alive", "named by Connection", "Proxy-Authenticate", "Upgrade", "named by a second Connection"])
def test_a_field_of_the_engines_connection_stays(client, case, lines, gone):
    case.answers(json_answer(OK_BODY, "200 OK", *lines))
    answer = client.ask()
    assert answer.body == OK_BODY and answer.all(gone) == []


def test_an_engines_close_does_not_close_the_client(client, case):
    case.answers(close_after(json_answer(OK_BODY, "200 OK", "Connection: close")))
    with client.connect() as connection:
        for _ in range(3):
            connection.send(client.post())
            answer = connection.answer()
            assert answer.body == OK_BODY and "close" not in answer.get("connection")


def test_trailers_of_an_engine_do_not_disturb(client, case):
    case.answers(CHUNKED_HEAD + chunk(OK_BODY) + b"0\r\nX-Checksum: 1\r\n\r\n")
    with client.connect() as connection:
        for _ in range(2):
            connection.send(client.post())
            assert connection.answer().body == OK_BODY


def test_the_answer_to_head_has_the_fields_and_no_body(client):
    with client.connect() as connection:
        connection.send(client.head("HEAD", "/v1/models"), client.head("GET", "/v1/models"))
        head = connection.answer("HEAD")
        whole = connection.answer("GET")
    assert head.status == whole.status == 200 and head.body == b""
    assert head.get("content-length") in ("", whole.get("content-length"))


# Answers that are none

BAD = {
    "no HTTP": b"HELLO\r\n\r\n",
    "an older protocol": b"ICY 200 OK\r\n\r\n",
    "a strange version": b"HTTP/3.7 200 OK\r\nContent-Length: 0\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "a status of letters": b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "a bad length": b"HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\n{}",
    "a length and a coding": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "an unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}",
    "a bare LF": b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
    "a folded field": b"HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "a zero byte": b"HTTP/1.1 200 OK\r\nX-A: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
    "a field without a colon": b"HTTP/1.1 200 OK\r\nrubbish\r\nContent-Length: 2\r\n\r\n{}",
    "an upgrade nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "an oversized head": b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 300_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
    "a bad first chunk": CHUNKED_HEAD + b"zz\r\n",
    "a bare LF in its first chunk": CHUNKED_HEAD + b"2\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("bytes_sent", BAD.values(), ids=BAD.keys())
def test_an_answer_that_is_bad_from_its_start_is_502(client, case, bytes_sent):
    case.answers(close_after(bytes_sent), close_after(bytes_sent))
    answer = client.ask()
    assert answer.status == 502 and answer.error()["message"]


@pytest.mark.parametrize("parts", [
    (json_answer()[:-7],), (json_answer()[:-1],), (CHUNKED_HEAD, chunk(OK_BODY[:9])), (CHUNKED_HEAD, chunk(OK_BODY)),
    (CHUNKED_HEAD, b"100\r\nabc"), (CHUNKED_HEAD, chunk(OK_BODY[:9]), b"xyz\r\n"),
], ids=["length, seven short", "length, one short", "between chunks", "before the last chunk", "inside a chunk", "a bad second chunk"])
def test_an_answer_that_is_cut_is_never_taken_for_a_whole_one(client, case, parts):
    def script(exchange):
        for part in parts:
            exchange.send(part)
            time.sleep(0.02)        # so that the beginning is on its way to the client
        exchange.close()
    case.answers(script)
    with client.connect() as connection:
        connection.send(client.post())
        try:
            answer = connection.answer()
        except Cut:
            return
        assert answer.status in (502, 504), answer


def test_bytes_after_an_answer_reach_nobody(client, case):
    """A second answer that nobody asked for must not become the answer to the next request."""
    case.answers(json_answer() + json_answer(b'{"poison":1}'), json_answer())
    for _ in range(4):
        with client.connect() as connection:
            connection.send(client.post())
            assert connection.answer().body == OK_BODY


def test_an_early_answer_reaches_a_client_that_still_sends(client, case):
    """An engine may refuse on the head alone; its answer counts, not the broken pipe of the rest of the body."""
    def refuse(exchange):
        exchange.send(json_answer(b'{"error":{"message":"too long","type":"invalid_request_error","param":null,"code":null}}',
                                  "413 Content Too Large", "Connection: close"))
        exchange.closed_after(2)
    case.early = refuse
    answer = client.ask(client.post(client.body(pad="x" * (6 << 20))))
    assert answer.status == 413 and answer.error()["message"] == "too long"


@pytest.mark.parametrize("status, reason", [(400, "Bad Request"), (401, "Unauthorized"), (404, "Not Found"), (422, "Unprocessable Entity"),
                                            (429, "Too Many Requests"), (500, "Internal Server Error")])
def test_an_engines_error_keeps_its_status_and_message(client, case, status, reason):
    case.answers(json_answer(b'{"error":{"message":"told so","type":"t","param":"p","code":"c"}}', f"{status} {reason}"))
    answer = client.ask()
    assert answer.status == status
    assert answer.error() == {"message": "told so", "type": "t", "param": "p", "code": "c"}


def test_retry_after_of_an_engine_reaches_the_client(client, case):
    case.answers(json_answer(b'{"error":{"message":"busy"}}', "429 Too Many Requests", "Retry-After: 7"))
    assert client.ask().get("retry-after") == "7"


@pytest.mark.parametrize("body, message", [
    (b'{"detail":"no such thing"}', "no such thing"), (b'{"message":"direct"}', "direct"), (b'{"error":"just text"}', "just text"),
    (b'{"error":{"code":400,"message":"numeric code"}}', "numeric code"), (b"<html>oops</html>", ""), (b"", ""),
], ids=["detail", "message", "error text", "numeric code", "HTML", "empty"])
def test_an_engines_error_is_brought_into_shape(client, case, body, message):
    case.answers(json_answer(body, "400 Bad Request"))
    error = client.ask().error()
    assert message in error["message"] and set(error) == {"message", "type", "param", "code"}
    assert error["code"] is None or isinstance(error["code"], str)
