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


def wrk(port: int, connections: int, seconds: int, size: int, scheme: str = "http", once: bool = False) -> dict:
    """Requests one after the other on each connection; `once`: each on a new one."""
    environment = {**os.environ, "BYTES": str(size)} | ({"ONCE": "1"} if once else {})
    done = subprocess.run([proxies.program("wrk"), "-t1", f"-c{connections}", f"-d{seconds}s", "-s", HERE / "requests.lua", f"{scheme}://127.0.0.1:{port}"],
                          capture_output=True, text=True, check=True, env=environment)
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


def streams(port: int, *args: int) -> dict:
    text, _ = start_streams(port, *args).communicate()
    out = json.loads(text.strip().splitlines()[-1])
    if out["failed"]:
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


def encrypted(seconds: int):
    """For routers that speak TLS with clients."""
    def measure(proxy, port: int) -> dict:
        out, cpu = with_cpu(proxy, lambda: wrk(port, 32, seconds, 1000, "https"))
        once, cpu_once = with_cpu(proxy, lambda: wrk(port, 32, seconds, 1000, "https", True))
        return {"cpu_us_request_tls": cpu / out["requests"], "cpu_us_connection_tls": cpu_once / once["requests"]}
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


def open_streams(proxy: proxies.Proxy | None, port: int, *args: int) -> tuple[dict, float, float]:
    """The streams' figures, and the router's memory in kB before them and while all of them were open."""
    idle = proxy.rss_kb() if proxy else 0
    client = start_streams(port, *args)
    while not client.stdout.readline().startswith("open"):
        if client.poll() is not None:
            raise RuntimeError("the streams were never all open")
    held = proxy.rss_kb() if proxy else 0
    text, _ = client.communicate()
    return json.loads(text.strip().splitlines()[-1]), idle, held


def many(count: int, every_us: int, events: int, key: str):
    """So many streams at once; those that fail are counted."""
    def measure(proxy, port: int) -> dict:
        (out, idle, held), cpu = with_cpu(proxy, lambda: open_streams(proxy, port, count, count, events, every_us))
        figures = {f"failed_{key}": out["failed"], f"transit_p50_us_{key}": out["transit_p50_us"], f"transit_p99_us_{key}": out["transit_p99_us"]}
        return figures | ({f"cpu_us_event_{key}": cpu / max(1, out["events"]), f"kb_open_stream_{key}": (held - idle) / count} if proxy else {})
    return measure


def memory(count: int):
    """While streams of an event a second are open."""
    def measure(proxy, port: int) -> dict:
        if not proxy:
            return {}
        out, idle, held = open_streams(proxy, port, count, count, 5, 1_000_000)
        if out["failed"]:
            raise RuntimeError(f"streams failed: {out}")
        return {"rss_idle_mb": idle / 1024, "rss_open_mb": held / 1024, "kb_open_stream": (held - idle) / count}
    return measure
