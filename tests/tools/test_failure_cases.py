"""docs/failure-cases.md names a test for each case that it calls tested, and every test that it names exists."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = 33
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| (\w+) \| ([^|]*)\|$", re.M)
NAME = re.compile(r"`([^`:]+)::(\w+)`")


def rows() -> list[tuple[int, str, list[tuple[str, str]], str]]:
    """Number, state, tests, and what is said besides them."""
    text = (ROOT / "docs/failure-cases.md").read_text()
    return [(int(number), state, NAME.findall(tests), NAME.sub("", tests).strip()) for number, _, state, tests in ROW.findall(text)]


def defines(where: str, name: str) -> bool:
    path = ROOT / "tests" / where
    if path.is_dir():
        return any(re.search(rf"_TEST_CASE\({name}[,)]", file.read_text()) for file in path.glob("*.cpp"))
    return path.exists() and re.search(rf"^def {name}\(", path.read_text(), re.M) is not None


def test_every_case_has_its_row():
    assert [number for number, *_ in rows()] == list(range(1, CASES + 1))


def test_states_say_what_they_mean():
    for number, state, tests, besides in rows():
        assert (state == "tested" and tests and not besides) or (state == "part" and tests and besides) or \
            (state == "open" and not tests), f"case {number}"


def test_every_test_that_is_named_exists():
    missing = [f"{where}::{name}" for _, _, tests, _ in rows() for where, name in tests if not defines(where, name)]
    assert not missing, missing
