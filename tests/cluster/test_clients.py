"""Clients that know nothing of Signalbox work unchanged through both routers."""

import concurrent.futures
import json
import pathlib
import shutil
import subprocess

import openai
import pytest

from fleet import ROOT
from load import chat, unlike

ATTEMPTS = 3  # at what a machine short of CPU may spoil by itself, but not each time
ROUTERS = ["router-east", "router-west"]


@pytest.fixture(params=ROUTERS)
def url(laptop, request):
    return laptop.url(request.param)


@pytest.fixture
def client(url):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=60)


def hello(number: int = 0) -> list[dict]:
    return [{"role": "user", "content": f"hello {unlike(number, 8)}"}]


def test_a_chat_completion(client):
    answer = client.chat.completions.create(model="m-large", messages=hello(), max_tokens=12)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens == 12


def test_a_stream_with_usage(client):
    stream = client.chat.completions.create(model="m-small", messages=hello(), max_tokens=20, stream=True,
                                            stream_options={"include_usage": True})
    chunks = list(stream)
    assert len([c for c in chunks if c.choices and c.choices[0].delta.content]) >= 20
    assert chunks[-1].usage.completion_tokens == 20


def test_completions_and_embeddings(client):
    assert client.completions.create(model="m-small", prompt="the train", max_tokens=5).choices[0].text
    assert len(client.embeddings.create(model="m-small", input="the train").data[0].embedding) > 0


def test_models_are_those_of_the_policy(client):
    assert {"m-large", "m-small"} <= {model.id for model in client.models.list()}


def test_an_unknown_model_is_an_error_that_the_client_understands(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="m-huge", messages=hello())
    assert caught.value.code == "model_not_found"


def node_modules() -> pathlib.Path | None:
    """Where tools/setup put the Node client; it needs npm and Node 20."""
    if not shutil.which("node") or not (ROOT / "build/node/node_modules/openai").exists():
        return None
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return ROOT / "build/node" if int(version.strip("v\n").split(".")[0]) >= 20 else None


@pytest.mark.skipif(node_modules() is None, reason="no Node 20 with the openai package in build/node")
def test_the_node_client(url):
    script = pathlib.Path(__file__).with_name("node_client.mjs")
    done = subprocess.run(["node", script, url, node_modules()], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["text"] and seen["tokens"] == 12 and seen["completion"] and seen["embedding"] > 0
    assert seen["deltas"] >= 20 and seen["streamedTokens"] == 20 and seen["beforeAbort"] == 5
    assert seen["requestId"] and seen["decision"]
    assert {"m-large", "m-small"} <= set(seen["models"]) and seen["model"] == "m-large"
    assert seen["error"] == {"notFound": True, "code": "model_not_found", "status": 404}


def test_curl_sees_the_headers(url):
    body = json.dumps({"model": "m-small", "messages": hello(), "max_tokens": 4})
    done = subprocess.run(["curl", "-si", f"{url}/v1/chat/completions", "-H", "content-type: application/json",
                           "-H", "x-request-id: my-own-id", "-d", body], capture_output=True, text=True, check=True)
    head = done.stdout.lower().split("\r\n\r\n")[0]
    assert " 200 " in head.splitlines()[0]
    assert "x-request-id: my-own-id" in head
    for name in ("x-signalbox-decision", "x-signalbox-engine", "x-signalbox-snapshot", "x-signalbox-attempts: 1"):
        assert name in head, head


def test_streams_arrive_chunk_by_chunk(url):
    """A chunk comes when its token is made: the first long before the last, and none in one heap."""
    def gaps(number: int) -> list[float]:
        answer = chat(url, "m-large", unlike(number), max_tokens=30, stream=True)
        assert answer.good, answer
        times = answer.chunk_times
        assert len(times) >= 30
        assert answer.total_s - times[0] > 0.3
        return [b - a for a, b in zip(times, times[1:])]
    seen = [gaps(n) for n in range(ATTEMPTS)]
    assert any(max(one) < 0.5 * sum(one) for one in seen), seen


def test_concurrent_streams_do_not_wait_for_each_other(url):
    def together(tokens: int) -> bool:
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda n: chat(url, "m-small", unlike(n), max_tokens=tokens, stream=True), range(12)))
        assert all(a.good for a in answers), answers
        ends, starts = [a.began + a.total_s for a in answers], [a.began + a.first_byte_s for a in answers]
        return max(starts) < min(ends)
    assert any(together(30 << n) for n in range(ATTEMPTS)), "all of them were streaming at one time"
