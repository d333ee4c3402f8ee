"""Fleets for tests: a fresh one, or one that the tests of a file share. Logs of a failed test's fleets are shown."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from fleet import Fleet, example, stop_all  # noqa: E402


@pytest.fixture
def new_fleet(tmp_path, request):
    """new_fleet(config, policy=None, name="fleet") -> Fleet, not started; stopped after the test."""
    fleets = []

    def make(config: dict, policy=None, name: str = "fleet") -> Fleet:
        fleets.append(Fleet(tmp_path / name, config, policy))
        return fleets[-1]

    yield make
    stop_all(fleets, request.node)


@pytest.fixture(scope="module")
def laptop(tmp_path_factory, request):
    """The laptop fleet, ready, shared by the tests of a file: do not break it."""
    fleet = Fleet(tmp_path_factory.mktemp("laptop"), example("laptop.toml"))
    try:
        yield fleet.up()
    finally:
        stop_all([fleet], request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        item.failed_call = report.failed
        if report.failed and item.parent is not None:
            item.parent.testsfailed = getattr(item.parent, "testsfailed", 0) + 1
    return report
