"""TLS on both sides of the routers, with certificates made here: one engine is recognised by a pin, one by its name."""

import concurrent.futures
import os
import signal
import ssl
import subprocess

import openai
import pytest

from fleet import Fleet, example, stop_all, wait_for
from load import chat, unlike


class Maker:
    """Certificates as files of a folder: NAME.pem and NAME.key."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)

    def make(self, name: str, names: str, issuer: str = "", more: tuple = ()) -> str:
        issued = ["-CA", self.file(issuer), "-CAkey", self.key(issuer)] if issuer else []
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}", *more, *issued,
                        "-keyout", self.key(name), "-out", self.file(name)], check=True, capture_output=True)
        return self.file(name)

    def file(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def key(self, name: str) -> str:
        return str(self.folder / f"{name}.key")

    def sha256(self, name: str) -> str:
        """As openssl prints it, with colons."""
        done = subprocess.run(["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", self.file(name)],
                              check=True, capture_output=True, text=True)
        return done.stdout.strip().split("=")[1]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    made = Maker(tmp_path_factory.mktemp("tls") / "certificates")
    made.make("router", "DNS:localhost,IP:127.0.0.1")
    made.make("authority", "DNS:authority")
    made.make("pinned", "DNS:nobody")
    made.make("named", "DNS:engine.test", issuer="authority", more=("-addext", "basicConstraints=critical,CA:FALSE"))
    return made


@pytest.fixture(scope="module")
def secure(tmp_path_factory, request, certificates):
    config = example("laptop.toml")
    config["router"] = {"tls_certificate": certificates.file("router"), "tls_key": certificates.key("router")}
    for engine in config["engine"]:
        name, trust = {"e1": ("pinned", {"tls_sha256": [certificates.sha256("pinned")]}),
                       "e2": ("named", {"tls_name": "engine.test", "tls_authorities": certificates.file("authority")})
                       }.get(engine["name"], ("", {}))
        if name:
            engine |= trust | {"url": engine["url"].replace("http:", "https:")}
            engine["simulated"] |= {"tls_certificate": certificates.file(name), "tls_key": certificates.key(name)}
    fleet = Fleet(tmp_path_factory.mktemp("secure"), config)
    try:
        yield fleet.up()
    finally:
        stop_all([fleet], request.node)


@pytest.fixture
def url(secure):
    return secure.url("router-east").replace("http:", "https:")


@pytest.fixture
def trust(certificates):
    return ssl.create_default_context(cafile=certificates.file("router"))


def served_by(url: str, trust: ssl.SSLContext, engines: set[str]) -> None:
    """Asks, many at a time, until each of these has answered; whoever answers, answers well."""
    def ask(number: int):
        return chat(url, "m-large", unlike(number), max_tokens=8, stream=number % 2 == 0, context=trust)

    def all_seen() -> bool:
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(ask, range(len(seen) * 1000, len(seen) * 1000 + 48)))
        assert all(answer.good for answer in answers), answers
        seen.append({answer.engine for answer in answers})
        return engines <= set.union(*seen)

    seen: list[set[str]] = []
    wait_for(f"{engines} answer", all_seen, 60)


def test_requests_pass_to_an_engine_with_a_pin_and_to_one_with_a_name(url, trust):
    served_by(url, trust, {"e1", "e2"})


def test_the_openai_client_speaks_https(url, trust):
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=60,
                           http_client=openai.DefaultHttpxClient(verify=trust))
    stream = client.chat.completions.create(model="m-large", messages=[{"role": "user", "content": "hello"}], max_tokens=12,
                                            stream=True)
    assert len([c for c in stream if c.choices and c.choices[0].delta.content]) >= 12


def test_curl_finds_tls_1_3_and_http_1_1_and_nothing_older_than_1_2(url, certificates):
    def curl(*options: str) -> subprocess.CompletedProcess:
        return subprocess.run(["curl", "-sv", "--cacert", certificates.file("router"), *options, f"{url}/v1/models"],
                              capture_output=True, text=True)
    done = curl()
    assert done.returncode == 0 and "m-large" in done.stdout
    assert "TLSv1.3" in done.stderr and "server accepted http/1.1" in done.stderr
    assert curl("--tls-max", "1.2").returncode == 0
    assert curl("--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0").returncode != 0


def test_a_plain_client_is_told_to_write_https(secure):
    answer = chat(secure.url("router-east"), "m-large", "hello")
    assert answer.status == 400 and answer.reason == "plain_http"
    assert "https://" in answer.text


def shown_by(url: str) -> str:
    host, port = url.removeprefix("https://").split(":")
    return ssl.get_server_certificate((host, int(port)))


def test_a_new_certificate_is_shown_after_sighup_and_a_broken_one_is_not(secure, url, trust, certificates):
    certificates.make("next", "DNS:localhost,IP:127.0.0.1")
    before, after = open(certificates.file("router")).read(), open(certificates.file("next")).read()
    assert shown_by(url).split() == before.split()
    log = secure.state / "logs" / "router-east.log"

    def reload(pem: str, key: str) -> None:
        open(certificates.file("router"), "w").write(pem)
        open(certificates.key("router"), "w").write(key)
        os.kill(secure.pid("router-east"), signal.SIGHUP)

    key = open(certificates.key("router")).read()
    reload(after, key)  # of another pair
    wait_for("the bad pair is named", lambda: "does not belong to the certificate" in log.read_text(), 60)
    assert shown_by(url).split() == before.split()
    assert chat(url, "m-large", "hello", context=trust).good
    reload(after, open(certificates.key("next")).read())
    wait_for("the new certificate is shown", lambda: shown_by(url).split() == after.split(), 60)
    assert chat(url, "m-large", "hello", context=ssl.create_default_context(cafile=certificates.file("next"))).good


def test_an_engine_that_shows_another_certificate_is_alerted_and_sent_nothing(secure, url, certificates):
    trust = ssl.create_default_context(cafile=certificates.file("router"))
    certificates.make("pinned", "DNS:nobody")
    secure.signalbox("restart", "e1")
    raised = wait_for("an alert names the engine", lambda: [row for row in secure.inspect("alerts")["alerts"]
                                                            if row["alert"] == "engine-untrusted-e1"], 60)
    assert raised[0]["severity"] == "critical" and raised[0]["subject"] == "e1"
    for number in range(20):
        answer = chat(url, "m-large", unlike(1000 + number), max_tokens=2, context=trust)
        assert answer.good and answer.engine != "e1", answer
    metrics = subprocess.run(["curl", "-s", "--insecure", secure.engine_url("e1").replace("http:", "https:") + "/metrics"],
                             capture_output=True, text=True, check=True).stdout
    served = [line for line in metrics.splitlines() if line.startswith("vllm:request_success_total")]
    assert served and all(float(line.split()[-1]) == 0 for line in served), served
