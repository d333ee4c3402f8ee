"""An engine that misbehaves when told to, for tools/bench/faults: fault_engine.py PORT

POST /admin with JSON sets: latency_s, hang (no answer to inference), status (of every answer), error_ratio (of 500s), die (streams are
reset half way), events and gap_s (of a stream). GET /admin tells what was counted since the last POST.
"""

import asyncio
import json
import random
import sys
import time

METRICS = """vllm:num_requests_running {running}
vllm:num_requests_waiting 0
vllm:kv_cache_usage_perc 0.1
"""


look_s = 0.005  # how often an engine looks whether its client has left


class Engine:
    def __init__(self):
        self.set = {"latency_s": 0.02, "hang": False, "status": 0, "error_ratio": 0.0, "die": False, "events": 10, "gap_s": 0.02}
        self.requests = self.running = self.most_running = 0
        self.first_at = self.told_at = 0.0  # time.monotonic() of the first request, and when a client's leaving was noticed

    def admin(self, body: bytes) -> bytes:
        if body:
            self.set |= json.loads(body)
            self.requests = self.most_running = 0
            self.first_at = self.told_at = 0.0
        return json.dumps({"requests": self.requests, "running": self.running, "most_running": self.most_running, "first_at": self.first_at,
                           "told_at": self.told_at}).encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                body = await self.body(head, reader)
                if " " not in head:
                    break  # the rest of an attempt at HTTP/2
                path = head.split(" ")[1]
                if path == "/admin":
                    await self.answer(writer, 200, self.admin(body))
                elif not head.startswith("post"):
                    await self.page(writer, path)
                else:
                    await self.infer(reader, writer, body)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    @staticmethod
    async def body(head: str, reader: asyncio.StreamReader) -> bytes:
        out = b""
        for line in head.split("\r\n"):
            if line.startswith("content-length:"):
                return await reader.readexactly(int(line.split(":")[1]))
        while "transfer-encoding: chunked" in head:
            size = int((await reader.readline()).split(b";")[0], 16)
            out += await reader.readexactly(size)
            await reader.readline()
            if size == 0:
                break
        return out

    async def page(self, writer: asyncio.StreamWriter, path: str) -> None:
        if path == "/metrics":
            return await self.answer(writer, 200, METRICS.format(running=self.running).encode(), "text/plain")
        about = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "bench", "max_model_len": 32768}],
                 "model_path": "m", "served_model_name": "m", "is_generation": True, "max_total_num_tokens": 1000000}
        await self.answer(writer, 200, json.dumps(about).encode())

    async def answer(self, writer, status: int, body: bytes, kind: str = "application/json", more: str = "") -> None:
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    async def infer(self, reader, writer, body: bytes) -> None:
        self.requests += 1
        self.first_at = self.first_at or time.monotonic()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        work = asyncio.ensure_future(self.work(writer, b'"stream": true' in body or b'"stream":true' in body))
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=look_s)
                if (reader.at_eof() or reader.exception()) and not work.done():
                    self.told_at = self.told_at or time.monotonic()
                    raise ConnectionError
            await work
        finally:
            self.running -= 1
            work.cancel()

    async def work(self, writer, stream: bool) -> None:
        if self.set["status"]:
            return await self.answer(writer, self.set["status"], b'{"error":{"message":"overloaded"}}', more="retry-after: 3\r\n")
        if random.random() < self.set["error_ratio"]:
            return await self.answer(writer, 500, b'{"error":{"message":"injected"}}')
        await asyncio.sleep(1e6 if self.set["hang"] else self.set["latency_s"])
        if not stream:
            text = {"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 400, "completion_tokens": 60, "total_tokens": 460}}
            return await self.answer(writer, 200, json.dumps(text).encode())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for i in range(self.set["events"]):
            if self.set["die"] and i == self.set["events"] // 2:
                writer.transport.abort()
                raise ConnectionError
            await self.chunk(writer, 'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",'
                             '"choices":[{"index":0,"delta":{"content":"t"},"finish_reason":null}]}\n\n')
            await asyncio.sleep(self.set["gap_s"])
        await self.chunk(writer, "data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    @staticmethod
    async def chunk(writer, text: str) -> None:
        writer.write(f"{len(text):x}\r\n{text}\r\n".encode())
        await writer.drain()


async def main() -> None:
    server = await asyncio.start_server(Engine().serve, "127.0.0.1", int(sys.argv[1]), backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
