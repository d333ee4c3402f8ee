"""The faults. A case is given the router's port and its four engines, and answers what its clients got and whether that is what Signalbox
is required to do. Its docstring is its row's name."""

import http.client
import json
import signal
import socket
import statistics
import time

from fault_rig import Answer, Engine, Load, together, wait_for

REQUIRED = ("nothing lost before the first byte when an engine is killed or answers 500, at most one request lost to a hung engine, back within "
            "2 s of its return, leaving told within 100 ms, all dead answered with 503 in milliseconds, a limit of 4 that admits 4, no refusal "
            "after recovery, and an error event, never a clean end, when an engine dies mid-stream")


def lost(answers: list[Answer]) -> list[Answer]:
    return [a for a in answers if not a.good]


def share(part: list, whole: list) -> str:
    return f"{len(part)} of {len(whole)}" if len(part) < 10 else f"{100 * len(part) / len(whole):.1f} %"


def killed(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """kill -9 of an engine at work: lost of its requests."""
    for engine in engines:
        engine.set(latency_s=1.0)
    answers = together(port, 48)
    wait_for("requests are at the engines", lambda: sum(e.counts()["running"] for e in engines) >= 40, 3)
    victim = max(engines, key=lambda e: e.counts()["running"])
    there = victim.counts()["running"]
    victim.kill()
    bad = lost([a.result() for a in answers])
    return f"{len(bad)} of {there}", not bad


def returns(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """back after the engine returns, s."""
    load = Load(port)
    try:
        time.sleep(1)
        engines[0].kill()
        time.sleep(4)
        engines[0].start()
        back = wait_for("it gets requests again", lambda: engines[0].counts()["first_at"], 60) - engines[0].started_at
    finally:
        load.stop()
    return f"{back:.1f}", back <= 2


def hung(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """hung for 8 s, its health still fine: lost of 100 requests/s."""
    load = Load(port)
    time.sleep(2)
    engines[0].set(hang=True)
    time.sleep(8)
    engines[0].set(hang=False)
    answers = load.stop()
    return share(lost(answers), answers), len(lost(answers)) <= 1


def stopped(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """hung for 8 s with its health: lost of 100 requests/s."""
    load = Load(port)
    time.sleep(2)
    engines[0].kill(signal.SIGSTOP)
    time.sleep(8)
    engines[0].kill(signal.SIGCONT)
    answers = load.stop()
    return share(lost(answers), answers), len(lost(answers)) <= 1


def _answers_500(port: int, engines: list[Engine], ratio: float, broken: list[Engine]) -> list[Answer]:
    for engine in broken:
        engine.set(error_ratio=ratio)
    load = Load(port, 150)
    time.sleep(10)
    return load.stop()


def some_500(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """one engine 20 % 500s: errors of 1,500."""
    answers = _answers_500(port, engines, 0.2, engines[:1])
    return share(lost(answers), answers), not lost(answers)


def only_500(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """one engine 100 % 500s: errors of 1,500."""
    answers = _answers_500(port, engines, 1.0, engines[:1])
    return share(lost(answers), answers), not lost(answers)


def all_some_500(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """all engines 20 % 500s: errors of 1,500."""
    answers = _answers_500(port, engines, 0.2, engines)
    return share(lost(answers), answers), len(lost(answers)) < 0.2 * len(answers)


def dies_mid_stream(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """engine dies mid-stream: the client sees."""
    for engine in engines:
        engine.set(die=True)
    answer = Answer(port, stream=True)
    event = '"error"' in answer.text
    if answer.error:
        return ("error event, then cut" if event else "cut"), False
    return ("error event" if event else "a clean end"), event


def _told(port: int, engines: list[Engine], stream: bool) -> float | None:
    """Seconds until an engine knew that the client left, or None."""
    for engine in engines:
        engine.set(latency_s=20.0 if not stream else 0.01, events=400, gap_s=0.05)
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hello"}]})
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    line.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    wait_for("an engine works", lambda: sum(e.counts()["running"] for e in engines) == 1, 3)
    if stream:
        line.getresponse().read(100)
    line.sock.shutdown(socket.SHUT_RDWR)
    line.close()
    left = time.monotonic()
    try:
        told = wait_for("it is told", lambda: max(e.counts()["told_at"] for e in engines), 1)
    except RuntimeError:
        return None
    return max(0.0, told - left)


def client_leaves(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """client gone: engine told, mid-stream / before the first byte, ms."""
    times = [_told(port, engines, True), _told(port, engines, False)]
    return " / ".join("never" if t is None else f"{1000 * t:.0f}" for t in times), all(t is not None and t <= 0.1 for t in times)


def all_503(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """all engines 503 with Retry-After: status, tries, Retry-After."""
    for engine in engines:
        engine.set(status=503)
    answer = Answer(port)
    tries = sum(e.counts()["requests"] for e in engines)
    return f"{answer.status}, {tries}, {answer.retry_after or 'none'}", answer.status in (429, 503) and tries <= 3 and bool(answer.retry_after)


def all_dead(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """all dead: status, ms (median of 20)."""
    for engine in engines:
        engine.kill()
    time.sleep(3)
    answers = [Answer(port) for _ in range(20)]
    took = 1000 * statistics.median(a.took_s for a in answers)
    seen = sorted({str(a.status or a.error) for a in answers})
    return f"{' or '.join(seen)}, {took:.1f}", seen == ["503"] and took < 20


def limit_of_four(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """a limit of 4 an engine, 64 at once: most at one engine; lost."""
    for engine in engines:
        engine.set(latency_s=0.2)
    answers = [a.result() for a in together(port, 64)]
    most = max(e.counts()["most_running"] for e in engines)
    return f"{most}; {share(lost(answers), answers)}", most == 4 and not lost(answers)


limit_of_four.limit = 4


def overloaded(port: int, engines: list[Engine]) -> tuple[str, bool]:
    """all engines answer 503 for 5 s: refused later than 1 s after their recovery."""
    load = Load(port)
    time.sleep(1)
    for engine in engines:
        engine.set(status=503)
    time.sleep(5)
    for engine in engines:
        engine.set(status=0)
    recovered = time.monotonic()
    time.sleep(8)
    later = [a for a in load.stop() if a.sent_at > recovered + 1]
    last = max((a.sent_at for a in lost(later)), default=0.0)
    return share(lost(later), later) + (f", the last {last - recovered:.1f} s after" if last else ""), not lost(later)


CASES = {case.__name__: case for case in (killed, returns, hung, stopped, some_500, only_500, all_some_500, dies_mid_stream, client_leaves, all_503,
                                          all_dead, limit_of_four, overloaded)}
