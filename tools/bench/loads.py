"""The loads of the comparison. Each gives a dictionary of figures for one router, or for the engines themselves (`direct`)."""

import json
import os
import pathlib
import subprocess

import proxies

HERE = pathlib.Path(__file__).resolve().parent


class Engines:
    """Four of `signalbox bench engine` in one process."""

    def __init__(self):
        self.process = subprocess.Popen([proxies.binary(), "bench", "engine"], stdout=subprocess.PIPE, text=True)
        self.ports: list[int] = json.loads(self.process.stdout.readline())["ports"]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def wrk(port: int, connections: int, seconds: int, size: int) -> dict:
    """Requests one after the other on each connection."""
    done = subprocess.run([proxies.program("wrk"), "-t1", f"-c{connections}", f"-d{seconds}s", "-s", HERE / "requests.lua", f"http://127.0.0.1:{port}"],
                          capture_output=True, text=True, check=True, env={**os.environ, "BYTES": str(size)})
    out = json.loads(done.stdout.strip().splitlines()[-1])
    if out["failed"] or not out["requests"]:
        raise RuntimeError(f"requests failed: {out}")
    return out


def start_streams(port: int, at_once: int, total: int, events: int, every_us: int, longest_s: int = 120) -> subprocess.Popen:
    options = {"at-once": at_once, "total": total, "events": events, "every-us": every_us, "longest-s": longest_s}
    command = [str(proxies.binary()), "bench", "streams", "--url", f"127.0.0.1:{port}"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def streams(port: int, *args: int, may_fail: bool = False) -> dict:
    text, _ = start_streams(port, *args).communicate()
    out = json.loads(text.strip().splitlines()[-1])
    if out["failed"] and not may_fail:
        raise RuntimeError(f"streams failed: {out}")
    return out


def with_cpu(proxy: proxies.Proxy | None, load) -> tuple[dict, float]:
    """The load's figures and the CPU time, in microseconds, that the router spent on it."""
    before = proxy.cpu_s() if proxy else 0
    out = load()
    return out, ((proxy.cpu_s() if proxy else 0) - before) * 1e6


def requests_of(size: int, seconds: int):
    def measure(proxy, port: int) -> dict:
        out, cpu = with_cpu(proxy, lambda: wrk(port, 32, seconds, size))
        figures = {f"requests_s_{size}": out["requests"] / out["seconds"]}
        return figures | ({f"cpu_us_request_{size}": cpu / out["requests"]} if proxy else {})
    return measure


def one_connection(seconds: int):
    return lambda proxy, port: {"p50_us": wrk(port, 1, seconds, 1000)["p50_us"]}


def first_token(times: int):
    return lambda proxy, port: {"ttft_us": streams(port, 1, times, 2, 0)["ttft_p50_us"]}


def paced(seconds: float):
    """400 streams of 40 events a second."""
    def measure(proxy, port: int) -> dict:
        out, cpu = with_cpu(proxy, lambda: streams(port, 400, 400, int(40 * seconds), 25_000))
        figures = {"transit_p99_us": out["transit_p99_us"]}
        return figures | ({"cpu_us_event": cpu / out["events"]} if proxy else {})
    return measure


def saturated(events: int):
    """32 streams as fast as they go."""
    def measure(proxy, port: int) -> dict:
        out, cpu = with_cpu(proxy, lambda: streams(port, 32, 32, events, 0))
        return {"cpu_us_event_saturated": cpu / out["events"]} if proxy else {}
    return measure


def many(count: int, every_us: int, events: int, key: str):
    """So many streams at once; those that fail are counted."""
    def measure(proxy, port: int) -> dict:
        out, cpu = with_cpu(proxy, lambda: streams(port, count, count, events, every_us, may_fail=True))
        figures = {f"failed_{key}": out["failed"], f"transit_p50_us_{key}": out["transit_p50_us"], f"transit_p99_us_{key}": out["transit_p99_us"]}
        return figures | ({f"cpu_us_event_{key}": cpu / max(1, out["events"]), f"rss_mb_{key}": proxy.rss_kb() / 1024} if proxy else {})
    return measure


def memory(open_streams: int):
    """While streams of an event a second are open."""
    def measure(proxy, port: int) -> dict:
        if not proxy:
            return {}
        idle = proxy.rss_kb()
        client = start_streams(port, open_streams, open_streams, 5, 1_000_000)
        while not client.stdout.readline().startswith("open"):
            if client.poll() is not None:
                raise RuntimeError("no streams were opened")
        held = proxy.rss_kb()
        text, _ = client.communicate()
        out = json.loads(text.strip().splitlines()[-1])
        if out["failed"]:
            raise RuntimeError(f"streams failed: {out}")
        return {"rss_idle_mb": idle / 1024, "rss_open_mb": held / 1024, "kb_open_stream": (held - idle) / open_streams}
    return measure
