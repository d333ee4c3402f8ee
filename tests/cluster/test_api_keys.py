"""API keys: who may ask, for whom and how much, by a file that `signalbox apikey` writes and SIGHUP makes known."""

import os
import signal
import subprocess

import openai
import pytest

from fleet import Fleet, example, stop_all, wait_for
from load import chat


class Keys:
    def __init__(self, fleet: Fleet):
        self.fleet, self.file = fleet, fleet.folder / "keys.toml"

    def new(self, name: str, *options: str, check: bool = True, given: str = "") -> str:
        done = subprocess.run([self.fleet.binary, "apikey", "new", self.file, "--name", name, *options], text=True,
                              capture_output=True, input=given, check=False)
        if check:
            assert done.returncode == 0, done.stderr
        return done.stdout.strip() if check else done.stderr

    def run(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.fleet.binary, "apikey", words[0], self.file, *words[1:]], text=True, capture_output=True)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory, request):
    config = example("laptop.toml")
    config["router"] = {"api_keys": "keys.toml"}
    fleet = Fleet(tmp_path_factory.mktemp("keyed"), config)
    fleet.keys = Keys(fleet)
    fleet.web = fleet.keys.new("web", "--tenant", "web", "--criticality", "standard")
    try:
        yield fleet.up()
    finally:
        stop_all([fleet], request.node)


@pytest.fixture
def url(keyed):
    return keyed.url("router-east")


def bearer(key: str) -> dict:
    return {"authorization": f"Bearer {key}"}


def reload(fleet: Fleet) -> None:
    os.kill(fleet.pid("router-east"), signal.SIGHUP)


def ask(url: str, key: str, **more):
    return chat(url, "m-small", "hello", max_tokens=2, headers=bearer(key), **more)


def test_the_openai_client_is_let_in_by_its_key_and_told_what_is_wrong_with_another(keyed, url):
    client = openai.OpenAI(base_url=url + "/v1", api_key=keyed.web, max_retries=0)
    assert client.chat.completions.create(model="m-small", messages=[{"role": "user", "content": "hello"}], max_tokens=2).choices
    assert client.models.list()
    with pytest.raises(openai.AuthenticationError) as caught:
        openai.OpenAI(base_url=url + "/v1", api_key="sb-another", max_retries=0).models.list()
    assert caught.value.code == "invalid_api_key"
    nameless = chat(url, "m-small", "hello")
    assert (nameless.status, nameless.reason) == (401, "missing_api_key")


def test_the_file_holds_no_key_and_is_its_owners_alone(keyed):
    text = keyed.keys.file.read_text()
    assert keyed.web not in text and keyed.web.removeprefix("sb-") not in text
    assert keyed.keys.file.stat().st_mode & 0o077 == 0
    assert "web" in keyed.keys.run("list").stdout


def test_sighup_takes_new_keys_and_drops_revoked_ones_without_touching_open_streams(keyed, url):
    fresh = keyed.keys.new("fresh", "--tenant", "web")
    assert ask(url, fresh).status == 401
    reload(keyed)
    wait_for("the new key is let in", lambda: ask(url, fresh).good, 60)
    client = openai.OpenAI(base_url=url + "/v1", api_key=fresh, max_retries=0)
    stream = client.chat.completions.create(model="m-large", messages=[{"role": "user", "content": "hello"}],
                                            max_tokens=200, stream=True)
    first = next(stream)
    assert keyed.keys.run("revoke", "fresh").returncode == 0
    reload(keyed)
    wait_for("the revoked key is refused", lambda: ask(url, fresh).status == 401, 60)
    chunks = [first, *stream]
    assert chunks[-1].choices[0].finish_reason in ("stop", "length"), "it came to its end"
    assert ask(url, keyed.web).good


def test_a_file_with_a_mistake_leaves_the_last_good_one_in_force(keyed, url):
    good = keyed.keys.file.read_text()
    keyed.keys.file.write_text(good + "\n[[key]]\nname = 7\n")
    reload(keyed)
    log = keyed.state / "logs" / "router-east.log"
    wait_for("the mistake is named", lambda: "api_keys_not_reloaded" in log.read_text(), 60)
    assert ask(url, keyed.web).good
    assert "keys.toml:" in keyed.keys.new("late", check=False)
    keyed.keys.file.write_text(good)


def test_a_rate_limit_is_a_429_that_the_openai_client_understands(keyed, url):
    slow = keyed.keys.new("slow", "--tenant", "web", "--requests-per-minute", "2")
    reload(keyed)
    wait_for("the key is known", lambda: ask(url, slow).status in (200, 429), 60)
    client = openai.OpenAI(base_url=url + "/v1", api_key=slow, max_retries=0)
    with pytest.raises(openai.RateLimitError) as caught:
        for _ in range(4):
            client.chat.completions.create(model="m-small", messages=[{"role": "user", "content": "hello"}], max_tokens=2)
    assert caught.value.code == "rate_limit_exceeded"
    headers = caught.value.response.headers
    assert 1 <= int(headers["retry-after"]) <= 30
    assert headers["x-ratelimit-limit-requests"] == "2" and headers["x-ratelimit-remaining-requests"] == "0"


def test_the_command_refuses_what_would_not_work(keyed):
    assert "there is a key 'web'" in keyed.keys.new("web", check=False)
    assert "can be guessed" in keyed.keys.new("short", "--from-stdin", given="secret\n", check=False)
    keyed.keys.new("imported", "--from-stdin", given="an-existing-key-of-some-length\n")
    assert "this key is there as 'imported'" in keyed.keys.new("again", "--from-stdin",
                                                                given="an-existing-key-of-some-length\n", check=False)
    assert keyed.keys.run("revoke", "nobody").returncode == 2
