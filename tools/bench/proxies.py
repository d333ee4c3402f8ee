"""Starts the routers that are compared, each with one thread for its traffic, all before the same engines.

Each is a function of (folder, engine ports) that returns a running `Proxy`. `available` says who can run here, and why not.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
RIVALS = ROOT / "build/venv-rivals"
TICKS = os.sysconf("SC_CLK_TCK")

POLICY = """policy bench version 1
topology { zone here { region r } }
models { m }
class all { tenants * model m criticality critical residency any }
otherwise reject 403
limits { in_flight(engine) <= 20000 }
timeouts connect 2s first_byte 60s gap 60s total 600s
"""

# Whoever shows one of these is not to be checked: what is measured is the cost of the encryption.
UNCHECKED = ssl._create_unverified_context()

QUESTION = json.dumps({"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": "hello"}]}).encode()


def free_ports(count: int) -> list[int]:
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


def program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


def ask(port: int, timeout: float = 1, scheme: str = "http", seen: dict | None = None) -> int | None:
    """The status of one small request, or None where nobody answers; the answer's fields go into `seen`."""
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}/v1/chat/completions", QUESTION, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout, context=UNCHECKED) as answer:
            answer.read()
            if seen is not None:
                seen.update(answer.headers.items())
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


class Proxy:
    """A running router. `started_s`: from its start to its first 200, whose fields are `first_fields`."""

    def __init__(self, name: str, port: int, command: list, log: pathlib.Path, environment: dict[str, str] | None = None, scheme: str = "http"):
        self.name, self.port, self.scheme = name, port, scheme
        self.first_fields: dict[str, str] = {}
        with log.open("ab") as out:
            began = time.monotonic()
            self.process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=out, env={**os.environ, **(environment or {})})
        while ask(port, scheme=scheme, seen=self.first_fields) != 200:
            if self.process.poll() is not None or time.monotonic() - began > 60:
                self.close()
                raise RuntimeError(f"{name} does not serve:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.005)
        self.started_s = time.monotonic() - began

    def pids(self) -> list[int]:
        """The process and all below it."""
        out = [self.process.pid]
        for pid in out:
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                out += map(int, task.read_text().split())
        return out

    def cpu_s(self) -> float:
        """CPU time, user and system, since the start."""
        total = 0
        for pid in self.pids():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def rss_kb(self) -> int:
        return sum(int(line.split()[1]) for pid in self.pids() for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                   if line.startswith("VmRSS"))

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """A certificate of its own and its key, of a kind that all can show."""
    files = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=bench",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def fleet(folder: pathlib.Path, port: int, engines: list[int], tls: bool) -> None:
    operator, bus, other_bus = free_ports(3)
    rows = "".join(f'[[engine]]\nname = "e{i}"\ncluster = "c"\nurl = "http://127.0.0.1:{p}"\nmodels = ["m"]\nprofile = "p"\n'
                   for i, p in enumerate(engines))
    others = "".join(f'[[process]]\nrole = "{role}"\nid = "{role}"\n' for role in ("policy-keeper", "health-monitor", "global-optimizer"))
    shown = 'tls_certificate = "{}"\ntls_key = "{}"\n'.format(*certificate(folder)) if tls else ""
    (folder / "fleet.toml").write_text(f"""fleet = "bench"
policy = "fleet.policy"
security = "none"
state_dir = "{folder}/state"
[router]
connections = 20000
{shown}[[cluster]]
name = "c"
region = "r"
zone = "here"
[[profile]]
name = "p"
a = 0.01
b = 0.0001
c = 1e-6
kv_tokens = 1000000000
max_batch = 20000
{rows}
[[bus]]
id = "bus"
publish = "tcp://127.0.0.1:{bus}"
subscribe = "tcp://127.0.0.1:{other_bus}"
{others}
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
    (folder / "fleet.policy").write_text(POLICY)


KEPT: dict[tuple[int, ...], dict[str, bytes]] = {}  # by the engines' ports


def kept_by_router(engines: list[int]) -> dict[str, bytes]:
    """What a router of these engines keeps on its disk, its snapshot among it: its whole fleet runs once until that is there."""
    found = KEPT.get(tuple(engines))
    if found:
        return found
    with tempfile.TemporaryDirectory(prefix="compare-fleet-") as name:
        folder = pathlib.Path(name)
        fleet(folder, free_ports(1)[0], engines, False)
        kept = folder / "state/processes/router"
        with (folder / "log").open("wb") as log:
            running = subprocess.Popen([binary(), "up", folder / "fleet.toml"], stdout=log, stderr=log)
        try:
            end = time.monotonic() + 60
            while not all((kept / file).exists() for file in ("policy", "table", "snapshot")):
                if running.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the fleet made no snapshot:\n{(folder / 'log').read_text(errors='replace')[-2000:]}")
                time.sleep(0.02)
        finally:
            running.terminate()
            running.wait(30)
        return KEPT.setdefault(tuple(engines), {file: (kept / file).read_bytes() for file in ("policy", "table", "snapshot")})


def signalbox(folder: pathlib.Path, engines: list[int], tls: bool = False) -> Proxy:
    """The router of a fleet whose control plane is away: it serves from the snapshot on its disk."""
    (port,) = free_ports(1)
    fleet(folder, port, engines, tls)
    kept = folder / "state/processes/router"
    kept.mkdir(parents=True, exist_ok=True)
    for file, content in kept_by_router(engines).items():
        (kept / file).write_bytes(content)
    command = [binary(), "run", "cluster-router", "--config", folder / "fleet.toml", "--id", "router"]
    out = Proxy("signalbox", port, command, folder / "log", scheme="https" if tls else "http")
    if out.first_fields.get("x-signalbox-snapshot", "none") == "none":
        out.close()
        raise RuntimeError("signalbox served without the snapshot on its disk")
    return out


def haproxy(folder: pathlib.Path, engines: list[int], tls: bool = False) -> Proxy:
    (port,) = free_ports(1)
    servers = "".join(f"  server e{i} 127.0.0.1:{p}\n" for i, p in enumerate(engines))
    shown = ""
    if tls:
        (folder / "shown.pem").write_bytes(b"".join(file.read_bytes() for file in certificate(folder)))
        shown = f" ssl crt {folder}/shown.pem"
    (folder / "haproxy.cfg").write_text(f"""
global
  maxconn 9900
  nbthread 1
defaults
  mode http
  option http-no-delay
  http-reuse always
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:{port} backlog 4096{shown}
  default_backend engines
backend engines
  balance roundrobin
{servers}""")
    return Proxy("haproxy", port, [program("haproxy"), "-f", folder / "haproxy.cfg"], folder / "log", scheme="https" if tls else "http")


def nginx(folder: pathlib.Path, engines: list[int], tls: bool = False) -> Proxy:
    (port,) = free_ports(1)
    servers = "".join(f"server 127.0.0.1:{p};" for p in engines)
    shown = "ssl_certificate {}; ssl_certificate_key {};".format(*certificate(folder)) if tls else ""
    (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; worker_rlimit_nofile 20000;
events {{ worker_connections 20000; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 1000000000; client_body_buffer_size 64k;
  upstream engines {{ {servers} keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096{" ssl" if tls else ""}; {shown}
    location / {{ proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }}
  }}
}}
""")
    return Proxy("nginx", port, [program("nginx"), "-c", folder / "nginx.conf"], folder / "log", scheme="https" if tls else "http")


def python_router(name: str, engines: list[int], folder: pathlib.Path, arguments: list[str]) -> Proxy:
    port, metrics = free_ports(2)
    urls = [f"http://127.0.0.1:{p}" for p in engines]
    command = [RIVALS / "bin" / name, *arguments, "--host", "127.0.0.1", "--port", port, "--prometheus-port", metrics, "--policy", "round_robin",
               "--worker-urls", *urls]
    return Proxy(name, port, command, folder / "log", {"TOKIO_WORKER_THREADS": "1"})


def smg(folder: pathlib.Path, engines: list[int]) -> Proxy:
    return python_router("smg", engines, folder, ["launch", "--log-level", "error", "--max-concurrent-requests", "-1"])


def sglang_router(folder: pathlib.Path, engines: list[int]) -> Proxy:
    return python_router("sglang-router", engines, folder, ["launch", "--log-level", "error", "--max-concurrent-requests", "-1"])


def vllm_router(folder: pathlib.Path, engines: list[int]) -> Proxy:
    return python_router("vllm-router", engines, folder, ["--log-level", "error", "--max-concurrent-requests", "20000"])


STARTERS = {"haproxy": haproxy, "nginx": nginx, "signalbox": signalbox, "smg": smg, "sglang-router": sglang_router, "vllm-router": vllm_router}

SPEAK_TLS = ("haproxy", "nginx", "signalbox")  # whose starters can


def binary() -> pathlib.Path:
    return pathlib.Path(os.environ.get("SIGNALBOX_BIN", ROOT / "build/release/bin/signalbox"))


def why_not(name: str) -> str | None:
    """What is missing to run it here."""
    if name == "signalbox":
        return None if binary().exists() else "no release build; run tools/make release signalbox"
    if name in ("haproxy", "nginx"):
        return None if program(name) else f"Debian's package {name} is not installed; run tools/setup bench"
    return None if (RIVALS / "bin" / name).exists() else f"it is not in {RIVALS.relative_to(ROOT)}; run tools/setup bench"
