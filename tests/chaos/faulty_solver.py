"""Stands where an optimizer looks for signalbox-solver: hands requests to the real one and spoils, on demand, what comes
of them. `install` puts it beside a copy of the binary; the file `fault` there says whose solver fails and how."""

import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

FAULTS = ("hang", "crash", "nan", "infeasible")


def install(folder: pathlib.Path, binary: pathlib.Path) -> pathlib.Path:
    """A folder with the binary and this solver; returns the binary's path in it."""
    folder.mkdir(parents=True)
    ours = folder / "signalbox"
    try:
        os.link(binary, ours)
    except OSError:
        shutil.copy2(binary, ours)
    (folder / "real").write_text(str(binary.with_name("signalbox-solver")))
    solver = folder / "signalbox-solver"
    solver.write_text(f"#!{sys.executable}\n" + pathlib.Path(__file__).read_text())
    solver.chmod(solver.stat().st_mode | stat.S_IXUSR)
    return ours


def set_fault(binary: pathlib.Path, optimizer: str | None = None, fault: str = "") -> None:
    """From now on this optimizer's solver fails so; None: nobody's."""
    fresh = binary.with_name("fault.new")
    fresh.write_text(f"{optimizer} {fault}" if optimizer else "")
    fresh.rename(binary.with_name("fault"))


def fault_of_mine(folder: pathlib.Path) -> str:
    try:
        optimizer, _, fault = (folder / "fault").read_text().partition(" ")
        parent = pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return fault if optimizer and optimizer.encode() in parent else ""


def read_frame(pipe) -> bytes | None:
    head = pipe.read(4)
    return head + pipe.read(struct.unpack("<I", head)[0]) if len(head) == 4 else None


def frame(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


def spoil(reply: bytes, fault: str) -> bytes:
    import msgpack

    items = msgpack.unpackb(reply[4:], strict_map_key=False)
    if fault == "nan":  # every number of the plan's certificate and terms
        return frame(msgpack.packb([float("nan") if isinstance(item, float) else item for item in items]))
    refusal, invalid = 2, 0
    return frame(msgpack.packb([refusal, items[1], invalid, "the problem has no solution", "solver"]))


def main() -> None:
    folder = pathlib.Path(sys.argv[0]).resolve().parent
    real = subprocess.Popen([(folder / "real").read_text()], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        while request := read_frame(sys.stdin.buffer):
            fault = fault_of_mine(folder)
            if fault == "hang":
                time.sleep(3600)
            if fault == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            real.stdin.write(request)
            real.stdin.flush()
            reply = read_frame(real.stdout)
            sys.stdout.buffer.write(spoil(reply, fault) if fault else reply)
            sys.stdout.buffer.flush()
    finally:
        real.kill()


if __name__ == "__main__":
    main()
