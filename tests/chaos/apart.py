"""A process of a fleet that runs beside its launcher: behind relays that part it from the bus, or with clocks of its own."""

import copy
import os
import pathlib
import selectors
import signal
import socket
import subprocess
import threading

from fleet import Fleet, dump_toml

CHUNK = 65536


class Relay:
    """Passes TCP on to a port, in each direction unless that is cut: then bytes wait, as on a network that drops them."""

    def __init__(self, port: int):
        self.target = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._cut: frozenset[str] = frozenset()
        self._ends: dict[socket.socket, tuple[socket.socket, str]] = {}  # -> the other end, and which way it speaks
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(self.listener, selectors.EVENT_READ)
        self._stop = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self, *ways: str) -> None:
        """"out": nothing passes from the process; "in": nothing passes to it."""
        self._cut = frozenset(ways)
        self._wake.send(b"x")

    def close(self) -> None:
        self._stop = True
        self._wake.send(b"x")
        self._thread.join()
        for end in (*self._ends, self.listener, self._wake, self._woken):
            end.close()

    def _run(self) -> None:
        while not self._stop:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    self._woken.recv(CHUNK)
                    self._listen_anew()
                elif key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj in self._ends:
                    self._pass_on(key.fileobj)

    def _listen_anew(self) -> None:
        """Ends that speak in a way that is cut are not read."""
        for end, (_, way) in self._ends.items():
            listened = end in self._selector.get_map()
            if (way in self._cut) == listened:
                self._selector.unregister(end) if listened else self._selector.register(end, selectors.EVENT_READ)

    def _accept(self) -> None:
        near, _ = self.listener.accept()
        try:
            far = socket.create_connection(self.target, timeout=5)
        except OSError:
            return near.close()
        for end in (near, far):
            end.settimeout(5)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ends[near], self._ends[far] = (far, "out"), (near, "in")
        self._listen_anew()

    def _pass_on(self, end: socket.socket) -> None:
        other, _ = self._ends[end]
        try:
            data = end.recv(CHUNK)
            if data:
                return other.sendall(data)
        except OSError:
            pass
        for each in (end, other):
            if each in self._selector.get_map():
                self._selector.unregister(each)
            del self._ends[each]
            each.close()


class Apart:
    """`signalbox run` of one process of a fleet whose launcher keeps it down."""

    def __init__(self, fleet: Fleet, name: str, prefix: list[str], environment: dict[str, str], behind_relays: bool):
        base = fleet.status()["fleet"][0]["port_base"]
        config = copy.deepcopy(fleet.config)
        self.relays: dict[str, list[Relay]] = {}
        for bus in config["bus"] if behind_relays else []:
            for side in ("publish", "subscribe"):
                relay = Relay(base + int(bus[side].partition("+")[2]))
                bus[side] = f"tcp://127.0.0.1:{relay.port}"
                self.relays.setdefault(bus["id"], []).append(relay)
        file = fleet.folder / f"apart-{name}.toml"
        file.write_text(dump_toml(config))
        self.log = pathlib.Path(fleet.state) / "logs" / f"apart-{name}.log"
        role = next(p["role"] for p in config["process"] if p["id"] == name)
        command = [*prefix, fleet.binary, "run", role, "--id", name, "--config", file, "--port-base", base, "--state-dir", fleet.state,
                   "--keys-dir", fleet.folder / "keys"]
        self._said_before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, **environment})

    def said(self) -> str:
        """What this process has logged; the file is also that of others of its name before it."""
        return self.log.read_bytes()[self._said_before:].decode()

    def cut(self, *ways: str, bus: str | None = None) -> None:
        for name, relays in self.relays.items():
            for relay in relays if bus in (None, name) else []:
                relay.cut(*ways)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for relays in self.relays.values():
            for relay in relays:
                relay.close()
