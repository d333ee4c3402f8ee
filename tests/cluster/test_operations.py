"""docs/operations.md shows what the commands show."""

import sys

from fleet import ROOT

sys.path.insert(0, str(ROOT / "tools/build"))

import captures  # noqa: E402


def test_the_captures_are_true(laptop):
    made = captures.made(laptop)
    assert len(made) >= 8
    assert not (found := captures.mistakes(made)), found
    assert all(captures.tables(match[4]) or "explain" in match[3] for match, _ in made), "a capture is empty"
