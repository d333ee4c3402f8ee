"""A collector of OpenTelemetry traces: takes OTLP/HTTP in JSON and reads it strictly, by the protocol's own schema."""

import base64
import http.server
import json
import threading

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def base64_ids(value):
    """OTLP writes ids in hexadecimal where protobuf's JSON has base64."""
    if isinstance(value, list):
        return [base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: base64.b64encode(bytes.fromhex(item)).decode() if key in ("traceId", "spanId", "parentSpanId") else base64_ids(item)
            for key, item in value.items()}


def plain(value):
    """An AnyValue as Python has it."""
    kind = value.WhichOneof("value")
    return [plain(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


class Collector:
    """`answer`: the status that it answers; None: it takes the connection and says nothing."""

    def __init__(self):
        self.answer: int | None = 200
        self.lock = threading.Lock()
        self.fields: list[dict] = []   # of each request
        self.spans: list = []          # (resource's attributes, span)
        self.mistakes: list[str] = []
        self.released = threading.Event()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if collector.answer is None:
                    collector.released.wait(60)
                    self.close_connection = True
                    return
                if collector.answer == 200:
                    collector.take(self.path, dict(self.headers), body)
                self.send_response(collector.answer)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1/traces"

    def take(self, path: str, fields: dict, body: bytes) -> None:
        try:
            assert path == "/v1/traces" and fields["Content-Type"] == "application/json"
            request = json_format.ParseDict(base64_ids(json.loads(body)), ExportTraceServiceRequest())
        except (AssertionError, ValueError, json_format.ParseError) as error:
            self.mistakes.append(f"{error}: {body[:2000]!r}")
            return
        with self.lock:
            self.fields.append(fields)
            for group in request.resource_spans:
                who = {a.key: plain(a.value) for a in group.resource.attributes}
                self.spans += [(who, span) for scope in group.scope_spans for span in scope.spans]

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def trace(self, trace_id: str) -> list:
        """Its spans, the request's first."""
        with self.lock:
            return sorted((s for _, s in self.spans if s.trace_id.hex() == trace_id), key=lambda s: (s.kind, s.start_time_unix_nano))

    def of_decision(self, decision: str) -> list:
        with self.lock:
            found = [s.trace_id.hex() for _, s in self.spans if facts(s).get("signalbox.decision") == decision]
        return self.trace(found[0]) if found else []


def facts(span) -> dict:
    return {a.key: plain(a.value) for a in span.attributes}
