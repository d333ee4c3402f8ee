"""What tools/demo shows: a fleet, requests through every router, and where they went beside what was planned."""

import argparse
import collections
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))

import monitoring  # noqa: E402  beside this file
from fleet import Fleet, example  # noqa: E402  the same harness as the cluster tests
from load import Load, chat, unlike  # noqa: E402
from real_engine import RealEngines  # noqa: E402

SECONDS = 20


@dataclasses.dataclass
class Pace:
    """What is asked of each router: far below what the engines can do on two cores, so that nothing is refused."""
    per_s: float
    prompt_words: int
    max_tokens: int


SIMULATED = Pace(per_s=12, prompt_words=40, max_tokens=24)
REAL = Pace(per_s=1, prompt_words=6, max_tokens=12)


def say(text: str) -> None:
    print(f"demo: {text}", flush=True)


def show_one_request(url: str, model: str) -> str:
    """One request as a person would send it; returns the id of its decision."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Which way does the train go?"}], "max_tokens": 12})
    command = ["curl", "-si", f"{url}/v1/chat/completions", "-H", "content-type: application/json", "-d", body]
    say(f"$ curl -si {url}/v1/chat/completions -d '{body}'")
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    head, _, text = answer.replace("\r", "").partition("\n\n")
    print("\n".join("    " + line for line in [*head.splitlines(), "", text[:300]]))
    return next(line.split(": ", 1)[1] for line in head.splitlines() if line.lower().startswith("x-signalbox-decision"))


def drive(fleet: Fleet, routers: dict[str, str], models: list[str], seconds: float, pace: Pace) -> tuple[dict, dict]:
    """Load on every router for a while; answers by cluster, and what the plans meanwhile gave each engine."""
    loads = {}
    for cluster, router in routers.items():
        url = fleet.url(router)
        loads[cluster] = Load(lambda n, url=url: chat(url, models[n % len(models)], unlike(n, pace.prompt_words), pace.max_tokens,
                                                      stream=n // len(models) % 2 == 0), pace.per_s, seed=len(loads))
    planned = collections.Counter()
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(1.0):
            tables = fleet.inspect("snapshot")
            # Classes that nobody asks for have weights too; a plan is compared by what it foresaw.
            foreseen = {(row["cluster"], row["class"]): row["planned_rps"] for row in tables["admits"]}
            for row in tables["weights"]:
                planned[(row["cluster"], row["engine"])] += row["weight"] * foreseen.get((row["cluster"], row["class"]), 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    time.sleep(seconds)
    answers = {cluster: load.stop() for cluster, load in loads.items()}
    stop.set()
    watcher.join()
    return answers, planned


def quantile_ms(seconds: list[float], share: float) -> str:
    return f"{sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))] * 1e3:.0f}" if seconds else "-"


def share_of(part: float, whole: float) -> str:
    return f"{part / whole:.2f}" if whole else "-"


def show_table(fleet: Fleet, answers: dict, planned: dict) -> None:
    engines = sorted(fleet.inspect("engines")["engines"], key=lambda row: (row["models"], row["engine"]))
    print(f"\n{'from':<6}{'engine':<8}{'in':<6}{'model':<13}{'requests':>8}{'share':>6}{'weight':>7}{'p50 ms':>8}{'p95 ms':>8}{'TTFT ms':>9}")
    for cluster, all_answers in answers.items():
        served = collections.defaultdict(list)
        for answer in all_answers:
            served[answer.engine].append(answer)
        for row in engines:
            mine = served[row["engine"]]
            rivals = [other["engine"] for other in engines if other["models"] == row["models"]]
            times = [a.total_s for a in mine]
            firsts = [a.first_byte_s for a in mine if a.chunk_times]
            print(f"{cluster:<6}{row['engine']:<8}{row['cluster']:<6}{row['models']:<13}{len(mine):>8}"
                  f"{share_of(len(mine), sum(len(served[rival]) for rival in rivals)):>6}"
                  f"{share_of(planned[(cluster, row['engine'])], sum(planned[(cluster, rival)] for rival in rivals)):>7}"
                  f"{quantile_ms(times, .5):>8}{quantile_ms(times, .95):>8}{quantile_ms(firsts, .5):>9}")
    print("""
share: of the requests from there for that model; weight: what the plans gave it, averaged
over the demand that they foresaw. A router draws candidates by weight and takes the one of
least cost, so far below its capacity a fleet leans on its fast engines. TTFT: of streams.""")


def models_of(config: dict) -> list[str]:
    return sorted({model for engine in config["engine"] for model in engine["models"]})


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--monitoring", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--folder", type=pathlib.Path, help="for the fleet's files; build/demo or build/demo-real unless given")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/signalbox")
    options = parser.parse_args()
    config = example("real-engine.toml" if options.real else "laptop.toml")
    folder = options.folder or ROOT / "build" / ("demo-real" if options.real else "demo")
    fleet = Fleet(folder, config, binary=options.binary)
    fleet.signalbox("down", check=False)
    with RealEngines(fleet.config) if options.real else contextlib.nullcontext():
        fleet.write_config()  # real engines have taken free ports
        try:
            say("starting the fleet")
            fleet.up()
            return show(fleet, config, options)
        except AssertionError as error:  # the fleet's harness says what did not come about
            say(f"it failed: {error}")
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            say("stopping the fleet")
            fleet.down()


@contextlib.contextmanager
def watching(fleet: Fleet, options):
    """With --monitoring: Prometheus beside the fleet; yields what shows that it answers."""
    if not options.monitoring:
        yield lambda: None
        return
    beside = monitoring.Monitoring(fleet, fleet.folder / "monitoring")
    try:
        beside.start(interval="1s")
        yield lambda: monitoring.show(beside, say)
    finally:
        beside.stop()


def show(fleet: Fleet, config: dict, options) -> int:
    print(fleet.signalbox("status").stdout)
    routers = {process["cluster"]: process["id"] for process in config["process"] if process["role"] == "cluster-router"}
    models = models_of(config)
    decision = show_one_request(fleet.url(next(iter(routers.values()))), models[0])
    say(f"$ signalbox explain {decision}")
    print(fleet.signalbox("explain", decision, check=False).stdout)
    pace = REAL if options.real else SIMULATED
    say(f"sending {pace.per_s:g} requests a second to each router for {options.seconds:.0f} s, half of them streams")
    with watching(fleet, options) as show_monitoring:
        answers, planned = drive(fleet, routers, models, options.seconds, pace)
        show_monitoring()
    show_table(fleet, answers, planned)
    total = [a for some in answers.values() for a in some]
    failed = [a for a in total if not a.good]
    print(f"\n{len(total)} requests, {len(failed)} failed")
    for answer in failed[:5]:
        print(f"  failed: status {answer.status} {answer.reason} {answer.error} {answer.text[:200]}")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
