"""The tap: filters, statistics, recordings and their replay, and that nothing it should show is lost without a word."""

import json
import re
import signal
import statistics
import subprocess
import time

import pytest

from flood import Flood
from fleet import resident_bytes, size, wait_for
from load import Load, chat, unlike


def run(fleet, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
    """A command that needs no fleet."""
    return fleet.signalbox(*arguments, check=check, fleet=False)


@pytest.fixture(scope="module")
def recording(laptop, tmp_path_factory):
    """Four seconds of the laptop under load."""
    file = tmp_path_factory.mktemp("recording") / "laptop.sbx"
    urls = [laptop.url("router-east"), laptop.url("router-west")]
    load = Load(lambda n: chat(urls[n % 2], ("m-large", "m-small")[n // 2 % 2], unlike(n), 16), 10)
    wait_for("load flows", lambda: len(load.so_far()) >= 10, 30)
    done = laptop.signalbox("tap", "--quiet", "--seconds", "4", "--record", str(file))
    load.stop()
    assert "recorded" in done.stderr
    return file


def test_conditions_on_fields(laptop, recording):
    def heard(*arguments):
        return [json.loads(line) for line in run(laptop, "tap", "--replay", str(recording), "--json", *arguments).stdout.splitlines()]
    signals = heard("--message", "engine_signal")
    some = heard("--message", "engine_signal", "--where", "engine == w1 or running > 1")
    assert some == [m for m in signals if m["body"]["engine"] == "w1" or m["body"].get("running", 0) > 1]
    assert 0 < len(some) < len(signals)
    snapshots = heard("--where", "weights.engine == w1 and weights.class == chat")
    assert snapshots and all(m["message"] == "routing_snapshot" for m in snapshots)
    named = heard("--class", "chat", "--cluster", "west")
    assert {m["message"] for m in named} >= {"demand_report", "routing_snapshot"}
    wrong = run(laptop, "tap", "--replay", str(recording), "--where", "runing > 1", check=False)
    assert wrong.returncode == 2 and "is 'running' meant?" in wrong.stderr


def test_json_lines_have_a_stable_form(laptop, recording):
    lines = run(laptop, "tap", "--replay", str(recording), "--json").stdout.splitlines()
    assert lines
    for line in lines:
        assert list(json.loads(line)) == ["topic", "message", "version", "source", "incarnation", "sequence", "age_s", "sent_s",
                                          "sent_wall_s", "config_fingerprint", "body"]


def test_statistics_name_every_sender(laptop):
    processes = {process["id"] for process in laptop.config["process"]} | {bus["id"] for bus in laptop.config["bus"]}

    def everybody():  # a process without CPU may be silent for two seconds
        rows = json.loads(laptop.signalbox("tap", "--stats", "--json", "--seconds", "2").stdout)["traffic"]
        return {row["sender"] for row in rows} == processes | {"all"} and rows
    rows = wait_for("everybody is heard", everybody, 60)
    assert sum(row["messages"] for row in rows[:-1]) == rows[-1]["messages"]
    assert rows[-1]["lost"] == 0


def test_a_full_message_has_units_and_sentences(laptop, recording):
    text = run(laptop, "tap", "--replay", str(recording), "--full", "--message", "engine_signal", "--count", "1").stdout
    assert re.search(r"running +\d+ requests +requests in the batch", text), text


def test_differences_of_snapshots(laptop, recording):
    every = [json.loads(line) for line in
             run(laptop, "tap", "--replay", str(recording), "--json", "--message", "routing_snapshot", "--cluster", "west").stdout.splitlines()]
    version = lambda m: f'{m["body"]["version"]["term"]["counter"]}@{m["body"]["version"]["term"]["optimizer"]}.{m["body"]["version"]["sequence"]}'
    first, last = version(every[0]), version(every[-1])
    done = run(laptop, "tap", "--replay", str(recording), "--cluster", "west", "--json", "--between", first, last)
    difference = json.loads(done.stdout)
    assert (difference["from"], difference["to"]) == (first, last)
    weights = lambda m: {(row["class"], row["engine"]): row["weight"] for row in m["body"]["weights"]}
    before, after = weights(every[0]), weights(every[-1])
    changed = {key for key in before | after if abs(before.get(key, 0) - after.get(key, 0)) > 5e-5}
    assert len(difference["difference"]["weights"]) == len(changed)
    each = run(laptop, "tap", "--replay", str(recording), "--cluster", "west", "--diff").stdout
    assert each.count("== west") == len(every) - 1


def test_inspect_works_on_a_recording(laptop, recording):
    def tables(what, *arguments):
        return json.loads(run(laptop, "inspect", what, "--json", "--recording", str(recording), *arguments).stdout)
    assert [row["engine"] for row in tables("engines")["engines"]] == ["e1", "e2", "e3", "w1", "w2", "w3"]
    assert {row["cluster"] for row in tables("snapshot")["snapshots"]} == {"east", "west"}
    assert tables("leader")["optimizers"]
    def version(at):  # "3@optimizer-1.108": term, leader, sequence
        term, _, rest = tables("snapshot", "--at", at)["snapshots"][0]["version"].partition("@")
        return int(term), int(rest.rpartition(".")[2])
    assert version("0.5") < version("4")
    assert run(laptop, "inspect", "engines", "--recording", "/no/such/file", check=False).returncode == 2


def test_a_replay_is_a_bus_for_every_tool(laptop, recording, tmp_path):
    folder = tmp_path / "replay"
    player = subprocess.Popen([laptop.binary, "tap", "--replay", recording, "--speed", "8", "--bus", folder], stderr=subprocess.PIPE, text=True)
    try:
        assert "playing" in player.stderr.readline()
        rows = wait_for("the engines are seen", lambda: json.loads(
            run(laptop, "inspect", "engines", "--json", "--bus", str(folder), check=False).stdout or "{}").get("engines"), 20)
        assert len(rows) == 6 and all(row["verdict"] == "ready" for row in rows)
        heard = [json.loads(line) for line in run(laptop, "tap", "--bus", str(folder), "--json", "--seconds", "1").stdout.splitlines()]
        originals = {(m["source"], m["topic"], m["sequence"]): m["body"] for m in map(json.loads, run(
            laptop, "tap", "--replay", str(recording), "--json").stdout.splitlines())}
        assert heard and all(originals[m["source"], m["topic"], m["sequence"]] == m["body"] for m in heard)
    finally:
        player.terminate()
        player.wait(timeout=20)
    assert run(laptop, "inspect", "engines", "--bus", str(tmp_path / "nothing"), check=False).returncode == 2


def test_a_damaged_recording_is_read_as_far_as_it_is_whole(laptop, recording, tmp_path):
    whole = recording.read_bytes()
    count = lambda file: len(run(laptop, "tap", "--replay", str(file), "--json").stdout.splitlines())
    damaged = tmp_path / "damaged.sbx"
    damaged.write_bytes(whole[:len(whole) // 2])
    done = run(laptop, "tap", "--replay", str(damaged), "--json")
    assert 0 < len(done.stdout.splitlines()) < count(recording)
    assert "recording: it has no index" in done.stderr
    damaged.write_bytes(b"nonsense" * 100)
    assert run(laptop, "tap", "--replay", str(damaged), check=False).returncode == 2


def alive(tap: subprocess.Popen) -> bool:
    assert tap.poll() is None, f"the tap ended with {tap.returncode}: {tap.stderr.read()}"
    return True


def end(tap: subprocess.Popen) -> str:
    assert alive(tap)
    tap.send_signal(signal.SIGINT)
    return tap.communicate(timeout=60)[1]


def lost_and_late(text: str) -> tuple[int, int]:
    lost = re.search(r"(\d+) messages were lost on their way", text)
    late = re.search(r"(\d+) messages came faster", text)
    return int(lost.group(1)) if lost else 0, int(late.group(1)) if late else 0


@pytest.fixture
def flood(tmp_path):
    made = Flood(tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize("paused_s", [0, 1.5], ids=["flooded", "paused"])
def test_what_a_tap_does_not_show_it_counts(flood, tmp_path, paused_s):
    out = open(tmp_path / "out.json", "w+")
    tap = flood.tap(out)
    first = json.loads(open(out.name).readline())["sequence"]
    if paused_s:
        tap.send_signal(signal.SIGSTOP)
    rate = flood.say(size("tap_flood"))
    if paused_s:
        time.sleep(paused_s)
        tap.send_signal(signal.SIGCONT)
    # What is lost is known when a later message arrives.
    last = lambda: json.loads(open(out.name).read().rsplit("\n", 2)[-2])["sequence"]
    wait_for("the tap has come to the end", lambda: alive(tap) and flood.say(1) and last() >= flood.sequence - 50, 120, every_s=0.2)
    text = end(tap)
    shown = [json.loads(line)["sequence"] for line in open(out.name)]
    lost, late = lost_and_late(text)
    print(f"{rate:.0f} messages a second: {len(shown)} shown, {lost} lost on the way, {late} too fast to show")
    assert shown == sorted(set(shown))
    assert len(shown) + lost + late == shown[-1] - first + 1


def test_a_filter_is_served_before_the_terminal(flood, tmp_path):
    """A filter that lets half through shows that half but for what was lost on its way, and counts nothing of the other as late."""
    out = open(tmp_path / "out.json", "w+")
    tap = flood.tap(out, "--class", "chat")
    flood.say(2_000)
    wait_for("the tap has come to the end", lambda: alive(tap) and flood.say(2) and str(flood.sequence - 60) in open(out.name).read(), 60, every_s=0.2)
    lost, late = lost_and_late(end(tap))
    shown = [json.loads(line) for line in open(out.name)]
    assert all(m["body"]["class_name"] == "chat" for m in shown)
    numbers = [m["sequence"] for m in shown]
    wanted = range(numbers[0], numbers[-1] + 1, 2)
    assert numbers == sorted(set(numbers)) and set(numbers) <= set(wanted)
    assert late == 0 and len(wanted) - len(numbers) <= lost


def test_a_paused_tap_costs_publishers_nothing(flood, tmp_path):
    """Another subscriber still hears everything, as soon as before, and the forwarder keeps no more for the tap than its queue."""
    ear = flood.listen()
    try:
        alone = ear.hear_all(flood, size("tap_paused"), 5_000)
        tap = flood.tap(open(tmp_path / "out.json", "w+"))
        before = resident_bytes(flood.forwarder.pid)
        tap.send_signal(signal.SIGSTOP)
        beside = ear.hear_all(flood, size("tap_paused"), 5_000)
        grown = (resident_bytes(flood.forwarder.pid) - before) / 2**20
        tap.send_signal(signal.SIGCONT)
        end(tap)
    finally:
        ear.close()
    p99 = lambda delays: sorted(delays)[int(0.99 * len(delays))] * 1e3
    print(f"on their way, median and 99th percentile: {statistics.median(alone) * 1e3:.3f} and {p99(alone):.3f} ms; beside a paused tap "
          f"{statistics.median(beside) * 1e3:.3f} and {p99(beside):.3f} ms, while the forwarder's memory grew by {grown:.1f} MiB")
    assert grown < 32
