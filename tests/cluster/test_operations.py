"""docs/operations.md shows what the commands show."""

import sys

from fleet import ROOT

sys.path.insert(0, str(ROOT / "tools/project"))

import captures  # noqa: E402


def test_the_captures_are_true(laptop):
    made = captures.made(laptop)
    assert len(made) >= 8
    assert not (found := captures.mistakes(made)), found
    assert all(shown.strip() for _, shown in made), "a command shows nothing"
    with_tables = [match[3] for match, _ in made if captures.tables(match[4])]
    assert len(with_tables) >= 5, f"only {with_tables} are compared"
