"""What is said by those who may not say it, and those who listen badly."""

import itertools
import multiprocessing
import random
import socket
import threading
import time

from faults import client_load, failed
from fleet import resident_bytes
from member import KINDS, Member, incarnation_after, keys_of, place_of, shout, stranger

FORWARDERS = ["bus-1", "bus-2"]
FORGED = 1 << 41  # sequences of forgeries start here: no honest process gets that far


def captured(fleet, count: int) -> list[list[bytes]]:
    """Messages as they pass, from a member's own ear."""
    listener = Member(place_of(fleet, FORWARDERS[0]), keys_of(fleet, "tool"))
    ear = listener.listen("", rcvtimeo=30_000)
    frames = [ear.recv_multipart() for _ in range(count)]
    listener.close()
    return [f[:4] for f in frames]


def forgeries(member: Member, honest: list[list[bytes]], rng: random.Random):
    """Endless messages that must not get anywhere, whoever sends them."""
    numbers = itertools.count(FORGED)
    snapshot = {1: [[9_999, "optimizer-1"], 1], 2: "east", 17: "forged"}
    while True:
        topic, envelope, body, proof = rng.choice(honest)
        flipped = bytearray(body)
        if flipped:
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        yield [topic, envelope, body, proof]  # replayed
        yield [topic, envelope, body[:rng.randrange(len(body) + 1)], proof]  # truncated
        yield [topic, envelope, bytes(flipped), proof]
        yield [topic[:-1], envelope, body, proof]
        yield [topic, envelope]
        yield [topic, envelope, body, proof, b"12345678", b"more"]
        yield [rng.randbytes(rng.randrange(64)) for _ in range(rng.randrange(1, 6))]
        yield [topic, envelope, b"\xdd\x7f\xff\xff\xff", proof]
        yield [topic, envelope, b"\x91" * 3000, proof]
        yield [topic, envelope, rng.randbytes(5000), proof]  # longer than most kinds may be
        yield member.frames("routing_snapshot", "snapshot/east/optimizer-1/", snapshot, "optimizer-1", next(numbers))
        yield member.frames("routing_snapshot", f"snapshot/east/{member.keys.id}/", snapshot, sequence=next(numbers))
        yield member.frames("health_verdict", "verdict/e1/monitor/", {1: "e1", 3: 3}, "monitor", next(numbers))
        yield member.frames("policy", "policy/keeper/", {1: "open", 2: 99, 4: "policy open version 99"}, "keeper", next(numbers))
        yield member.frames("order", "order/all/", {1: "all", 2: "x", 3: 4}, "tool", next(numbers))
        yield member.frames("engine_signal", "signal/east/e1/", {1: "east", 2: "e1"}, sequence=next(numbers))


def heard_twice_or_forged(rig) -> list:
    seen, wrong = set(), []
    for kind in KINDS:
        for h in rig.bus.of(kind):
            key = (h.topic, h.source, h.life, h.sequence)
            if h.sequence >= FORGED or key in seen:
                wrong.append(key)
            seen.add(key)
    return wrong


def garbage(fleet, rng: random.Random, count: int) -> None:
    """Bytes that are no ZeroMQ, on both of a forwarder's ports."""
    places = [place_of(fleet, name) for name in FORWARDERS]
    for n in range(count):
        place = places[n % 2]
        port = int((place.publish, place.subscribe)[n // 2 % 2].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            greeting = bytes.fromhex("ff00000000000000017f") if n % 3 else b""
            line.sendall(greeting + rng.randbytes(rng.randrange(1, 2000)))


def test_forged_messages(rig, figures, size, seed):
    """Forged, replayed, truncated, oversized, random messages, from a stranger and from a member out of its topics."""
    rng, each = random.Random(seed), size("forged_messages") // 4
    pids = {name: row["pid"] for name, row in rig.processes().items()}
    honest = captured(rig.fleet, 200)
    honest = [f for f in honest if b"beat/tool" not in f[0]]
    sent = 0
    for forwarder, keys in itertools.product(FORWARDERS, (stranger(rig.fleet), keys_of(rig.fleet, "proxy-west"))):
        member = rig.member(keys, forwarder)
        assert member.connects(30 if keys.id != "stranger" else 0.5) == (keys.id != "stranger")
        for frames in itertools.islice(forgeries(member, honest, rng), each):
            member.out.send_multipart(frames)
            sent += 1
            if sent % 500 == 0:
                time.sleep(0.02)  # the queue of what is not yet on the wire is finite
        time.sleep(0.3)
    shouter = multiprocessing.get_context("spawn").Process(
        target=shout, args=(place_of(rig.fleet, FORWARDERS[0]), keys_of(rig.fleet, "proxy-west"), 17 << 20))
    shouter.start()
    garbage(rig.fleet, rng, 40)
    shouter.join(timeout=60)
    last = time.monotonic()
    rig.bus.adoption("plans go on", lambda v: True, last, 60)
    assert {name: row["pid"] for name, row in rig.processes().items()} == pids, "nobody died"
    figures("messages sent", sent)
    figures("accepted", len(heard_twice_or_forged(rig)), most=0, exact=True)
    rig.bus.first("a forwarder saw the member's", "beat", lambda h: h.source in FORWARDERS and h.body["messages_refused"] > each / 2, last, 30)


def test_stalled_and_passing_subscribers(rig, figures, size, seed):
    """Stalled subscriber; subscribers coming and going."""
    pids = [rig.pid(name) for name in FORWARDERS]
    before = [resident_bytes(pid) for pid in pids]
    members = [rig.member(keys_of(rig.fleet, "tool"), name) for name in FORWARDERS]
    stalled = [m.listen("", rcvhwm=1, rcvbuf=4096) for m in members]
    for member in members:
        member.wait_joined()
    peak, stop = list(before), threading.Event()

    def flood():
        body = {1: "flood", 2: False, 3: 0, 4: "x" * 1000, 5: "y" * 250, 6: ""}
        while not stop.is_set():
            for member in members:
                member.say("alert", f"alert/flood/{member.keys.id}/", body)
            time.sleep(0.002)
    thread = threading.Thread(target=flood)
    thread.start()
    began = time.monotonic()
    passing = 0
    try:
        while time.monotonic() < began + size("stalled_subscriber_s") or passing < size("passing_subscribers"):
            for n, member in enumerate(members):
                ear = member.listen("beat/", f"@p{passing}/beat/", rcvtimeo=30_000)
                ear.recv_multipart()
                ear.close()
                passing += 1
                peak[n] = max(peak[n], resident_bytes(pids[n]))
    finally:
        stop.set()
        thread.join()
        for ear, member in zip(stalled, members):
            ear.close()
            member.close()
    rig.bus.adoption("plans go on", lambda v: True, time.monotonic(), 60)
    figures("subscribers that came and went", passing)
    figures("a forwarder's memory grew by", max(p - b for p, b in zip(peak, before)) / 2**20, "MiB", most=32)


def test_monitor_lies(rig, figures, size, seed):
    """Monitor killed; monitor that lies."""
    load = client_load(rig, 30, seed)
    rig.kill_and_hold(["monitor-2"])
    liar = rig.member(keys_of(rig.fleet, "monitor-2"))
    liar.counter = incarnation_after(rig.fleet, "monitor-2")
    liar.wait_joined()
    victims = rig.bus.engines[::2]

    def lie(seconds: float) -> float:
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            for engine in victims:
                liar.say("health_verdict", f"verdict/{engine}/monitor-2/", {1: engine, 3: 3, 4: 0.0, 6: 3, 7: "a lie"})
            time.sleep(0.2)
        return began

    def plans(since: float) -> list:
        """Those of that time; one at least is from after the lies."""
        rig.bus.first("a plan", "routing_snapshot", lambda h: True, time.monotonic(), 30)
        return rig.bus.of("routing_snapshot", since)
    # The least share of the lied-about engines in the plans of that time, over those of their models.
    beside = min(sum(sum(rig.bus.weight_rows(s, e)) for e in victims) for s in plans(lie(3) + 1))
    rig.kill_and_hold(["monitor"])
    alone = plans(lie(size("lying_monitor_s")) + size("lying_monitor_s") - 2)
    answers = load.stop()
    liar.close()
    rig.bring_back(["monitor", "monitor-2"])
    figures("requests", len(answers))
    figures("failed requests", len(failed(answers)), most=0, exact=True)
    assert beside > 0.2, "while an honest monitor vouches for them the engines stay in the plan"
    figures("engines that a lying monitor alone can take out of the plan",
            max(sum(sum(rig.bus.weight_rows(s, e)) == 0 for e in rig.bus.engines) for s in alone),
            most=2, exact=True)  # of each model's three engines one
