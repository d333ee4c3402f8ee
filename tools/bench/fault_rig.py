"""Four engines that can be broken, a router before them, and clients: what tools/bench/faults works with."""

import concurrent.futures
import http.client
import json
import pathlib
import signal
import subprocess
import sys
import threading
import time

import proxies

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_S = 5  # of a client

POLICY = """policy faults version 1
topology { zone here { region r } }
models { m }
class all { tenants * model m criticality critical residency any }
otherwise reject 403
limits { in_flight(engine) <= LIMIT }
retry ratio 20% burst 50 attempts 3 within 90% of deadline before first_byte other engine
    on connect, reset, timeout, 500, 502, 503 not on 400, 401, 403, 404, 413, 422
timeouts connect 500ms first_byte 1500ms gap 2s total 5s
queue wait 2s depth 256 retry_after from 1s to 10s
"""


def wait_for(what: str, condition, timeout_s: float = 30.0):
    end = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {timeout_s} s")
        time.sleep(0.01)
    return value


class Engine:
    def __init__(self, port: int):
        self.port = port
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, HERE / "fault_engine.py", str(self.port)])
        wait_for("an engine serves", self.alive)
        self.started_at = time.monotonic()

    def alive(self) -> bool:
        try:
            return bool(self.counts())
        except OSError:
            return False

    def _admin(self, body: bytes | None) -> dict:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        line.request("POST" if body else "GET", "/admin", body)
        out = json.loads(line.getresponse().read())
        line.close()
        return out

    def set(self, **what) -> dict:
        return self._admin(json.dumps(what).encode())

    def counts(self) -> dict:
        return self._admin(None)

    def kill(self, how: int = signal.SIGKILL) -> float:
        self.process.send_signal(how)
        if how == signal.SIGKILL:
            self.process.wait()
        return time.monotonic()


class Fleet(proxies.Proxy):
    """Signalbox with its whole control plane. Not `Proxy.__init__`: its processes are the launcher's."""

    def __init__(self, folder: pathlib.Path, engines: list[int], limit: int):
        self.name = "signalbox"
        self.folder = folder
        ports = proxies.free_ports(4)
        self.port = ports[0]
        rows = "".join(f'[[engine]]\nname = "e{i}"\ncluster = "c"\nrack = "r{i}"\nurl = "http://127.0.0.1:{p}"\nmodels = ["m"]\nprofile = "p"\n'
                       for i, p in enumerate(engines))
        others = "".join(f'[[process]]\nrole = "{role}"\nid = "{role}"\n' for role in ("policy-keeper", "health-monitor", "global-optimizer"))
        (folder / "fleet.policy").write_text(POLICY.replace("LIMIT", str(limit)))
        (folder / "fleet.toml").write_text(f"""fleet = "faults"
policy = "fleet.policy"
security = "none"
[intervals]
scrape = "250ms"
[[cluster]]
name = "c"
region = "r"
zone = "here"
[[profile]]
name = "p"
a = 0.02
b = 0.0001
c = 1e-6
kv_tokens = 1000000
max_batch = 256
{rows}
[[bus]]
id = "bus"
publish = "tcp://127.0.0.1:{ports[1]}"
subscribe = "tcp://127.0.0.1:{ports[2]}"
{others}
[[process]]
role = "engine-proxy"
id = "proxy"
cluster = "c"
[[process]]
role = "cluster-router"
id = "router"
cluster = "c"
listen = "127.0.0.1:{self.port}"
operator = "127.0.0.1:{ports[3]}"
""")
        self.command("up", "--detach", "--wait", "30")
        wait_for("signalbox serves", lambda: proxies.ask(self.port) == 200)

    def command(self, *words: str) -> None:
        done = subprocess.run([proxies.binary(), *words, "--config", self.folder / "fleet.toml", "--state-dir", self.folder / "state"],
                              capture_output=True, text=True, timeout=90)
        if done.returncode != 0:
            raise RuntimeError(f"signalbox {' '.join(words)}: {done.stdout}{done.stderr}")

    def close(self) -> None:
        self.command("down")


def haproxy(folder: pathlib.Path, engines: list[int], limit: int) -> proxies.Proxy:
    (port,) = proxies.free_ports(1)
    servers = "".join(f"  server e{i} 127.0.0.1:{p} maxconn {limit}\n" for i, p in enumerate(engines))
    (folder / "haproxy.cfg").write_text(f"""
global
  maxconn 4000
  nbthread 1
defaults
  mode http
  option http-no-delay
  option abortonclose
  timeout connect 500
  timeout client 5s
  timeout queue 2s
  timeout server 1500
  retries 2
  option redispatch 1
  retry-on conn-failure empty-response response-timeout 500 502 503
frontend in
  bind 127.0.0.1:{port}
  default_backend engines
backend engines
  balance leastconn
  option httpchk GET /health
  default-server check inter 500 fall 2 rise 1 observe layer7 error-limit 5 on-error mark-down
{servers}""")
    return proxies.Proxy("haproxy", port, [proxies.program("haproxy"), "-f", folder / "haproxy.cfg"], folder / "log")


def nginx(folder: pathlib.Path, engines: list[int], limit: int) -> proxies.Proxy:
    (port,) = proxies.free_ports(1)
    servers = "".join(f"server 127.0.0.1:{p} max_fails=3 fail_timeout=1s max_conns={limit};" for p in engines)
    (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/pid; error_log {folder}/error.log crit; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
  scgi_temp_path {folder}/s;
  upstream engines {{ zone engines 256k; least_conn; {servers} keepalive 16; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_connect_timeout 500ms; proxy_read_timeout 1500ms; proxy_next_upstream_tries 3;
      proxy_next_upstream error timeout http_500 http_502 http_503 non_idempotent;
    }}
  }}
}}
""")
    return proxies.Proxy("nginx", port, [proxies.program("nginx"), "-c", folder / "nginx.conf"], folder / "log")


def python_router(name: str, launch: list[str]):
    def start(folder: pathlib.Path, engines: list[int], limit: int) -> proxies.Proxy:
        more = ["--max-concurrent-requests", str(min(limit * len(engines), 20000)), "--queue-size", "256", "--request-timeout-secs", "2",
                "--health-check-interval-secs", "1", "--health-check-timeout-secs", "1"]
        return proxies.python_router(name, engines, folder, [*launch, *more])
    return start


STARTERS = {"haproxy": haproxy, "nginx": nginx, "signalbox": Fleet, "smg": python_router("smg", ["launch", "--log-level", "error"]),
            "sglang-router": python_router("sglang-router", ["launch", "--log-level", "error"]),
            "vllm-router": python_router("vllm-router", ["--log-level", "error"])}


class Answer:
    """What one client got."""

    def __init__(self, port: int, stream: bool = False):
        self.sent_at = time.monotonic()
        self.status: int | None = None
        self.text, self.error = "", ""
        self.retry_after: str | None = None
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        body = json.dumps({"model": "m", "max_tokens": 10, "stream": stream, "messages": [{"role": "user", "content": f"hello {self.sent_at}"}]})
        try:
            line.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            answer = line.getresponse()
            self.status, self.retry_after = answer.status, answer.getheader("retry-after")
            for piece in iter(lambda: answer.read1(65536), b""):
                self.text += piece.decode()
        except (OSError, http.client.HTTPException) as error:
            self.error = type(error).__name__
        finally:
            line.close()
        self.took_s = time.monotonic() - self.sent_at

    @property
    def good(self) -> bool:
        return self.status == 200 and not self.error


class Load:
    """Requests at a steady rate, each on a connection of its own, until stop()."""

    def __init__(self, port: int, per_s: float = 100):
        self.port, self.per_s = port, per_s
        self.pool = concurrent.futures.ThreadPoolExecutor(400)
        self.ended = threading.Event()
        self.sent: list[concurrent.futures.Future] = []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self.ended.wait(max(0.0, due - time.monotonic())):
            self.sent.append(self.pool.submit(Answer, self.port))
            due += 1 / self.per_s

    def stop(self) -> list[Answer]:
        self.ended.set()
        self.thread.join()
        answers = [future.result() for future in self.sent]
        self.pool.shutdown()
        return answers


def together(port: int, count: int) -> list[concurrent.futures.Future]:
    pool = concurrent.futures.ThreadPoolExecutor(count)
    return [pool.submit(Answer, port) for _ in range(count)]
