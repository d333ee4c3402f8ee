"""Every refusal is an error in the shape that OpenAI's clients read, with a status that says whose fault it is."""

import email.utils
import time

import pytest

from client import ATTEMPTS
from upstream import OK_BODY, json_answer

KEYS = {"message", "type", "param", "code"}


def refusal(client, request: bytes, status: int, method: str = "POST") -> dict:
    with client.connect() as connection:
        connection.send(request)
        answer = connection.answer(method)
        assert answer.status == status, (answer.start, answer.body)
        assert answer.get("content-type").startswith("application/json")
        assert len(answer.all("content-length")) == 1
        error = answer.error()
        assert set(error) == KEYS and error["message"] and error["type"]
        assert answer.get("x-signalbox-reason")
        # The request itself was read to its end: its connection is good for another one.
        connection.send(client.post())
        assert connection.answer(method).status == 200
    return error


@pytest.mark.parametrize("body, param", [
    (b"", None), (b"{", None), (b"not json", None), (b"[]", None), (b'"text"', None), (b"null", None), (b"7", None),
    (b'{"model":"m"', None), (b'{"model":"m"} trailing', None), (b'{"model":"m"}{"model":"m"}', None), (b'{"model" "m"}', None),
    (b'{"model":"m","x":"\xff"}', None), (b'{"messages":[]}', "model"), (b'{"model":7}', "model"), (b'{"model":null}', "model"),
    (b'{"model":""}', "model"), (b'{"model":["m"]}', "model"), (b'{"model":"m","model":"slow"}', "model"),
    (b'{"model":"m","max_tokens":-1}', "max_tokens"), (b'{"model":"m","max_tokens":"many"}', "max_tokens"),
], ids=["empty", "open brace", "no JSON", "array", "string", "null", "number", "cut", "trailing text", "two objects", "no colon", "no UTF-8",
        "no model", "model is a number", "model is null", "empty model", "model is an array", "two models", "negative limit", "limit is text"])
def test_a_bad_body_is_400(client, case, body, param):
    before = case.attempts
    error = refusal(client, client.post(body), 400)
    assert error["type"] == "invalid_request_error" and error["param"] == param
    assert case.attempts == before + 1, "only the good request that followed reached an engine"


def test_an_unknown_model_is_404(client):
    error = refusal(client, client.post(client.body(model="nobodys")), 404)
    assert error["code"] == "model_not_found" and "nobodys" in error["message"]


def test_a_models_name_in_an_error_is_escaped(client):
    answer = client.ask(client.post(b'{"model":"a\\"b\\\\c\\u0001"}'))
    assert answer.status in (400, 404) and answer.error()["message"]


def test_a_known_model_without_engines_is_503_with_retry_after(client):
    answer = client.ask(client.post(client.body(model="lonely")))
    assert answer.status == 503 and int(answer.get("retry-after")) >= 1
    assert answer.get("x-signalbox-reason") and answer.error()["type"]


def test_an_unknown_path_is_404(client):
    refusal(client, client.head("GET", "/v1/nothing"), 404)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "BREW"])
def test_another_method_is_405_and_says_which_are_served(client, method):
    with client.connect() as connection:
        connection.send(client.head(method, "/v1/chat/completions", fields=[("Content-Length", "0")]))
        answer = connection.answer()
    assert answer.status in (405, 501)
    if answer.status == 405:
        assert "POST" in answer.get("allow")
    assert b"x-case" not in answer.body, "TRACE must not echo"


def test_an_error_to_head_has_no_body(client):
    with client.connect() as connection:
        connection.send(client.head("HEAD", "/v1/nothing"), client.head("GET", "/v1/models"))
        assert connection.answer("HEAD").status == 404
        assert connection.answer("GET").status == 200


@pytest.mark.parametrize("request_of", [
    lambda c: c.post(b"{"), lambda c: c.post(c.body(model="nobodys")), lambda c: c.head("GET", "/v1/models"), lambda c: b"BROKEN\r\n\r\n",
], ids=["400", "404", "models", "malformed"])
def test_an_answer_of_the_router_has_a_date(client, request_of):
    """RFC 9110, 6.6.1: an origin server with a clock MUST."""
    stamp = email.utils.parsedate_to_datetime(client.ask(request_of(client)).get("date"))
    assert abs(stamp.timestamp() - time.time()) < 30


def test_an_answer_without_a_date_gets_one(client):
    assert abs(email.utils.parsedate_to_datetime(client.ask().get("date")).timestamp() - time.time()) < 30


def test_every_answer_has_a_request_id(client):
    first, second = client.ask(), client.ask(client.post(b"{"))
    assert first.get("x-request-id") and second.get("x-request-id") and first.get("x-request-id") != second.get("x-request-id")


def test_a_clients_request_id_comes_back_and_reaches_the_engine(client, case):
    assert client.ask(client.post(fields={"x-request-id": "mine-1"})).get("x-request-id") == "mine-1"
    assert case.request().head.all("x-request-id") == ["mine-1"]


# Engines that fail before the first byte

def closing(*parts: bytes):
    def script(exchange):
        if parts:
            exchange.send(*parts)
        exchange.close()
    return script


SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("first", [
    closing(), lambda e: e.reset(), closing(b"HTTP/1.1 2"), closing(SSE), closing(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
    json_answer(b"{}", "502 Bad Gateway"), json_answer(b"{}", "503 Service Unavailable"), closing(b"garbage\r\n\r\n"),
], ids=["closes", "resets", "dies inside its head", "dies after its head", "dies before its body", "answers 502", "answers 503", "speaks no HTTP"])
def test_another_engine_takes_over_when_the_first(client, case, first):
    """Whichever is asked first fails, on each of its connections: a pooled one may have been stale."""
    engines = []

    def script(exchange):
        engines.append(exchange.engine)
        case.perform(first if exchange.engine is engines[0] else json_answer(), exchange)

    case.answers(script)
    answer = client.ask()
    assert answer.status == 200 and answer.body == OK_BODY
    assert len(set(engines)) == 2 and len(engines) <= 3
    assert {case.request().body for _ in engines} == {client.body()}


def test_another_engine_takes_over_when_the_first_is_silent(client, case):
    case.answers(lambda e: e.closed_after(), json_answer())
    assert client.ask().status == 200
    assert case.attempts == 2


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "404 Not Found", "413 Content Too Large", "422 Unprocessable Entity"])
def test_a_clients_own_error_is_not_tried_again(client, case, status):
    case.answers(json_answer(b'{"error":{"message":"no"}}', status))
    assert client.ask().status == int(status[:3])
    assert case.attempts == 1


def test_all_engines_failing_is_told_at_once(client, case):
    case.answers(closing(), closing())
    took: list[float] = []
    while len(took) < ATTEMPTS and min(took, default=0.5) >= 0.5:
        began = time.monotonic()
        answer = client.ask()
        assert answer.status in (502, 503) and answer.error()["message"]
        took.append(time.monotonic() - began)
    assert min(took) < 0.5, took
    assert {case.request().engine for _ in range(case.attempts)} == set(client.upstream.engines)


def test_all_engines_at_503_is_told_with_retry_after(client, case):
    busy = json_answer(b'{"error":{"message":"overloaded"}}', "503 Service Unavailable", "Retry-After: 3")
    case.answers(busy, busy)
    answer = client.ask()
    assert answer.status == 503 and int(answer.get("retry-after")) >= 1


def test_a_stateful_request_stays_with_one_engine(client, case):
    case.answers(json_answer(b"{}", "503 Service Unavailable"), json_answer())
    answer = client.ask(client.post(client.body(previous_response_id="resp_1"), path="/v1/responses"))
    assert answer.status == 503 and case.attempts == 1


def test_no_credential_shows_in_an_error(client, case):
    case.answers(closing(), closing())
    answer = client.ask(client.post(fields={"Authorization": "Bearer sk-very-secret"}))
    assert b"sk-very-secret" not in answer.body and "sk-very-secret" not in str(answer.fields)
