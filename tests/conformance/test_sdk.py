"""The official Python client sees what went wrong, whatever an engine does to its stream."""

import openai
import pytest

from test_streams import DONE, event
from upstream import LAST_CHUNK, SSE_HEAD, chunk, json_answer


@pytest.fixture
def sdk(client, case):
    return openai.OpenAI(base_url=client.url + "/v1", api_key="sk-x", max_retries=0, timeout=60,
                         default_headers={"x-case": case.token})


def streamed(sdk) -> list[str]:
    stream = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
    return [chunk.choices[0].delta.content for chunk in stream if chunk.choices]


def test_a_stream_is_read(sdk, case):
    case.answers(lambda e: e.send(SSE_HEAD, chunk(event("a") + event("b")), chunk(DONE), LAST_CHUNK))
    assert streamed(sdk) == ["a", "b"]


@pytest.mark.parametrize("end", ["close", "reset", "no [DONE]"])
def test_a_stream_that_breaks_raises(sdk, case, end):
    def script(exchange):
        exchange.send(SSE_HEAD, chunk(event("a")))
        if end == "no [DONE]":
            return exchange.send(LAST_CHUNK)
        exchange.close() if end == "close" else exchange.reset()
    case.answers(script, script)
    with pytest.raises(openai.APIError):
        streamed(sdk)


def test_an_unknown_model_raises_not_found(sdk):
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.chat.completions.create(model="nobodys", messages=[])
    assert caught.value.code == "model_not_found"


def test_a_rate_limit_of_an_engine_raises_as_one(sdk, case):
    case.answers(json_answer(b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}', "429 Too Many Requests", "Retry-After: 1"))
    with pytest.raises(openai.RateLimitError) as caught:
        sdk.chat.completions.create(model="m", messages=[])
    assert caught.value.code == "rate_limit_exceeded" and caught.value.response.headers["retry-after"] == "1"


def test_a_bad_request_raises_as_one(sdk, case):
    with pytest.raises(openai.BadRequestError):
        sdk.chat.completions.create(model="m", messages=[], max_tokens=-1)
    assert case.nothing_arrived()


def test_models_are_listed(sdk):
    assert {"m", "slow"} <= {model.id for model in sdk.models.list()}
