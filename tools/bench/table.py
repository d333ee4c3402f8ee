"""The comparison as Markdown."""

import platform
import statistics

ROWS = [  # key, what it is, digits, whether it is told over direct
    ("cpu_us_request_1000", "CPU us a request, 1 KB, 32 connections", 1, False),
    ("cpu_us_request_8000", "the same, 8 KB", 1, False),
    ("p50_us", "p50 over direct, one connection, us", 0, True),
    ("ttft_us", "TTFT p50 over direct, one stream at a time, us", 0, True),
    ("cpu_us_event", "CPU us an event, 16,000 events/s over 400 streams", 2, False),
    ("cpu_us_event_saturated", "CPU us an event, 32 streams unpaced", 2, False),
    ("transit_p99_us", "transit of an event, p99, us", 0, False),
    ("rss_idle_mb", "RSS MB, idle", 1, False),
    ("rss_open_mb", "RSS MB, 1,000 streams open", 1, False),
    ("kb_open_stream", "kB an open stream", 1, False),
    ("cpu_us_request_tls", "TLS: CPU us a request, 1 KB, 32 connections", 1, False),
    ("cpu_us_connection_tls", "TLS: the same with a new connection for each", 0, False),
    ("failed_9000", "failed of 9,000 streams, 1 event/s", 0, False),
    ("transit_p50_us_9000", "transit of their events, p50, us", 0, False),
    ("transit_p99_us_9000", "the same, p99, us", 0, False),
    ("cpu_us_event_9000", "CPU us an event, their start included", 1, False),
    ("kb_open_stream_9000", "kB an open stream, 9,000 open", 1, False),
    ("failed_1000", "failed of 1,000 streams, 20 events/s", 0, False),
    ("transit_p50_us_1000", "transit of their events, p50, us", 0, False),
    ("transit_p99_us_1000", "the same, p99, us", 0, False),
    ("cpu_us_event_1000", "CPU us an event", 1, False),
    ("requests_s_1000", "requests/s, 1 KB, all on shared cores", 0, False),
]


def value(figures: dict, name: str, key: str, over_direct: bool) -> float | None:
    mine = figures.get(name, {}).get(key)
    if mine is None or not over_direct or name == "direct":
        return mine
    return mine - figures["direct"][key]


def median(rounds: list, name: str, key: str, over_direct: bool) -> float | None:
    values = [v for figures in rounds if (v := value(figures, name, key, over_direct)) is not None]
    return statistics.median(values) if values else None


def ratio(rounds: list, name: str, key: str, over_direct: bool) -> float | None:
    """Median over the rounds of this router's figure by HAProxy's of the same round."""
    values = []
    for figures in rounds:
        mine, theirs = (value(figures, who, key, over_direct) for who in (name, "haproxy"))
        if mine is not None and theirs:
            values.append(mine / theirs)
    return statistics.median(values) if values else None


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def text_of(number: float | None, digits: int) -> str:
    return "-" if number is None else f"{number:,.{digits}f}"


def tables(rounds: list[dict[str, dict[str, float]]], starts: dict[str, float]) -> str:
    names = list(dict.fromkeys(name for figures in rounds for name in figures))
    head = [line(["", *names]), line(["---", *["---:"] * len(names)])]
    out = head[:]
    for key, what, digits, over in ROWS:
        cells = [median(rounds, name, key, over) for name in names]
        if all(cell is None for cell in cells):
            continue  # not measured in this run
        texts = [text_of(cell, digits) for cell in cells]
        if over and cells[0] is not None:
            texts[0] = f"({texts[0]})"
        out.append(line([what, *texts]))
    out.append(line(["start to the first 200, s", *(text_of(starts.get(name), 3) for name in names)]))
    if "haproxy" not in names:
        return "\n".join(out)
    out += ["", "As a share of HAProxy's figure in the same round (median of the rounds' ratios):", "", *head]
    for key, what, _, over in ROWS:
        if all(ratio(rounds, name, key, over) is None for name in names):
            continue
        out.append(line([what, *("-" if name == "direct" else text_of(ratio(rounds, name, key, over), 2) for name in names)]))
    return "\n".join(out)


def page(text: str, rounds: int, cores: int | None) -> str:
    return f"""# Routers side by side

<!-- As tools/bench/compare --report writes it. -->

`tools/bench/compare` on {cores} shared cores ({platform.system()} {platform.release()}, Debian's HAProxy and nginx, the others from PyPI at the versions of
`tools/bench/requirements.txt`): medians of {rounds} interleaved rounds. Loopback, plain HTTP, the same four fast engines, keep-alive on both sides, one
thread for the traffic of each router; HAProxy with `option http-no-delay`; the Python packages' routers with `round_robin`. Signalbox makes its full
decision, with the cache index, metrics and decision records on, and starts with the snapshot on its disk (the control plane is away); CPU is that of the
whole process, its actors included. "TLS" is towards clients (TLS 1.3, ECDSA P-256), in a process of its own. Where "over direct" is said, the figure of the
engines without a router (in brackets) is taken off. Trust CPU figures most, then ratios, then times.

{text}
"""
