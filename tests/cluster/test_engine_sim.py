"""`signalbox engine-sim` as clients see it: the openai package, plain HTTP, and the faults that tests inject."""

import json
import math
import re
import socket
import subprocess
import time

import httpx2 as httpx  # what the openai package itself speaks HTTP with
import openai
import pytest

from fleet import find_binary

HELLO = [{"role": "user", "content": "hello, which way does the train go?"}]


class Engine:
    def __init__(self, *options: str):
        command = [find_binary(), "engine-sim", "--models", "small,big", "--name", "e1", "--time-scale", "20", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = "http://" + json.loads(self.process.stdout.readline())["listening"]
        self.openai = openai.OpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0, timeout=60)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=60)

    def faults(self, **faults):
        answer = httpx.post(self.url + "/admin/faults", json=faults)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def metric(self, name: str, **labels: str) -> float:
        for line in httpx.get(self.url + "/metrics").text.splitlines():
            if line.startswith(f"vllm:{name}{{") and all(f'{k}="{v}"' in line for k, v in labels.items()):
                return float(line.rsplit(" ", 1)[1])
        raise KeyError(name)

    def wait_until(self, condition, seconds: float = 60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.01)


@pytest.fixture(scope="module")
def shared():
    engine = Engine()
    yield engine
    assert engine.stop() == 0


@pytest.fixture
def engine(shared):
    yield shared
    shared.faults(reset=True)


def test_a_whole_answer(engine):
    answer = engine.openai.chat.completions.create(model="small", messages=HELLO, max_tokens=9)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 9
    assert len(answer.choices[0].message.content) == 4 * 9
    again = engine.openai.chat.completions.create(model="small", messages=HELLO, max_tokens=9)
    assert again.choices[0].message.content == answer.choices[0].message.content
    assert again.id != answer.id


def test_an_answer_ends_by_itself(engine):
    answer = engine.openai.chat.completions.create(model="small", messages=HELLO, max_completion_tokens=5000)
    assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("stop", 128)


def test_a_stream(engine):
    whole = engine.openai.chat.completions.create(model="big", messages=HELLO, max_tokens=7)
    chunks = list(engine.openai.chat.completions.create(
        model="big", messages=HELLO, max_tokens=7, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].usage.completion_tokens == 7 and chunks[-1].choices == []
    assert len(chunks) == 1 + 7 + 1 + 1


def test_a_stream_ends_with_done(engine):
    body = {"model": "small", "messages": HELLO, "max_tokens": 2, "stream": True}
    answer = httpx.post(engine.url + "/v1/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("data: [DONE]\n\n")
    assert "usage" not in answer.text


def test_a_second_turn_is_cached(engine):
    first = engine.openai.chat.completions.create(
        model="small", messages=[{"role": "user", "content": "x" * 1000}], max_tokens=64)
    turns = [{"role": "user", "content": "x" * 1000},
             {"role": "assistant", "content": first.choices[0].message.content},
             {"role": "user", "content": "and then?"}]
    second = engine.openai.chat.completions.create(model="small", messages=turns, max_tokens=4)
    reused = second.usage.prompt_tokens_details.cached_tokens
    assert first.usage.prompt_tokens < reused <= second.usage.prompt_tokens
    other = engine.openai.chat.completions.create(model="big", messages=turns, max_tokens=4)
    assert other.usage.prompt_tokens_details.cached_tokens == 0
    assert engine.metric("prefix_cache_hits_total") >= reused


def test_completions_and_responses(engine):
    answer = engine.openai.completions.create(model="small", prompt="once upon", max_tokens=3)
    assert len(answer.choices[0].text) == 12
    parts = list(engine.openai.completions.create(model="small", prompt="once upon", max_tokens=3, stream=True))
    assert "".join(p.choices[0].text for p in parts) == answer.choices[0].text
    response = engine.openai.responses.create(model="small", input="once upon", max_output_tokens=3)
    assert response.status == "incomplete" and len(response.output_text) == 12
    events = list(engine.openai.responses.create(model="small", input="once upon", stream=True))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")


def test_embeddings(engine):
    packed = engine.openai.embeddings.create(model="small", input=["one", "two"], dimensions=8)
    plain = engine.openai.embeddings.create(model="small", input=["one", "two"], dimensions=8, encoding_format="float")
    for a, b in zip(packed.data, plain.data, strict=True):
        assert a.embedding == pytest.approx(b.embedding, rel=1e-5)
        assert math.hypot(*a.embedding) == pytest.approx(1)
    assert packed.data[0].embedding != packed.data[1].embedding


def test_models_and_health(engine):
    assert [m.id for m in engine.openai.models.list()] == ["small", "big"]
    assert httpx.get(engine.url + "/health").status_code == 200


@pytest.mark.parametrize("status, code, body", [
    (404, "model_not_found", {"model": "none", "messages": HELLO}),
    (400, "invalid_request", {"model": "small"}),
    (400, "invalid_request", {"model": "small", "messages": HELLO, "n": 2}),
    (400, "context_length_exceeded", {"model": "small", "messages": [{"role": "user", "content": "x" * 1100000}]}),
])
def test_errors_are_openai_shaped(engine, status, code, body):
    answer = httpx.post(engine.url + "/v1/chat/completions", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert set(error) == {"message", "type", "param", "code"}


def test_unknown_paths_and_methods(engine):
    assert httpx.get(engine.url + "/v2/none").status_code == 404
    assert httpx.get(engine.url + "/v1/completions").status_code == 405


def test_a_client_that_leaves_frees_its_place(engine):
    engine.faults(slow=20)
    aborted = engine.metric("request_success_total", finished_reason="abort")
    stream = engine.openai.chat.completions.create(model="small", messages=HELLO, max_tokens=5000, stream=True,
                                                   extra_body={"ignore_eos": True})
    next(iter(stream))
    engine.wait_until(lambda: engine.metric("num_requests_running") == 1)
    stream.close()
    engine.wait_until(lambda: engine.metric("num_requests_running") == 0)
    engine.wait_until(lambda: engine.metric("request_success_total", finished_reason="abort") == aborted + 1)
    engine.wait_until(lambda: engine.metric("kv_cache_usage_perc") == 0)


def test_slow(engine):
    def spent():
        start = time.monotonic()
        engine.openai.completions.create(model="small", prompt="x", max_tokens=64)
        return time.monotonic() - start

    healthy = min(spent() for _ in range(3))
    assert engine.faults(slow=40)["slow"] == 40
    assert spent() > 4 * healthy


def test_freeze_leaves_health_alone(engine):
    engine.faults(freeze=True)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(engine.url + "/v1/completions", json={"model": "small", "prompt": "x"}, timeout=0.3)
    assert httpx.get(engine.url + "/health").status_code == 200
    engine.faults(freeze=False)
    assert engine.openai.completions.create(model="small", prompt="x", max_tokens=2).usage.completion_tokens == 2


def test_refuse_and_hang(engine):
    engine.faults(refuse=True)
    with pytest.raises(httpx.TransportError):
        httpx.get(engine.url + "/health")
    engine.faults(refuse=False, hang=True)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(engine.url + "/health", timeout=0.2)


def test_statuses(engine):
    engine.faults(status=503)
    assert httpx.get(engine.url + "/health").status_code == 503
    engine.faults(reset=True, error_ratio=0.5)
    body = {"model": "small", "prompt": "x", "max_tokens": 1}
    with httpx.Client() as client:
        seen = [client.post(engine.url + "/v1/completions", json=body).status_code for _ in range(60)]
    assert 10 < seen.count(500) < 50 and set(seen) == {200, 500}


def test_die_mid_stream(engine):
    engine.faults(die_mid_stream=True)
    text = ""
    with pytest.raises(httpx.TransportError):
        body = {"model": "small", "messages": HELLO, "max_tokens": 40, "stream": True}
        with httpx.stream("POST", engine.url + "/v1/chat/completions", json=body) as answer:
            for piece in answer.iter_text():
                text += piece
    assert 1 <= len(re.findall('"content":"[a-z]', text)) <= 20
    assert "[DONE]" not in text
    with pytest.raises(httpx.TransportError):
        httpx.post(engine.url + "/v1/completions", json={"model": "small", "prompt": "x"})
    engine.wait_until(lambda: engine.metric("num_requests_running") == 0)


def test_bad_faults_are_refused(engine):
    answer = httpx.post(engine.url + "/admin/faults", json={"slwo": 3})
    assert answer.status_code == 400 and "slow" in answer.json()["error"]["message"]
    assert httpx.get(engine.url + "/admin/faults").json()["slow"] == 1


def test_a_full_queue_refuses():
    engine = Engine("--max-waiting", "1")
    try:
        engine.faults(freeze=True)
        body = json.dumps({"model": "small", "prompt": "x"})
        with socket.create_connection(engine.url.removeprefix("http://").split(":")) as first:
            first.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            engine.wait_until(lambda: engine.metric("num_requests_waiting") == 1)
            answer = httpx.post(engine.url + "/v1/completions", content=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_overloaded")
    finally:
        engine.stop()


@pytest.mark.parametrize("options, message", [
    (["--listen", "nowhere"], "nowhere"),
    (["--block-tokens", "0"], "block_tokens"),
    (["--step-tokens", "1"], "step_tokens"),
    (["--speed", "fast"], "--speed"),
])
def test_a_bad_start_says_why(options, message):
    run = subprocess.run([find_binary(), "engine-sim", "--models", "m", *options], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    assert message in run.stderr
