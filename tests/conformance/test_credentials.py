"""Keys of clients and keys of engines: each stays on its own side. Only for a Signalbox of the suite's own."""

import signal
import subprocess
import time

import pytest

import targets
from client import Client


def new_key(file, name: str, *options: str) -> str:
    done = subprocess.run([targets.find_binary(), "apikey", "new", file, "--name", name, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def keyed(request, upstream, tmp_path):
    """A router that asks clients for a key and has one for its engines."""
    if request.config.getoption("--base-url") or request.config.getoption("--target") != "signalbox":
        pytest.skip("starts a router of its own")
    (tmp_path / "engine.key").write_text("engine-secret\n")
    key = new_key(tmp_path / "keys.toml", "web", "--tenant", "shop")
    running = targets.signalbox(tmp_path, [engine.port for engine in upstream.engines], settings='api_keys = "keys.toml"\n',
                                engine_settings='api_key_file = "engine.key"', ready_fields={"authorization": f"Bearer {key}"})
    running.key, running.folder = key, tmp_path
    yield running
    running.close()


def bearer(key: str) -> dict:
    return {"Authorization": f"Bearer {key}"}


def heard(client) -> list[str]:
    """What the engine is told when this client asks."""
    assert client.ask(client.post(fields=bearer(client.target.key))).status == 200
    return client.case.request().head.all("authorization")


def test_an_engine_is_sent_its_own_key_and_never_the_clients(keyed, upstream):
    client = Client(keyed, upstream)
    assert heard(client) == ["Bearer engine-secret"]
    refused = client.ask(client.post(fields=bearer("sb-unknown")))
    assert refused.status == 401 and refused.error()["code"] == "invalid_api_key" and refused.get("x-request-id")
    assert client.ask(client.post()).error()["code"] == "missing_api_key"
    assert client.case.nothing_arrived()
    client.close()


def test_another_key_of_an_engine_is_taken_over_on_sighup(keyed, upstream):
    client = Client(keyed, upstream)
    (keyed.folder / "engine.key").write_text("another-secret\n")
    keyed.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 60
    while (told := heard(client)) != ["Bearer another-secret"] and time.monotonic() < end:
        time.sleep(0.1)
    assert told == ["Bearer another-secret"]
    client.close()
