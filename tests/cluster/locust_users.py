"""Users of a chat service for locust: some want whole answers, most read a stream to its end. Not a test itself: test_load_tool.py runs it."""

import json
import random
import time

from locust import HttpUser, constant, task


class Person(HttpUser):
    wait_time = constant(0)

    def body(self, stream: bool) -> dict:
        words = " ".join(random.choice("which way does the train go now".split()) for _ in range(60))
        return {"model": random.choice(["m-large", "m-small"]), "messages": [{"role": "user", "content": words}], "max_tokens": 12, "stream": stream,
                **({"stream_options": {"include_usage": True}} if stream else {})}

    @task(1)
    def whole(self):
        with self.client.post("/v1/chat/completions", json=self.body(False), name="whole", catch_response=True) as answer:
            if answer.status_code != 200 or not answer.json()["choices"][0]["message"]["content"]:
                answer.failure(f"{answer.status_code}: {answer.text[:200]}")

    @task(3)
    def stream(self):
        began = time.perf_counter()
        first = tokens = usage = 0
        with self.client.post("/v1/chat/completions", json=self.body(True), name="stream", stream=True, catch_response=True) as answer:
            last = ""
            for line in answer.iter_lines():
                if not line.startswith(b"data: "):
                    continue
                first = first or time.perf_counter()
                last = line[6:].decode()
                if last != "[DONE]":
                    event = json.loads(last)
                    tokens += sum(bool(choice["delta"].get("content")) for choice in event["choices"])
                    usage = (event.get("usage") or {}).get("completion_tokens", usage)
            if answer.status_code != 200 or last != "[DONE]" or tokens != usage:
                answer.failure(f"{answer.status_code}, {tokens} tokens of {usage}, last: {last[:200]}")
        if first:
            self.environment.events.request.fire(request_type="TTFT", name="first token", response_time=1000 * (first - began), response_length=0,
                                                 exception=None, context={}, response=None)
