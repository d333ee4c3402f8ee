"""The launcher dies; last, since the fleet dies with it."""

import os
import pathlib
import signal
import time

from fleet import wait_for
from load import chat


def test_launcher_killed(rig, figures):
    """Launcher killed -9."""
    launcher = rig.fleet.status()["fleet"][0]["launcher_pid"]
    children = [row["pid"] for row in rig.processes().values()]
    killed = time.monotonic()
    os.kill(launcher, signal.SIGKILL)
    wait_for("children end", lambda: not any(map(lives, children)), 60, 0.02)
    figures("children ended after", time.monotonic() - killed, "s", most=1)
    wait_for("nothing outlives it", lambda: len(rig.fleet.running()) <= 1, 60)  # the watch on the bus is ours
    # Restarted engines are called ready when their shares are ramped up; clients are served before.
    rig.fleet.signalbox("up", "--detach", "--free-ports", "--wait", "1", check=False)
    wait_for("the launcher answers", lambda: rig.fleet.signalbox("status", check=False).returncode == 0, 60)
    urls = [rig.fleet.url(router) for router in rig.bus.routers]
    wait_for("`up` works again", lambda: all(chat(url, "m-small", "again", 8).good for url in urls), 60)


def lives(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
