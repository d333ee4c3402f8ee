"""What tools/demo shows: a fleet, requests through every router, and where they went beside what was planned."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))

from fleet import Fleet, example  # noqa: E402  the same harness as the cluster tests
from load import Load, chat, unlike  # noqa: E402
from real_engine import RealEngines  # noqa: E402

SECONDS = 20
RATE_PER_ROUTER = 12


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


def drive(fleet: Fleet, routers: dict[str, str], models: list[str], seconds: float, rate: float) -> tuple[dict, dict]:
    """Load on every router for a while; answers by cluster, and the mean weight of each engine seen meanwhile."""
    loads = {}
    for cluster, router in routers.items():
        url = fleet.url(router)
        loads[cluster] = Load(lambda n, url=url: chat(url, models[n % len(models)], unlike(n), 24, stream=n % 2 == 0,
                                                      headers={"x-demo-model": models[n % len(models)]}), rate, seed=len(loads))
    weights = collections.defaultdict(list)
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(1.0):
            for row in fleet.inspect("snapshot")["weights"]:
                weights[(row["cluster"], row["class"], row["engine"])].append(row["weight"])

    watcher = threading.Thread(target=watch)
    watcher.start()
    time.sleep(seconds)
    answers = {cluster: load.stop() for cluster, load in loads.items()}
    stop.set()
    watcher.join()
    return answers, {key: sum(values) / len(values) for key, values in weights.items()}


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def show_table(fleet: Fleet, answers: dict, weights: dict) -> None:
    engines = {row["engine"]: row for row in fleet.inspect("engines")["engines"]}
    print(f"\n{'from':<6} {'engine':<8} {'in':<6} {'models':<10} {'requests':>8} {'share':>7} {'weight':>7} {'p50 ms':>8} {'p95 ms':>8} {'first ms':>9}")
    for cluster, all_answers in answers.items():
        good = [a for a in all_answers if a.good]
        by_engine = collections.defaultdict(list)
        for answer in good:
            by_engine[answer.engine].append(answer)
        # An engine's weight is within its model's class; its share is of the requests for its model.
        for name, row in sorted(engines.items(), key=lambda item: (item[1]["models"], item[0])):
            mine = by_engine.get(name, [])
            same_model = sum(len(by_engine.get(other, [])) for other, o in engines.items() if o["models"] == row["models"])
            planned = [w for (c, _, e), w in weights.items() if (c, e) == (cluster, name) and w > 0]
            weight = sum(planned) / len(planned) if planned else 0.0
            times = [a.total_s * 1e3 for a in mine]
            firsts = [a.first_byte_s * 1e3 for a in mine if a.chunk_times]
            print(f"{cluster:<6} {name:<8} {row['cluster']:<6} {row['models']:<10} {len(mine):>8} "
                  f"{len(mine) / same_model if same_model else 0:>7.2f} {weight:>7.2f} {quantile(times, .5):>8.0f} "
                  f"{quantile(times, .95):>8.0f} {quantile(firsts, .5):>9.0f}")


def models_of(config: dict) -> list[str]:
    return sorted({model for engine in config["engine"] for model in engine["models"]})


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    config = example("real-engine.toml" if options.real else "laptop.toml")
    folder = ROOT / "build" / ("demo-real" if options.real else "demo")
    fleet = Fleet(folder, config, binary=ROOT / "build/release/bin/signalbox")
    fleet.signalbox("down", check=False)
    with RealEngines(config) if options.real else Nothing():
        fleet.write_config()
        say("starting the fleet")
        fleet.up()
        try:
            return show(fleet, config, options)
        finally:
            say("stopping the fleet")
            fleet.down()


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def show(fleet: Fleet, config: dict, options) -> int:
    print(fleet.signalbox("status").stdout)
    routers = {process["cluster"]: process["id"] for process in config["process"] if process["role"] == "cluster-router"}
    models = models_of(config)
    decision = show_one_request(fleet.url(next(iter(routers.values()))), models[0])
    say(f"$ signalbox explain {decision}")
    print(fleet.signalbox("explain", decision, check=False).stdout)
    rate = 2 if options.real else RATE_PER_ROUTER
    say(f"sending {rate} requests a second to each router for {options.seconds:.0f} s, half of them streams")
    answers, weights = drive(fleet, routers, models, options.seconds, rate)
    show_table(fleet, answers, weights)
    total = [a for some in answers.values() for a in some]
    failed = [a for a in total if not a.good]
    print(f"\n{len(total)} requests, {len(failed)} failed")
    for answer in failed[:5]:
        print(f"  failed: status {answer.status} {answer.reason} {answer.error} {answer.text[:200]}")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
