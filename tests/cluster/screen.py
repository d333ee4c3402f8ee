"""A command in a terminal of a given size, and what a person would see there."""

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import fcntl
import time

import pyte


class Screen:
    def __init__(self, command: list, columns: int = 80, lines: int = 24):
        self.columns, self.lines = columns, lines
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        # What pyte emulates: it does not know all that xterm does.
        environment = {**os.environ, "TERM": "linux", "LC_ALL": "C.UTF-8"}
        environment.pop("COLUMNS", None), environment.pop("LINES", None)
        self.process = subprocess.Popen(list(map(str, command)), stdin=slave, stdout=slave, stderr=slave, env=environment,
                                        start_new_session=True, close_fds=True)
        os.close(slave)

    def read(self, seconds: float = 0.1) -> None:
        """Takes what the command wrote within this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and select.select([self.master], [], [], left)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return  # it has ended
            if not data:
                return
            self.stream.feed(data)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, what, timeout_s: float = 60) -> str:
        """Until the screen holds this text, or until what(text) is true."""
        holds = what if callable(what) else lambda text: what in text
        end = time.monotonic() + timeout_s
        while not holds(self.text()):
            if time.monotonic() > end:
                raise AssertionError(f"not within {timeout_s} s: {what!r}; the screen is\n{self.text()}")
            self.read()
        return self.text()

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.killpg(self.process.pid, signal.SIGWINCH)

    def end(self, timeout_s: float = 60) -> int:
        """The exit code; killed if it does not end by itself."""
        until = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < until:
            self.read()
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        os.close(self.master)
        return code
