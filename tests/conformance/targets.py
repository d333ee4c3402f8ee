"""What the suite can be pointed at: a cluster-router of its own (the default), nginx, HAProxy, or a base URL.

Whatever it is: the model "m" is served by the mock engines, "lonely" by none, "slow" by the first one alone; heads must
arrive within 2 s, an engine's first byte within 3 s, the next one within 2 s, and bodies may have 64 MiB.
"""

import contextlib
import hashlib
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))

from fleet import find_binary  # noqa: E402

POLICY = """policy conformance version 1
topology { zone here { region r } }
models { m  slow  lonely }
class all { tenants * model m criticality critical residency any }
class one { tenants * model slow criticality standard residency any }
class none { tenants * model lonely criticality standard residency any }
otherwise reject 403
limits { in_flight(engine) <= 256 }
retry ratio 100% burst 1000 attempts 2 before first_byte other engine
    on connect, reset, timeout, 502, 503 not on 400, 401, 403, 404, 413, 422
penalty connect 0.9 reset 0.9 timeout 0.9 status 0.9 broken 0.9 half_life 100ms floor 0.5
timeouts connect 3s first_byte 3s gap 2s total 60s
queue wait 2s depth 8 retry_after from 1s to 10s
"""


class Target:
    """A running router. `close()` stops what `start` started."""

    def __init__(self, name: str, url: str, operator_url: str = ""):
        self.name, self.url, self.operator_url = name, url, operator_url
        self.process: subprocess.Popen | None = None
        self.log: pathlib.Path | None = None
        self.command: list[str] = []

    def start(self, command: list, log: pathlib.Path, ready_url: str, ready: bytes = b"",
              fields: dict[str, str] | None = None) -> "Target":
        """Starts it and waits until what is at `ready_url` holds these bytes."""
        self.command, self.log = [str(part) for part in command], log
        with log.open("ab") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=out)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with contextlib.suppress(OSError), urllib.request.urlopen(
                    urllib.request.Request(ready_url, headers=fields or {}), timeout=10) as answer:
                if ready in answer.read():
                    return self
            assert self.process.poll() is None, f"{self.name} ended:\n{log.read_text()}"
            time.sleep(0.01)
        raise AssertionError(f"{self.name} does not answer {ready_url}:\n{log.read_text()}")

    def close(self) -> int | None:
        """Stops it and returns its exit code."""
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def free_ports(count: int) -> list[int]:
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


def router_config(folder: pathlib.Path, engines: dict[str, tuple[int, list[str]]], port: int, operator: int, bus: int,
                  settings: str = "", policy: str = POLICY, engine_settings: str = "") -> pathlib.Path:
    """A fleet with these engines (name: port, models). Its router alone is started, with the policy on its disk."""
    rows = "".join(f'[[engine]]\nname = "{name}"\ncluster = "c"\nurl = "http://127.0.0.1:{p}"\nmodels = {models}\nprofile = "p"\n{engine_settings}\n'
                   for name, (p, models) in engines.items()).replace("'", '"')
    file = folder / "fleet.toml"
    file.write_text(f"""fleet = "conformance"
policy = "fleet.policy"
security = "none"
state_dir = "{folder}/state"
[router]
{settings}
[[cluster]]
name = "c"
region = "r"
zone = "here"
[[profile]]
name = "p"
a = 0.01
b = 0.0001
c = 1e-6
kv_tokens = 1000000000
max_batch = 256
{rows}
[[bus]]
id = "bus"
publish = "tcp://127.0.0.1:{bus}"
subscribe = "tcp://127.0.0.1:{bus + 1}"
[[process]]
role = "policy-keeper"
id = "keeper"
[[process]]
role = "health-monitor"
id = "monitor"
[[process]]
role = "global-optimizer"
id = "optimizer"
[[process]]
role = "engine-proxy"
id = "proxy"
cluster = "c"
[[process]]
role = "cluster-router"
id = "router"
cluster = "c"
listen = "127.0.0.1:{port}"
operator = "127.0.0.1:{operator}"
""")
    (folder / "fleet.policy").write_text(policy)
    kept = folder / "state" / "processes" / "router"
    kept.mkdir(parents=True)
    text = policy.encode()
    # As the router itself keeps what it last heard: a line with the digest, then the bytes.
    (kept / "policy").write_bytes(f"signalbox 1 {hashlib.blake2b(text, digest_size=32).hexdigest()}\n".encode() + text)
    return file


SETTINGS = """head_timeout = "2s"
body_timeout = "2s"
idle_timeout = "3s"
stall_timeout = "3s"
cors_origins = ["https://app.example"]
"""


def signalbox(folder: pathlib.Path, engines: list[int], policy: str = POLICY, settings: str = "", engine_settings: str = "",
              drain_grace: str = "700ms", ready_fields: dict[str, str] | None = None) -> Target:
    port, operator, bus = free_ports(3)
    rows = {f"mock-{i + 1}": (p, ["m", "slow"] if i == 0 else ["m"]) for i, p in enumerate(engines)}
    file = router_config(folder, rows, port, operator, bus, f'{SETTINGS}drain_grace = "{drain_grace}"\n{settings}', policy, engine_settings)
    target = Target("signalbox", f"http://127.0.0.1:{port}", f"http://127.0.0.1:{operator}")
    command = [find_binary(), "run", "cluster-router", "--config", file, "--id", "router"]
    return target.start(command, folder / "router.log", f"{target.url}/v1/models/m", fields=ready_fields)


def signalbox_loops(folder: pathlib.Path, engines: list[int], **options) -> Target:
    """The same with four event loops, whatever the machine has."""
    return signalbox(folder, engines, settings=options.pop("settings", "") + "loops = 4\n", **options)


def nginx(folder: pathlib.Path, engines: list[int]) -> Target:
    (port,) = free_ports(1)
    servers = "".join(f"server 127.0.0.1:{p} max_fails=0;" for p in engines)
    (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_header_timeout 2s; client_body_timeout 2s; keepalive_timeout 3s; send_timeout 3s; client_max_body_size 64m;
  upstream engines {{ {servers} keepalive 16; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_connect_timeout 3s; proxy_read_timeout 3s; proxy_next_upstream error timeout http_502 http_503 non_idempotent;
      proxy_next_upstream_tries 2;
    }}
  }}
}}
""")
    target = Target("nginx", f"http://127.0.0.1:{port}")
    return target.start([program("nginx"), "-c", folder / "nginx.conf"], folder / "nginx.log",
                        f"{target.url}/v1/models")


def haproxy(folder: pathlib.Path, engines: list[int]) -> Target:
    (port,) = free_ports(1)
    servers = "".join(f"  server e{i} 127.0.0.1:{p}\n" for i, p in enumerate(engines))
    (folder / "haproxy.cfg").write_text(f"""
global
  maxconn 4096
defaults
  mode http
  option http-no-delay
  option abortonclose
  timeout connect 3s
  timeout client 3s
  timeout server 3s
  timeout http-request 2s
  timeout http-keep-alive 3s
  retries 1
  option redispatch 1
  retry-on conn-failure empty-response response-timeout 502 503
frontend in
  bind 127.0.0.1:{port}
  default_backend engines
backend engines
  balance roundrobin
{servers}""")
    target = Target("haproxy", f"http://127.0.0.1:{port}")
    return target.start([program("haproxy"), "-f", folder / "haproxy.cfg"], folder / "haproxy.log",
                        f"{target.url}/v1/models")


def installed(name: str) -> bool:
    return name.startswith("signalbox") or bool(program(name))


def program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


STARTERS = {"signalbox": signalbox, "signalbox-loops": signalbox_loops, "nginx": nginx, "haproxy": haproxy}
