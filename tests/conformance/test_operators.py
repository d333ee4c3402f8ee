"""The operators' port: health, metrics with standard names, explanations, decisions for other proxies."""

import json
import re
import urllib.error
import urllib.request

import pytest

import targets
from client import Client, until
from test_streams import DONE, event
from upstream import LAST_CHUNK, SSE_HEAD, chunk, json_answer

LINE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\]|\\.)*",?)*\})? (\S+)$')


@pytest.fixture
def operator(target):
    if not target.operator_url:
        pytest.skip("no operators' port")

    def ask(path: str, body: bytes | None = None, **fields: str) -> tuple[int, str, str]:
        request = urllib.request.Request(target.operator_url + path, data=body, headers=fields)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers["content-type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["content-type"], error.read().decode()
    return ask


def test_it_is_alive(operator):
    assert operator("/healthz")[0] == 200


def test_a_decision_is_explained_by_the_id_in_the_answer(client, operator):
    decision = client.ask().get("x-signalbox-decision")
    text = until(lambda: (answer := operator(f"/explain/{decision}"))[0] == 200 and answer[2])
    assert decision in text


def test_an_unknown_decision_is_404_and_a_bad_one_400(operator):
    assert operator("/explain/0-0-0")[0] in (400, 404)
    assert operator("/explain/nonsense!")[0] == 400
    assert operator("/plan/0-0-0")[0] in (400, 404)
    assert operator("/plan/nonsense!")[0] == 400


def test_a_decision_can_be_asked_for_alone(client, case, operator):
    status, _, text = operator("/v1/route", client.body())
    answer = json.loads(text)
    ports = {engine.name: engine.port for engine in client.upstream.engines}
    assert status == 200 and answer["reason"] == "none"
    assert answer["url"] == f"http://127.0.0.1:{ports[answer['engine']]}" and answer["record"]["candidates"]
    assert case.nothing_arrived(), "nothing is sent to an engine"


def test_a_decision_heeds_path_and_fields(client, operator):
    slow = json.loads(operator("/v1/route/v1/completions", client.body(model="slow"))[2])
    assert slow["engine"] == "mock-1"
    status, _, text = operator("/v1/route", client.body(), **{"x-signalbox-criticality": "vital"})
    assert status == 400 and json.loads(text)["error"]["param"] == "x-signalbox-criticality"


def test_a_decision_for_an_unknown_model_is_refused(client, operator):
    status, _, text = operator("/v1/route", client.body(model="nobodys"))
    assert status == 404 and json.loads(text)["reason"] == "unknown_model"
    assert operator("/v1/route", client.body(model="lonely"))[0] == 503
    assert operator("/v1/route", b"{")[0] == 400


def samples(text: str) -> dict[str, list[tuple[str, float]]]:
    out: dict = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = LINE.match(line)
            assert match, line
            out.setdefault(match[1], []).append((match[2] or "", float(match[3])))
    return out


def test_metrics_are_in_prometheus_form(client, operator):
    client.ask()
    status, kind, text = operator("/metrics")
    assert status == 200 and kind.startswith("text/plain")
    assert "signalbox_router_requests_total" in samples(text)
    declared = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    assert len(declared) == len({name for name, _ in declared}), "each name is declared once"
    for name in samples(text):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert any(name == d or base == d for d, _ in declared), f"{name} has no TYPE"


def value(text: str, name: str, *labels: str) -> float:
    return sum(amount for shown, amount in samples(text).get(name, []) if all(label in shown for label in labels))


def test_requests_are_counted_under_the_names_that_others_use(client, case, operator):
    """OpenTelemetry's conventions for generative AI; the Gateway API inference extension."""
    def at_rest() -> str | None:
        """The metrics, once no request is on its way: its end is counted a moment after its client has it."""
        text = operator("/metrics")[2]
        return text if value(text, "inference_objective_running_requests") == 0 else None

    before = until(at_rest)
    case.answers(lambda e: e.send(SSE_HEAD, chunk(event("a") + event("b", usage={"prompt_tokens": 5, "completion_tokens": 2}) + DONE), LAST_CHUNK),
                 json_answer(b"{}", "400 Bad Request"))
    client.ask(client.stream())
    client.ask()
    client.ask(client.post(client.body(model="nobodys")))
    def counted() -> str | None:
        text = at_rest()
        ended = [value(t, "inference_objective_request_error_total", 'model_name=""') for t in (text, before)] if text else [0, 0]
        return text if ended[0] > ended[1] else None
    after = until(counted)

    def rise(name: str, *labels: str) -> float:
        return value(after, name, *labels) - value(before, name, *labels)

    model = ('gen_ai_operation_name="chat"', 'gen_ai_request_model="m"')
    assert rise("gen_ai_server_request_duration_seconds_count", *model) == 1
    assert rise("gen_ai_server_time_to_first_token_seconds_count", *model) == 1
    assert rise("gen_ai_client_token_usage_sum", *model, 'gen_ai_token_type="input"') == 5
    assert rise("gen_ai_client_token_usage_sum", *model, 'gen_ai_token_type="output"') == 2
    assert rise("inference_objective_request_total", 'model_name="m"') == 2
    assert rise("inference_objective_request_error_total", 'model_name="m"', 'error_code="engine_error"') == 1
    assert rise("inference_objective_request_error_total", 'model_name=""', 'error_code="refused"') == 1
    assert value(after, "inference_pool_ready_pods") == 2


def test_a_client_cannot_make_up_series(client, operator):
    for n in range(5):
        client.ask(client.post(client.body(model=f"made-up-{n}")))
    assert "made-up" not in operator("/metrics")[2]


def test_buckets_add_up(client, operator):
    client.ask()
    text = operator("/metrics")[2]
    for labels, count in samples(text)["gen_ai_server_request_duration_seconds_count"]:
        buckets = [amount for shown, amount in samples(text)["gen_ai_server_request_duration_seconds_bucket"] if shown.startswith(labels[:-1])]
        assert buckets == sorted(buckets) and buckets[-1] == count


def test_what_several_event_loops_served_is_told_by_one_port(request, upstream, tmp_path):
    if request.config.getoption("--base-url") or request.config.getoption("--target") != "signalbox":
        pytest.skip("starts a router of its own")
    router = targets.signalbox_loops(tmp_path, [engine.port for engine in upstream.engines])

    def told(path: str) -> str:
        return urllib.request.urlopen(router.operator_url + path, timeout=30).read().decode()

    try:
        decisions = set()
        clients = [Client(router, upstream) for _ in range(8)]
        for client in clients:
            answer = client.ask()
            assert answer.status == 200
            decisions.add(answer.get("x-signalbox-decision"))
        assert len(decisions) == 8
        for decision in decisions:
            assert decision in told(f"/explain/{decision}")
        metrics = until(lambda: "\nsignalbox_router_requests_total 8\n" in (text := told("/metrics")) and text)
        assert len(re.findall(r'^signalbox_router_loop_connections\{loop="\d"\} \d+$', metrics, re.MULTILINE)) == 4
        for client in clients:
            client.close()
    finally:
        assert router.close() == 0
