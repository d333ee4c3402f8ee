"""One fleet for all rows, broken and mended again and again, a watch on its bus, and the figures that the rows measure."""

import os
import pathlib
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))

import faulty_solver  # noqa: E402
from faults import running  # noqa: E402
from figures import Figures  # noqa: E402
from fleet import EXAMPLES, Fleet, example, find_binary  # noqa: E402

SIZE = os.environ.get("SIGNALBOX_TEST_SIZE") or "ci"
FIGURES = Figures(SIZE == "soak")


@pytest.fixture(scope="session")
def seed() -> int:
    """Of everything random in a test; SIGNALBOX_SEED sets it."""
    return int(os.environ.get("SIGNALBOX_SEED", "1"))


@pytest.fixture(scope="session")
def size():
    """size(name): the value of [chaos_<name>] in tests/sizes.toml, for CI or for the soak."""
    sizes = tomllib.loads((ROOT / "tests/sizes.toml").read_text())
    return lambda name: sizes[f"chaos_{name}"][SIZE]


@pytest.fixture
def figures(request):
    """figures(name, value, unit, most=...) notes what this row measured and holds it to its limit."""
    return FIGURES.of(request.node)


def two_monitors() -> dict:
    """The laptop fleet with a second health-monitor."""
    config = example("laptop.toml")
    config["process"].append({"role": "health-monitor", "id": "monitor-2", "operator": "+25"})
    return config


def impatient() -> str:
    """The laptop's policy, but what an engine does not begin to answer is tried elsewhere after seconds."""
    text = (EXAMPLES / "laptop.policy").read_text()
    assert "first_byte 20s" in text
    return text.replace("first_byte 20s", "first_byte 4s")


@pytest.fixture(scope="session")
def shared_rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chaos")
    binary = faulty_solver.install(folder / "bin", find_binary())
    with running(Fleet(folder / "fleet", two_monitors(), impatient(), binary)) as rig:
        yield rig


@pytest.fixture
def rig(shared_rig, request):
    """The fleet, whole and at rest; after a failed test its logs are shown."""
    shared_rig.settle()
    yield shared_rig
    if getattr(request.node, "failed_call", False):
        print(shared_rig.fleet.log_tails())
    shared_rig.mend()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        item.failed_call = report.failed
        FIGURES.note_outcome(item, report.outcome, report.duration)
    return report


def pytest_sessionfinish():
    FIGURES.write(ROOT / "build" / "chaos")
