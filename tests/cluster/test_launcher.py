"""`up`, `status`, `restart`, `down`: everything comes up in order, and nothing survives."""

import contextlib
import fcntl
import os
import pty
import re
import signal
import socket
import subprocess
import termios

from fleet import example, wait_for
from load import chat, unlike


LAPTOP = example("laptop.toml")


def test_up_brings_everything_up_and_down_leaves_nothing(new_fleet):
    fleet = new_fleet(LAPTOP).up()
    rows = wait_for("all are ready", lambda: (rows := fleet.processes()) and all(row["ready"] for row in rows.values()) and rows, 60)
    assert set(rows) == {"bus-1", "bus-2", "e1", "e2", "e3", "w1", "w2", "w3", "keeper", "monitor", "proxy-east",
                         "proxy-west", "optimizer-1", "optimizer-2", "router-east", "router-west"}
    assert all(row["runs"] == "running" and row["restarts"] == 0 for row in rows.values()), rows
    fleet.signalbox("down")
    fleet.wait_gone()
    assert fleet.signalbox("status", check=False).returncode == 3
    log = (fleet.state / "logs/launcher.log").read_text()
    assert "killed" not in log, log
    ends = [log.index(f"{name}: ended, exit code 0") for name in ("router-east", "optimizer-1", "keeper", "e1", "bus-1")]
    assert ends == sorted(ends), "stopped in the order in which they need each other"


def test_a_process_that_dies_is_started_again(new_fleet):
    fleet = new_fleet(LAPTOP).up()
    before = fleet.pid("keeper")
    fleet.kill("keeper")
    row = wait_for("keeper runs again", lambda: (row := fleet.processes()["keeper"])["restarts"] == 1 and row["ready"] and row, 60)
    assert row["pid"] != before
    assert row["last_end"] == "killed by signal 9 (Killed)"


def test_one_process_is_restarted_and_stopped_in_order(new_fleet):
    fleet = new_fleet(LAPTOP).up()
    before = fleet.processes()
    fleet.signalbox("restart", "proxy-east")
    row = wait_for("proxy-east runs again", lambda: (row := fleet.processes()["proxy-east"])["restarts"] == 1 and row["ready"] and row, 60)
    assert row["last_end"] == "exit code 0"
    after = fleet.processes()
    assert all(after[name]["pid"] == before[name]["pid"] for name in before if name != "proxy-east")
    unknown = fleet.signalbox("restart", "proxy-north", check=False)
    assert unknown.returncode == 2
    assert "no process is called 'proxy-north'; there are bus-1" in unknown.stderr
    fleet.signalbox("stop", "proxy-east")
    wait_for("proxy-east is down", lambda: (row := fleet.processes()["proxy-east"])["runs"] == "idle" and row["pid"] is None, 60)
    fleet.signalbox("restart", "proxy-east")
    fleet.wait_ready("proxy-east")


def test_children_end_when_the_launcher_is_killed_and_up_works_again(new_fleet):
    fleet = new_fleet(LAPTOP).up()
    os.kill(fleet.status()["fleet"][0]["launcher_pid"], signal.SIGKILL)
    fleet.wait_gone()  # by themselves
    assert fleet.signalbox("status", check=False).returncode == 3
    fleet.up().wait_ready("keeper")
    fleet.signalbox("down")
    fleet.wait_gone()


def test_down_ends_what_a_frozen_launcher_left(new_fleet):
    fleet = new_fleet(LAPTOP).up()
    os.kill(fleet.status()["fleet"][0]["launcher_pid"], signal.SIGSTOP)
    done = fleet.signalbox("down", "--wait", "1")
    assert "did not end within 1 s and is killed" in done.stderr
    fleet.wait_gone()


def test_ctrl_c_stops_everything_in_order(new_fleet):
    fleet = new_fleet(LAPTOP)
    up = subprocess.Popen([fleet.binary, "up", fleet.file, "--free-ports", "--state-dir", fleet.state, "--keys-dir",
                           fleet.folder / "keys"], stdout=subprocess.PIPE, text=True)
    assert any("ready" in line for line in iter(up.stdout.readline, ""))
    up.send_signal(signal.SIGINT)
    rest = up.communicate(timeout=60)[0]
    assert up.returncode == 0
    assert rest.strip().endswith("everything is stopped")
    fleet.wait_gone()


def test_a_terminal_that_closes_stops_everything_in_order(new_fleet):
    fleet = new_fleet(LAPTOP)
    ours, theirs = pty.openpty()
    up = subprocess.Popen([fleet.binary, "up", fleet.file, "--free-ports", "--state-dir", fleet.state, "--keys-dir", fleet.folder / "keys"],
                          stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                          preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(theirs)
    shown = b""
    while not re.search(rb"\d\d:\d\d:\d\d ready\r", shown):  # the event, not a table's column
        shown += os.read(ours, 65536)
    os.close(ours)
    assert up.wait(timeout=60) == 0
    fleet.wait_gone()
    for name in ("router-east", "optimizer-1", "keeper"):
        assert f" {name}" in (fleet.state / f"logs/{name}.log").read_text().splitlines()[-1], "it said that it stopped"


def test_a_reader_of_its_output_that_leaves_does_not_stop_the_fleet(new_fleet):
    fleet = new_fleet(LAPTOP)
    up = subprocess.Popen([fleet.binary, "up", fleet.file, "--free-ports", "--state-dir", fleet.state, "--keys-dir", fleet.folder / "keys"],
                          stdout=subprocess.PIPE, text=True)
    up.stdout.readline()
    up.stdout.close()
    wait_for("the fleet is ready", lambda: fleet.signalbox("status", "--json", check=False).returncode == 0
             and fleet.status()["fleet"][0]["ready"], 120)
    fleet.signalbox("down")
    assert up.wait(timeout=60) == 0


def test_a_fleet_is_ready_only_with_a_plan_of_its_own(new_fleet):
    """What routers kept on disk may name engines where they are no longer."""
    config = example("laptop.toml")
    config["control"]["leader_timeout"] = "3s"
    fleet = new_fleet(config).up()
    fleet.signalbox("down")
    for offset, engine in enumerate(fleet.config["engine"]):
        engine["url"] = f"http://+{50 + offset}"
    fleet.write_config()
    fleet.up()
    answers = [chat(fleet.url(router), "m-large", unlike(n)) for n, router in enumerate(("router-east", "router-west"))]
    assert all(a.good and a.attempts == 1 for a in answers), answers


def test_a_fleet_whose_configuration_was_spoilt_can_be_asked_and_stopped(new_fleet):
    """From a folder with an odd name too, and without naming its state folder."""
    fleet = new_fleet(LAPTOP, name="an odd\n\\name")
    fleet.state = fleet.folder / ".signalbox/laptop"  # where `up` puts it unless told
    here = lambda *arguments: subprocess.run([fleet.binary, *arguments], cwd=fleet.folder, capture_output=True, text=True, timeout=120)
    up = here("up", "fleet.toml", "--detach", "--free-ports")
    assert up.returncode == 0, up.stderr
    good = fleet.file.read_text()
    fleet.file.write_text(good + "[[")
    assert "\nkeeper " in here("status", "fleet.toml").stdout
    assert here("restart", "keeper", "--config", "fleet.toml").returncode == 0
    assert here("inspect", "leader", "--config", "fleet.toml").returncode == 2
    down = here("down", "fleet.toml")
    assert (down.returncode, down.stdout) == (0, "fleet laptop is down\n"), down.stderr
    fleet.wait_gone()
    assert here("down", "fleet.toml").returncode == 2, "then the configuration matters again"


def test_keys_that_cannot_be_used_are_told_before_anything_starts(new_fleet):
    fleet = new_fleet(LAPTOP)
    keys = fleet.folder / "keys"
    fleet.signalbox("keys", "init")
    secret = (keys / "keeper.secret").read_bytes()
    for spoil, what in [(lambda: (keys / "keeper.secret").chmod(0o644), "others may read this secret"),
                        (lambda: (keys / "keeper.secret").write_text("x"), "not a secret of this version"),
                        (lambda: (keys / "keeper.secret").unlink(), "make all of them anew with signalbox keys init")]:
        spoil()
        up = fleet.signalbox("up", "--detach", "--free-ports", check=False)
        assert up.returncode in (1, 2)
        assert f"{keys}/keeper.secret: " in up.stderr and what in up.stderr, up.stderr
        assert not (fleet.state / "logs/bus-1.log").exists()
        (keys / "keeper.secret").write_bytes(secret)
        (keys / "keeper.secret").chmod(0o600)
    fleet.config["process"].append({"role": "engine-proxy", "id": "proxy-3", "cluster": "east", "engines": ["e1"]})
    next(p for p in fleet.config["process"] if p["id"] == "proxy-east")["engines"] = ["e2", "e3"]
    fleet.write_config()
    up = fleet.signalbox("up", "--detach", "--free-ports", check=False)
    assert "no keys for process 'proxy-3'" in up.stderr
    fleet.wait_gone()


def test_a_second_launcher_is_refused(new_fleet):
    fleet = new_fleet(LAPTOP).up()
    second = fleet.signalbox("up", "--detach", check=False)
    assert second.returncode == 1
    assert "a fleet is up here already" in second.stderr
    other = new_fleet(LAPTOP, name="other")
    taken = other.signalbox("up", "--detach", "--port-base", str(fleet.port(0)), check=False)
    assert taken.returncode == 1
    assert "another fleet has the ports" in taken.stderr
    fleet.wait_ready("keeper")


def test_two_fleets_run_side_by_side_from_one_file(new_fleet):
    first, second = new_fleet(LAPTOP, name="a").up(), new_fleet(LAPTOP, name="b").up()
    assert first.port(0) != second.port(0)
    first.wait_ready("keeper"), second.wait_ready("keeper")


def test_a_block_of_ports_in_which_another_program_listens_is_passed_over(new_fleet):
    left = None
    with contextlib.ExitStack() as others:
        for base in range(20_000, 32_000, 100):  # where --free-ports looks
            with contextlib.suppress(OSError):  # another fleet's
                socket.create_server(("127.0.0.1", base + 99)).close()  # which a fleet keeps for its launcher
                if left:
                    others.enter_context(socket.create_server(("127.0.0.1", base + 37)))
                left = left or base
        fleet = new_fleet(LAPTOP).up()
        assert fleet.port(0) == left
        fleet.wait_ready("router-east")


def test_a_crash_loop_is_slowed_down_and_says_where_to_look(new_fleet):
    config = example("laptop.toml")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config["engine"][0]["url"] = f"http://127.0.0.1:{taken.getsockname()[1]}"
        fleet = new_fleet(config)
        up = fleet.signalbox("up", "--detach", "--free-ports", "--wait", "1", check=False)
        assert up.returncode == 1
        assert "the fleet was not ready after 1 s; it goes on trying" in up.stderr
        row = wait_for("e1 is in a crash loop", lambda: (row := fleet.processes()["e1"])["runs"] == "crash-loop" and row, 180)
        assert row["restarts"] == 7
        assert row["last_end"].startswith("exit code 1: ") and "address already in use" in row["last_end"].lower()
        assert "logs/e1.log" in (fleet.state / "logs/launcher.log").read_text()
        assert "address already in use" in (fleet.state / "logs/e1.log").read_text().lower()
    fleet.signalbox("restart", "e1")
    wait_for("e1 runs", lambda: fleet.processes()["e1"]["runs"] == "running", 60)
