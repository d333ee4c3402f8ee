"""Real model servers for tests and the demo: llama.cpp's own server in a Python process, with a model of 98 MB.

`tools/real-engine` starts one by hand; its packages live in build/venv-real.
"""

import http.client
import pathlib
import socket
import subprocess
import urllib.parse

from fleet import ROOT, wait_for

SCRIPT = ROOT / "tools" / "real-engine"


class RealEngines:
    """A server for each engine of the configuration that is of kind llamacpp; its url there is where it listens."""

    def __init__(self, config: dict):
        self.config = config
        self.processes: list[subprocess.Popen] = []

    def __enter__(self) -> "RealEngines":
        engines = [engine for engine in self.config["engine"] if engine["kind"] == "llamacpp"]
        for engine in engines:
            port = free_port()
            engine["url"] = f"http://127.0.0.1:{port}"
            self.processes.append(subprocess.Popen([SCRIPT, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                                   start_new_session=True))
        for engine in engines:
            wait_for(f"{engine['name']} is healthy", lambda url=engine["url"]: healthy(url), 180)
        return self

    def __exit__(self, *_) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def healthy(url: str) -> bool:
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=1)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def installed() -> bool:
    return (ROOT / "build/venv-real/bin/python").exists() and pathlib.Path(SCRIPT).exists()
