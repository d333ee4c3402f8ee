"""explain: a decision made again is the same, and what would have been with one thing otherwise."""

import json
import os
import pathlib
import random
import subprocess

import pytest

from fleet import Fleet, example, size, stop_all, wait_for
from load import Load, chat, unlike


def checker(fleet) -> pathlib.Path:
    build = pathlib.Path(os.environ.get("SIGNALBOX_BUILD", fleet.binary.parents[1]))
    return build / "tests" / "check_decisions"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, request):
    """A fleet that publishes every decision, driven by prompts of which some share their beginnings; and its recording."""
    config = example("laptop.toml")
    config.setdefault("router", {})["published"] = 1000.0
    folder = tmp_path_factory.mktemp("explain")
    fleet = Fleet(folder / "fleet", config)
    try:
        fleet.up()
        file = folder / "run.sbx"
        options = ["--config", fleet.file, "--state-dir", fleet.state, "--keys-dir", fleet.folder / "keys"]
        tap = subprocess.Popen([fleet.binary, "tap", "--quiet", "--record", file, *map(str, options)], stderr=subprocess.PIPE, text=True)
        wait_for("the routers publish", lambda: published(fleet), 60, every_s=0.5)
        urls = [fleet.url("router-east"), fleet.url("router-west")]
        rng = random.Random(5)
        shared = [unlike(1000 + i, words=900) for i in range(4)]
        wanted = size("explain_decisions")

        def one(n):
            prompt = shared[rng.randrange(4)] + unlike(n) if n % 3 == 0 else unlike(n)
            return chat(urls[n % 2], ("m-large", "m-small")[n // 2 % 2], prompt, 2 + n % 7, headers={"x-signalbox-session": f"s{n % 40}"} if n % 5 == 0 else None)
        load = Load(one, 60)
        wait_for("enough decisions are made", lambda: len(load.so_far()) >= wanted, 300, every_s=0.5)
        answers = load.stop()
        wait_for("the last ones were heard", lambda: heard(fleet, file, answers[-1].decision), 60, every_s=0.5)
        tap.terminate()
        tap.wait(timeout=60)
        yield fleet, file, answers
    finally:
        stop_all([fleet], request.node)


def published(fleet) -> bool:
    """Whether a decision is said on the bus: requests are made for as long as the tap waits for one."""
    options = ["--config", fleet.file, "--state-dir", fleet.state, "--keys-dir", fleet.folder / "keys"]
    tap = subprocess.Popen([fleet.binary, "tap", "--json", "--message", "decision_inputs", "--count", "1", "--seconds", "15", *map(str, options)],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while tap.poll() is None:
        chat(fleet.url("router-east"), "m-large", "hello", 2)
    return bool(tap.stdout.read().strip())


def heard(fleet, file, decision: str) -> bool:
    done = fleet.signalbox("tap", "--replay", str(file), "--json", "--decision", decision, fleet=False)
    return "decision_record" in done.stdout


def messages(fleet, file, kind: str) -> list[dict]:
    done = fleet.signalbox("tap", "--replay", str(file), "--json", "--message", kind, fleet=False)
    return [json.loads(line)["body"] for line in done.stdout.splitlines()]


def test_decisions_made_again_are_the_same_and_right(recorded):
    fleet, file, _ = recorded
    done = subprocess.run([checker(fleet), file], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    counts = json.loads(done.stdout)
    print(counts)
    assert counts["decisions"] >= 1000 and counts["with_cached_prefix"] > 50
    # Six engines of two models may hold one beginning, of which the index names four.
    assert counts["with_unnamed_holders"] < 0.1 * counts["decisions"]


def test_explain_tells_what_was_recorded(recorded):
    """The routers' own memory, the recording, and the inputs of the same decisions agree."""
    fleet, file, answers = recorded
    records = {r["decision"]: r for r in messages(fleet, file, "decision_record")}
    inputs = {(i["decision"], i["attempt"]): i for i in messages(fleet, file, "decision_inputs")}
    names = [engine["name"] for engine in fleet.config["engine"]]
    assert len(records) >= 1000
    compared = 0
    for answer in answers:
        record = records.get(answer.decision)
        read = inputs.get((answer.decision, 0))
        if not record or not read or not answer.good:
            continue
        compared += 1
        assert record["engine_name"] == answer.engine == names[read["chosen"]]
        fates = {row["engine"]: row["fate"] for row in record["candidates"]}
        assert set(fates) == set(range(6)), "every engine is named with its fate"
        kept = {row["engine"]: row for row in record["candidates"]}
        for row in read["candidates"]:  # the record keeps costs as 32-bit floats
            assert row["fate"] == fates[row["engine"]]
            assert abs(row["total_s"] - kept[row["engine"]]["total_s"]) <= 1e-6 * max(1.0, row["total_s"])
    assert compared >= 900, compared
    known = [a for a in answers if a.good and a.decision in records]
    for answer in [known[0], known[-1], *random.Random(1).sample(known, 5)]:
        live = json.loads(fleet.signalbox("explain", answer.decision, "--json").stdout)
        past = json.loads(fleet.signalbox("explain", answer.decision, "--json", "--recording", str(file), fleet=False).stdout)
        for key in ("engine_name", "class_name", "model", "rule", "policy", "table", "seed", "status"):
            assert live[key] == past[key], key
        assert live["snapshot"]["sequence"] == past["snapshot"]["sequence"]
        if live["kept"] == "whole":
            assert live["candidates"] == past["candidates"]
        else:
            filed_agrees(live["candidates"], past["candidates"])


def test_explain_tells_why_the_plan_gave_these_weights(recorded):
    """The very plan that the decision read: out of a recording, and from its router when others have followed."""
    fleet, file, answers = recorded
    names = [engine["name"] for engine in fleet.config["engine"]]
    answer = [a for a in answers if a.good][-1]
    past = json.loads(fleet.signalbox("explain", answer.decision, "--json", "--recording", str(file), fleet=False).stdout)
    reasons, version = past["reasons"], past["snapshot"]
    read = f'{version["term"]["counter"]}@{version["term"]["optimizer"]}.{version["sequence"]}'
    assert [reasons["plan"][0][key] for key in ("read", "shown")] == [read, read]
    assert {row["class"] for row in reasons["weights"] + reasons["not_used"]} == {past["class_name"]}
    weights = {row["engine"]: row["weight"] for row in reasons["weights"]}
    assert weights and weights == {names[row["engine"]]: pytest.approx(row["weight"]) for row in past["candidates"] if row["weight"] > 0}
    assert {row["engine"] for row in reasons["price"]} >= set(weights)
    assert all(row["sentence"] for row in reasons["price"] + reasons["not_used"])
    live = json.loads(fleet.signalbox("explain", answer.decision, "--json").stdout)["reasons"]
    assert [live["plan"][0][key] for key in ("read", "shown")] == [read, read]
    assert live["weights"] == reasons["weights"] and live["price"] == reasons["price"]
    text = fleet.signalbox("explain", answer.decision).stdout
    for title in ("candidates", "plan", "weights", "price", "not_used", "facts"):
        assert f"\n{title}\n" in text, title


def filed_agrees(filed: list[dict], whole: list[dict]) -> None:
    """The ring file keeps the chosen candidate and the next best, their costs to three digits."""
    assert filed[0]["fate"] == "chosen" and 1 <= len(filed) <= 2
    rows = {row["engine"]: row for row in whole}
    for row in filed:
        of = rows[row["engine"]]
        assert row["fate"] == of["fate"]
        for part in ("network_s", "queue_s", "prefill_s", "decode_s", "price_s"):
            assert row[part] == pytest.approx(of[part], rel=0.005, abs=1e-9), part
    dearer = [row["total_s"] for row in whole if row["fate"] == "dearer"]
    if len(filed) == 2 and dearer:
        assert rows[filed[1]["engine"]]["total_s"] == pytest.approx(min(dearer), rel=0.005)


def test_what_if(recorded):
    fleet, file, _ = recorded
    names = [engine["name"] for engine in fleet.config["engine"]]
    whole = {record["decision"] for record in messages(fleet, file, "decision_record")}
    read = next(i for i in messages(fleet, file, "decision_inputs")
                if i["decision"] in whole and sum(row["fate"] in ("chosen", "dearer") for row in i["candidates"]) >= 2 and i["attempt"] == 0)
    chosen = names[read["chosen"]]
    cost = {names[row["engine"]]: row["total_s"] for row in read["candidates"] if row["fate"] in ("chosen", "dearer")}

    def ask(*changes, where=("--recording", str(file))):
        arguments = [argument for change in changes for argument in ("--what-if", change)]
        def said():
            done = fleet.signalbox("explain", read["decision"], "--json", *where, *arguments, fleet=not where, check=False)
            print(done.stderr)
            return done.returncode == 0 and json.loads(done.stdout)
        return wait_for("explain answers", said, 30)
    without = ask(f"without={chosen}")
    assert without["exact"] and without["before"] == chosen and without["after"] not in (chosen, "")
    slow = ask("slow=1000x")
    assert slow["after"] != chosen
    same = ask("slow=1x")
    assert same["after"] == chosen
    other = min((name for name in cost if name != chosen), key=cost.get)
    engine = ask(f"engine={other}")
    assert other in engine["sentence"] and f"{cost[other]:.4f} s" in engine["sentence"]
    live = ask(f"without={chosen}", where=())
    assert not live["exact"] and live["after"] == other
    for wrong, code in ((["nonsense"], 2), (["without=w9"], 2), (["slow=-1"], 2), (["engine=e1", "without=e2"], 2)):
        arguments = [argument for change in wrong for argument in ("--what-if", change)]
        assert fleet.signalbox("explain", read["decision"], *arguments, check=False).returncode == code, wrong


def test_nothing_is_published_when_nobody_listens(recorded):
    fleet, _, _ = recorded
    chat(fleet.url("router-east"), "m-large", "hello", 2)
    wait_for("the forwarders tell that nobody listens", lambda: nobody_listens(fleet), 60)


def nobody_listens(fleet) -> bool:
    lines = fleet.signalbox("tap", "--json", "--message", "interest", "--seconds", "1").stdout.splitlines()
    return bool(lines) and all("decision_record" not in json.loads(line)["body"]["messages"] for line in lines)


def test_one_request_is_followed_across_processes(recorded):
    fleet, file, answers = recorded
    answer = next(a for a in reversed(answers) if a.good and heard(fleet, file, a.decision))
    done = fleet.signalbox("tap", "--replay", str(file), "--follow", answer.decision, "--json", fleet=False)
    steps = json.loads(done.stdout)["journey"]
    what = [step["what"] for step in steps]
    assert [w for w in what if w in ("arrived", "decision 1", "attempt began", "attempt ended")] == ["arrived", "decision 1", "attempt began", "attempt ended"]
    assert {step["process"] for step in steps} >= {"monitor"} and any(step["process"].startswith("proxy-") for step in steps)
    assert any(w.startswith("plan ") for w in what) and any(w.startswith("report ") for w in what)
    times = [step["at_s"] for step in steps]
    assert times == sorted(times) and times[what.index("arrived")] == 0
    ended = times[what.index("attempt ended")]
    assert 0 < ended <= answer.total_s + 0.05
    assert fleet.signalbox("tap", "--replay", str(file), "--follow", "no-such", check=False, fleet=False).returncode == 2


def test_the_next_request_is_followed_live(recorded):
    fleet, _, _ = recorded
    url = fleet.url("router-west")
    load = Load(lambda n: chat(url, "m-small", unlike(n), 4), 5)
    done = fleet.signalbox("tap", "--follow", "next", "--class", "small", "--seconds", "60", "--json")
    load.stop()
    assert "arrived" in [step["what"] for step in json.loads(done.stdout)["journey"]]
