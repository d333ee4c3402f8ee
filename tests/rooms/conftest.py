"""Where the sources, the tables and the build are."""

import os
import pathlib

import pytest

from checker import Book, read_rooms

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    return ROOT


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The configured build that is judged: SIGNALBOX_BUILD, else the first of asan, dev and release."""
    candidates = [os.environ.get("SIGNALBOX_BUILD"), *(ROOT / "build" / p for p in ("asan", "dev", "release"))]
    for candidate in filter(None, candidates):
        if (pathlib.Path(candidate) / "rooms.tsv").exists():
            return pathlib.Path(candidate)
    pytest.fail("no configured build; run tools/make dev")


@pytest.fixture(scope="session")
def rooms(build):
    return read_rooms(build / "rooms.tsv")


@pytest.fixture(scope="session")
def book(root):
    return Book.read(root / "tests/rooms")
