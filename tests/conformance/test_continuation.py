"""With a policy that continues streams, one whose engine dies goes on at the other engine as one answer. Only for a Signalbox of the suite's own."""

import json

import pytest

import targets
from client import Client
from upstream import LAST_CHUNK, SSE_HEAD, chunk

POLICY = targets.POLICY.replace("criticality critical residency any", "criticality critical residency any continue streams")
DONE = b"data: [DONE]\n\n"
WORDS = ["Once", " upon", " a", " time", "."]


def event(engine: str, text: str, finish: str | None = None) -> bytes:
    return b"data: " + json.dumps({"id": engine, "object": "chat.completion.chunk", "created": len(engine), "model": "m", "choices": [
        {"index": 0, "delta": {"content": text}, "finish_reason": finish}]}, separators=(",", ":")).encode() + b"\n\n"


def usage(engine: str, prompt: int, completion: int) -> bytes:
    return b"data: " + json.dumps({"id": engine, "created": len(engine), "choices": [], "usage": {
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}}, separators=(",", ":")).encode() + b"\n\n"


@pytest.fixture(scope="module", params=["signalbox", "signalbox-loops"])
def continuing(request, upstream, tmp_path_factory):
    if request.config.getoption("--base-url") or request.config.getoption("--target") != "signalbox":
        pytest.skip("starts a router of its own")
    running = targets.STARTERS[request.param](tmp_path_factory.mktemp("continuing"), [engine.port for engine in upstream.engines], policy=POLICY,
                                              engine_settings='kind = "vllm"')
    yield running
    running.close()


@pytest.fixture
def asking(continuing, upstream):
    made = Client(continuing, upstream)
    yield made
    made.close()


def dies_after(words: list[str], *more: bytes):
    def script(exchange):
        exchange.send(SSE_HEAD, *(chunk(event("first", word)) for word in words), *map(chunk, more))
        exchange.close()
    return script


def goes_on(exchange) -> None:
    """As an engine that is given an answer to continue: the rest of the same text, its beginning counted as prompt."""
    last = json.loads(exchange.body)["messages"][-1]
    beginning = last["content"] if last["role"] == "assistant" else ""
    said = next(n for n in range(len(WORDS)) if "".join(WORDS[:n]) == beginning)
    rest = WORDS[said:]
    exchange.send(SSE_HEAD, *(chunk(event("second", word, "stop" if word == "." else None)) for word in rest),
                  chunk(usage("second", 10 + said, len(rest))), chunk(DONE), LAST_CHUNK)


def asked(client, **more) -> bytes:
    return client.post(client.body(stream=True, stream_options={"include_usage": True}, **more))


def parts_of(answer) -> tuple[list[bytes], list[bytes]]:
    """Events and comments."""
    pieces = [piece + b"\n\n" for piece in answer.body.split(b"\n\n") if piece]
    return [p for p in pieces if not p.startswith(b":")], [p for p in pieces if p.startswith(b":")]


@pytest.mark.parametrize("before", [0, 1, 4])
@pytest.mark.parametrize("cut", [b"", b'data: {"id":"first","cho'], ids=["between events", "inside an event"])
def test_a_stream_whose_engine_died_is_whole(asking, before, cut):
    asking.case.answers(dies_after(WORDS[:before], *([cut] if cut else [])), goes_on)
    answer = asking.ask(asked(asking))
    events, comments = parts_of(answer)
    first, second = asking.case.request(), asking.case.request()
    assert first.engine.name != second.engine.name
    assert answer.status == 200 and events[-1] == DONE
    name = "first" if before else "second"
    assert events[:-1] == [event(name, word, "stop" if word == "." else None) for word in WORDS] + [usage(name, 10, len(WORDS))]
    if before:  # else it was started over, as any request before its first token
        assert comments == [f": continued after {before} tokens by engine {second.engine.name}\n\n".encode()]
        sent = json.loads(second.body)["messages"]
        assert sent[:-1] == json.loads(first.body)["messages"]
        assert sent[-1] == {"role": "assistant", "content": "".join(WORDS[:before])}


def test_what_is_left_of_max_tokens_is_asked_for(asking):
    asking.case.answers(dies_after(WORDS[:3]), goes_on)
    asking.ask(asked(asking, max_tokens=8))
    asking.case.request()
    assert json.loads(asking.case.request().body)["max_tokens"] == 5


@pytest.mark.parametrize("more", [{"logprobs": True}, {"n": 2}, {"response_format": {"type": "json_object"}}, {"tools": []}], ids=str)
def test_what_asks_for_more_than_text_ends_with_an_error_event(asking, more):
    asking.case.answers(dies_after(WORDS[:1]), goes_on)
    answer = asking.ask(asked(asking, **more))
    events, comments = parts_of(answer)
    assert events[0] == event("first", WORDS[0]) and json.loads(events[-1].removeprefix(b"data: "))["error"]
    assert DONE not in events and not comments


def test_when_the_other_engine_dies_too_the_end_is_an_error_event(asking):
    asking.case.answers(dies_after(WORDS[:2]), dies_after([" a"]))
    events, _ = parts_of(asking.ask(asked(asking)))
    assert json.loads(events[-1].removeprefix(b"data: "))["error"] and DONE not in events
