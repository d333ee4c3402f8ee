"""The endpoints: what is routed, what the router answers itself, what a browser may do."""

import json

import pytest

from upstream import json_answer


@pytest.mark.parametrize("path", [
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/rerank", "/v1/messages", "/v1/messages/count_tokens",
    "/v1/score", "/v1/moderations", "/v1/images/generations", "/v1/audio/speech", "/v1/tokenize", "/tokenize", "/detokenize", "/rerank", "/v2/rerank",
    "/pooling", "/classify", "/generate",
])
def test_a_post_that_names_a_model_is_routed(client, case, path):
    answer = client.ask(client.post(path=path))
    assert answer.status == 200
    assert case.request().target == path


def test_models_are_listed(client):
    answer = client.ask(client.head("GET", "/v1/models"), "GET")
    listing = answer.json()
    assert listing["object"] == "list" and {"m", "slow"} <= {row["id"] for row in listing["data"]}
    assert all(row["object"] == "model" and isinstance(row["created"], int) and row["owned_by"] for row in listing["data"])


def test_a_model_is_shown(client):
    answer = client.ask(client.head("GET", "/v1/models/m"), "GET")
    assert answer.status == 200 and answer.json()["id"] == "m"


def test_a_model_that_nobody_declared_is_404(client):
    answer = client.ask(client.head("GET", "/v1/models/nobodys"), "GET")
    assert answer.status == 404 and answer.error()["code"] == "model_not_found"


@pytest.mark.parametrize("path", ["/v1/models?limit=5", "/v1/models/m?x=y", "/v1/models/%6d"])
def test_models_are_found_whatever_the_query_or_escapes(client, path):
    assert client.ask(client.head("GET", path), "GET").status == 200


def test_the_answer_names_the_decision(client):
    answer = client.ask()
    for name in ("x-signalbox-decision", "x-signalbox-engine", "x-signalbox-snapshot"):
        assert answer.get(name), name
    assert answer.get("x-signalbox-attempts") == "1"


def test_own_fields_cannot_be_forged_by_an_engine_or_sent_to_it(client, case):
    case.answers(json_answer(b"{}", "200 OK", "x-signalbox-engine: forged"))
    answer = client.ask(client.post(fields={"x-signalbox-tenant": "t", "x-signalbox-criticality": "standard"}))
    assert len(answer.all("x-signalbox-engine")) == 1 and answer.get("x-signalbox-engine") != "forged"
    assert not [name for name, _ in case.request().head.fields if name.startswith("x-signalbox-")]


def test_a_bad_criticality_or_deadline_is_named(client):
    for name, value in (("x-signalbox-criticality", "vital"), ("x-signalbox-deadline-ms", "soon"), ("x-signalbox-deadline-ms", "0")):
        answer = client.ask(client.post(fields={name: value}))
        assert answer.status == 400 and answer.error()["param"] == name


def test_a_deadline_that_passes_is_504(client, case):
    case.answers(lambda e: e.closed_after())
    answer = client.ask(client.post(fields={"x-signalbox-deadline-ms": "200"}))
    assert answer.status == 504 and answer.get("x-signalbox-reason")


# Browsers (the Fetch standard's CORS protocol); https://app.example is a configured origin

def test_options_says_what_is_served(client):
    answer = client.ask(client.head("OPTIONS", "*"), "OPTIONS")
    assert answer.status in (200, 204) and "POST" in answer.get("allow")


def test_a_preflight_of_a_known_origin_is_granted(client, case):
    answer = client.ask(client.head("OPTIONS", fields={"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
                                                       "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os"}), "OPTIONS")
    assert answer.status in (200, 204)
    assert answer.get("access-control-allow-origin") == "https://app.example"
    assert "POST" in answer.get("access-control-allow-methods")
    granted = {name.strip().lower() for name in answer.get("access-control-allow-headers").split(",")}
    assert {"authorization", "content-type", "x-stainless-os"} <= granted
    assert int(answer.get("access-control-max-age")) > 0 and "origin" in answer.get("vary").lower()
    assert case.nothing_arrived()


def test_a_preflight_of_a_stranger_is_not(client, case):
    answer = client.ask(client.head("OPTIONS", fields={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}), "OPTIONS")
    assert not answer.all("access-control-allow-origin") and case.nothing_arrived()


def test_a_browsers_request_may_read_its_answer_once(client, case):
    """The engine's own permission does not double the router's."""
    case.answers(json_answer(b"{}", "200 OK", "Access-Control-Allow-Origin: *", "Access-Control-Allow-Credentials: true"))
    answer = client.ask(client.post(fields={"Origin": "https://app.example"}))
    assert answer.all("access-control-allow-origin") == ["https://app.example"]
    assert not answer.all("access-control-allow-credentials")
    assert "x-request-id" in answer.get("access-control-expose-headers").lower()
    assert "origin" in ", ".join(answer.all("vary")).lower()


def test_a_browser_may_read_errors_as_well(client):
    for request in (client.post(b"{", {"Origin": "https://app.example"}), client.post(client.body(model="nobodys"), {"Origin": "https://app.example"})):
        answer = client.ask(request)
        assert answer.status >= 400 and answer.all("access-control-allow-origin") == ["https://app.example"]


def test_a_strangers_answer_is_not_readable_by_the_engines_word(client, case):
    case.answers(json_answer(b"{}", "200 OK", "Access-Control-Allow-Origin: *"))
    answer = client.ask(client.post(fields={"Origin": "https://evil.example"}))
    assert not answer.all("access-control-allow-origin")


def test_the_body_of_models_is_json_for_every_client(client):
    answer = client.ask(client.head("GET", "/v1/models"), "GET")
    assert answer.get("content-type").startswith("application/json") and json.loads(answer.body)
