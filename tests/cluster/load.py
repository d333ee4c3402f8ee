"""Requests to a router and what became of each: plain HTTP, so that every byte's arrival is seen."""

import dataclasses
import http.client
import json
import random
import ssl
import threading
import time
import urllib.parse


@dataclasses.dataclass
class Answer:
    status: int = 0                 # 0: no answer; `error` says why
    error: str = ""
    engine: str = ""
    model: str = ""
    decision: str = ""
    snapshot: str = ""
    reason: str = ""
    attempts: int = 0
    began: float = 0.0              # time.monotonic()
    first_byte_s: float = 0.0
    total_s: float = 0.0
    chunk_times: list[float] = dataclasses.field(default_factory=list)
    text: str = ""
    complete: bool = False          # the stream ended with [DONE], or the JSON is whole

    @property
    def good(self) -> bool:
        return self.status == 200 and self.complete


def bad(answers: list[Answer]) -> list[Answer]:
    return [a for a in answers if not a.good]


def chat(url: str, model: str, prompt: str, max_tokens: int = 16, stream: bool = False, timeout_s: float = 60,
         headers: dict | None = None, context: ssl.SSLContext | None = None) -> Answer:
    """One chat completion. Never raises: an exception becomes `error`. `context`: whom an https URL's host must be."""
    answer = Answer(began=time.monotonic(), model=model)
    address = urllib.parse.urlsplit(url)
    connection = (http.client.HTTPSConnection(address.hostname, address.port, timeout=timeout_s, context=context)
                  if address.scheme == "https" else
                  http.client.HTTPConnection(address.hostname, address.port, timeout=timeout_s))
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens, "stream": stream}
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body),
                           {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        answer.status = response.status
        answer.engine = response.getheader("x-signalbox-engine") or ""
        answer.decision = response.getheader("x-signalbox-decision") or ""
        answer.snapshot = response.getheader("x-signalbox-snapshot") or ""
        answer.reason = response.getheader("x-signalbox-reason") or ""
        answer.attempts = int(response.getheader("x-signalbox-attempts") or 0)
        read_body(response, answer, stream)
    except (OSError, http.client.HTTPException, ValueError) as error:
        answer.error = f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    answer.total_s = time.monotonic() - answer.began
    return answer


def read_body(response: http.client.HTTPResponse, answer: Answer, stream: bool) -> None:
    if not stream or answer.status != 200:
        answer.text = response.read().decode(errors="replace")
        answer.first_byte_s = time.monotonic() - answer.began
        answer.complete = bool(json.loads(answer.text)) if answer.text else False
        return
    while line := response.readline():
        if line.startswith(b"data:"):
            answer.chunk_times.append(time.monotonic() - answer.began)
            answer.first_byte_s = answer.first_byte_s or answer.chunk_times[-1]
            answer.text += line.decode(errors="replace")
            answer.complete = line.strip() == b"data: [DONE]"


class Load:
    """Requests at a rate (Poisson, seeded) from a background thread until stop(); each in a thread of its own."""

    def __init__(self, send, rate_per_s: float, seed: int = 1):
        self.send, self.rate, self.answers = send, rate_per_s, []
        self._random, self._stop, self._lock = random.Random(seed), threading.Event(), threading.Lock()
        self._threads: list[threading.Thread] = []
        self._pacer = threading.Thread(target=self._pace, daemon=True)
        self._pacer.start()

    def _pace(self) -> None:
        number, due = 0, time.monotonic()
        while not self._stop.is_set():
            due += self._random.expovariate(self.rate)
            if self._stop.wait(max(0.0, due - time.monotonic())):
                return
            thread = threading.Thread(target=self._one, args=(number,), daemon=True)
            thread.start()
            self._threads.append(thread)
            number += 1

    def _one(self, number: int) -> None:
        answer = self.send(number)
        with self._lock:
            self.answers.append(answer)

    def so_far(self) -> list[Answer]:
        with self._lock:
            return list(self.answers)

    def stop(self) -> list[Answer]:
        """Sends no more, waits for what is open, returns every answer."""
        self._stop.set()
        self._pacer.join()
        for thread in self._threads:
            thread.join()
        return self.answers


class Stream:
    """A stream under way, read event by event."""

    def __init__(self, url: str, body: dict):
        address = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        self.connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        self.engine = self.answer.getheader("x-signalbox-engine")
        self.decision = self.answer.getheader("x-signalbox-decision")
        self.events, self.comments = [], []

    def read(self, until: int | None = None) -> "Stream":
        while until is None or len(self.events) < until:
            line = self.answer.readline().decode()
            if not line:
                break
            if line.startswith(":"):
                self.comments.append(line.strip())
            if line.startswith("data: "):
                self.events.append(line[6:].strip())
        return self

    def text(self) -> str:
        parsed = [json.loads(event) for event in self.events if event != "[DONE]"]
        return "".join(choice["delta"].get("content") or "" for event in parsed for choice in event["choices"])

    def usage(self) -> dict:
        return next(u for event in reversed(self.events) if event != "[DONE]" and (u := json.loads(event).get("usage")))


def unlike(number: int, words: int = 40) -> str:
    """A prompt that shares no prefix with another number's."""
    rng = random.Random(number)
    return " ".join(f"{rng.getrandbits(32):08x}" for _ in range(words))
