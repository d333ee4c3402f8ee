"""The suite's target and its mock engines. `--target` starts one of targets.py; `--base-url` takes a router that runs
already and whose engines are at `--upstream-ports`."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import targets  # noqa: E402
from client import Client  # noqa: E402
from upstream import Case, Upstream  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "short_grace: its router ends streams soon after it was told to stop")


def pytest_addoption(parser):
    group = parser.getgroup("conformance")
    group.addoption("--target", choices=sorted(targets.STARTERS), default="signalbox", help="what to start and test")
    group.addoption("--base-url", default="", help="test what runs there; its engines must be at --upstream-ports")
    group.addoption("--operator-url", default="", help="the operators' port of --base-url")
    group.addoption("--upstream-ports", default="0,0", help="where the two mock engines listen; 0 takes a free port")


@pytest.fixture(scope="session")
def upstream(request) -> Upstream:
    return Upstream([int(port) for port in request.config.getoption("--upstream-ports").split(",")])


@pytest.fixture(scope="session")
def target(request, upstream, tmp_path_factory):
    option = request.config.getoption
    if option("--base-url"):
        yield targets.Target("given", option("--base-url"), option("--operator-url"))
        return
    folder = tmp_path_factory.mktemp(option("--target"))
    running = targets.STARTERS[option("--target")](folder, [engine.port for engine in upstream.engines])
    yield running
    alive = running.process.poll() is None
    code = running.close()
    if running.name == "signalbox":
        assert alive and code == 0, f"ended with {code}:\n" + "\n".join(running.log.read_text().splitlines()[-40:])


@pytest.fixture
def client(target, upstream):
    made = Client(target, upstream)
    yield made
    made.close()


@pytest.fixture
def case(client) -> Case:
    return client.case
