"""Engines' own KV events reach the routers: an emptied cache is forgotten at once, gaps are filled, strange events do no harm."""

import json
import shutil
import tempfile
import urllib.request

import pytest

from fleet import example, wait_for
from load import chat, unlike


def post(url: str, body: dict | None = None, timeout_s: float = 30) -> dict:
    data = json.dumps(body or {}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"content-type": "application/json"}), timeout=timeout_s) as answer:
        return json.loads(answer.read() or b"{}")


@pytest.fixture
def fleet(new_fleet):
    config = example("laptop.toml")
    sockets = tempfile.mkdtemp(prefix="kv-", dir="/tmp")  # a socket's path must be short
    for engine in config["engine"]:
        engine["kv_events"] = f"ipc://{sockets}/{engine['name']}"
        if engine["name"] != "e2":
            engine["kv_replay"] = f"ipc://{sockets}/{engine['name']}.again"
    fleet = new_fleet(config)
    fleet.on_down.append(lambda: shutil.rmtree(sockets, ignore_errors=True))
    return fleet.up()


def row(fleet, engine: str) -> dict:
    rows = [r for r in fleet.inspect("cache")["cache"] if r["engine"] == engine]
    return rows[0] if rows else {}


def complete(fleet, engines: list[str]) -> bool:
    return all(row(fleet, engine).get("knowledge") == "complete" for engine in engines)


def matched(fleet, router: str, prompt: str) -> dict[str, float]:
    """By engine: tokens of this prompt that the router believes to be cached there."""
    record = post(fleet.operator_url(router) + "/v1/route", {"model": "m-large", "messages": [{"role": "user", "content": prompt}], "max_tokens": 2})["record"]
    names = [engine["name"] for engine in fleet.config["engine"]]
    return {names[c["engine"]]: c["matched_tokens"] for c in record["candidates"]}


def test_the_routers_follow_the_engines_caches(fleet):
    east = fleet.url("router-east")
    prompt = unlike(1, words=3000)
    answer = chat(east, "m-large", prompt, 2)
    assert answer.good
    engine = answer.engine
    wait_for("its blocks are counted", lambda: (row(fleet, engine).get("held_blocks") or 0) > 100, 60)
    wait_for("all of them are known", lambda: complete(fleet, [engine]), 60)
    # Both routers believe that it holds the prompt: one sent it, the other was told.
    for router in ("router-east", "router-west"):
        wait_for("it is believed to be there", lambda r=router: matched(fleet, r, prompt).get(engine, 0) > 1000, 60)
    post(fleet.engine_url(engine) + "/reset_prefix_cache")
    for router in ("router-east", "router-west"):
        wait_for("the emptied cache is forgotten", lambda r=router: matched(fleet, r, prompt).get(engine, 0) == 0, 60)
    wait_for("the clear is told", lambda: row(fleet, engine).get("clears"), 60)
    wait_for("all is known", lambda: complete(fleet, [engine]), 60)
    # What is sent from now on counts again.
    assert chat(east, "m-large", prompt, 2).good
    wait_for("it is believed again", lambda: max(matched(fleet, "router-east", prompt).values()) > 1000, 60)


def test_gaps_and_strange_events_are_survived(fleet):
    names = [engine["name"] for engine in fleet.config["engine"] if "m-large" in engine["models"]]
    served = 0

    def load(count: int) -> None:
        nonlocal served
        for _ in range(count):
            served += 1
            assert chat(fleet.url("router-east"), "m-large", unlike(served, words=300), 2).good

    def faults(**change) -> None:
        for name in names:
            fleet.faults(name, reset=True, **change)

    def total(column: str, of: list[str]) -> int:
        return sum(row(fleet, name).get(column) or 0 for name in of)

    load(8)
    heard = wait_for("blocks are counted", lambda: [n for n in names if row(fleet, n).get("held_blocks")], 60)
    faults(kv_strange=True)
    wait_for("strange events are counted", lambda: load(4) or total("events_skipped", names), 60)
    wait_for("all is known", lambda: complete(fleet, heard), 60)
    faults(kv_lost=True)
    load(12)
    faults()
    asked = [n for n in names if n != "e2"]
    wait_for("lost batches are asked for", lambda: load(4) or total("replayed", asked), 60)
    assert total("missed", asked) == 0
    wait_for("all is known", lambda: complete(fleet, [n for n in asked if row(fleet, n).get("held_blocks")]), 60)
