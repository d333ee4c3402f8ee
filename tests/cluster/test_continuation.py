"""A stream whose engine is killed goes on at another one, where its class may: the client has one whole answer."""

import json
import os
import signal

import pytest

from fleet import EXAMPLES, Fleet, example, stop_all, wait_for
from load import Stream

ASKED = {"model": "m-large", "messages": [{"role": "user", "content": "tell me everything"}], "max_tokens": 150, "ignore_eos": True,
         "stream": True, "stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory, request):
    config = example("laptop.toml")
    for engine in config["engine"]:
        engine["simulated"]["seed"] = 5  # all would say the same
    policy = (EXAMPLES / config["policy"]).read_text()
    policy = policy.replace("class chat {", "class chat {\n  continue streams")
    fleet = Fleet(tmp_path_factory.mktemp("continuation") / "fleet", config, policy)
    try:
        yield fleet.up()
    finally:
        stop_all([fleet], request.node)


def test_a_killed_engines_stream_is_whole(fleet):
    url = fleet.url("router-east")
    undisturbed = Stream(url, ASKED).read()
    assert undisturbed.events[-1] == "[DONE]" and not undisturbed.comments
    for _ in range(2):
        pids = {name: row["pid"] for name, row in fleet.processes().items()}
        stream = Stream(url, ASKED).read(until=12)
        os.kill(pids[stream.engine], signal.SIGKILL)
        stream.read()
        assert stream.events[-1] == "[DONE]", stream.events[-3:]
        assert stream.text() == undisturbed.text()
        assert len(stream.comments) == 1 and "continued after" in stream.comments[0] and stream.engine not in stream.comments[0].split()
        assert {json.loads(e)["id"] for e in stream.events if e != "[DONE]"} == {json.loads(stream.events[0])["id"]}
        for part in ("prompt_tokens", "completion_tokens", "total_tokens"):
            assert stream.usage()[part] == undisturbed.usage()[part], part
        record = json.loads(fleet.signalbox("explain", stream.decision, "--json").stdout)
        assert record["continued"] == 1
        assert [a["end"] for a in record["attempts"]] == ["broken_stream", "succeeded"]
        assert "continued the stream" in fleet.signalbox("explain", stream.decision).stdout
        wait_for("the engine is back", lambda: fleet.processes()[stream.engine]["pid"] not in (None, pids[stream.engine]), 60)


def test_what_asks_for_more_than_text_ends_with_an_error(fleet):
    pids = {name: row["pid"] for name, row in fleet.processes().items()}
    stream = Stream(fleet.url("router-west"), {**ASKED, "logprobs": True}).read(until=5)
    os.kill(pids[stream.engine], signal.SIGKILL)
    stream.read()
    assert json.loads(stream.events[-1])["error"] and not stream.comments
