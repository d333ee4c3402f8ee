"""Makes the captures of docs/operations.md on the laptop fleet under load.

    build/venv/bin/python tools/project/captures.py            writes them
    build/venv/bin/python tools/project/captures.py --check    says what is not true any more

A capture stands between `<!-- capture WIDTH: COMMAND -->` (or `capture screen WxH: COMMAND`) and `<!-- end -->`. Numbers change from run
to run; what is checked is that the command works and shows the same tables with the same columns.
"""

import argparse
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))

from fleet import Fleet, example, wait_for  # noqa: E402
from load import Load, chat, unlike  # noqa: E402
from screen import Screen  # noqa: E402

PAGE = ROOT / "docs" / "operations.md"
BLOCK = re.compile(r"<!-- capture (screen )?(\S+): (.*?) -->\n(.*?)<!-- end -->", re.DOTALL)
MOST_LINES = 60


def capture(fleet: Fleet, screen: str, size: str, command: str, decision: str) -> str:
    """What the command shows."""
    words = command.replace("DECISION", decision).split()
    assert words[0] == "signalbox", command
    options = ["--config", fleet.file, "--state-dir", fleet.state, "--keys-dir", fleet.folder / "keys"]
    if screen:
        columns, lines = map(int, size.split("x"))
        terminal = Screen([fleet.binary, *words[1:], "--every", "0.3", *options], columns, lines)
        terminal.wait_for(lambda text: len(re.findall(r"\d+%", text)) > 6 and "leader" in text)
        terminal.read(1.5)
        shown = terminal.text()
        terminal.type("q")
        assert terminal.end() == 0
        return shown
    width = ["--width", size] if words[1] == "inspect" else []
    shown = fleet.signalbox(*words[1:], *width).stdout
    return "\n".join(line[:int(size)].rstrip() for line in shown.rstrip().splitlines()[:MOST_LINES])


def tables(text: str) -> dict[str, list[str]]:
    """Title -> columns of the tables in a command's output; of a screen, the line of columns."""
    out, lines = {}, text.splitlines()
    for title, head in zip(lines, lines[1:]):
        if re.fullmatch(r"[a-z_]+", title) and all(re.fullmatch(r"[a-z_/]+", word) for word in head.split()):
            out[title] = head.split()
    for line in lines:
        if line.startswith("ENGINE "):
            out["screen"] = line.split()
    return out


def untrue(before: str, now: str) -> str:
    """What a capture shows that the command does not; empty if nothing."""
    old, new = tables(before), tables(now)
    if set(old) != set(new):
        return f"tables {sorted(old)}, now {sorted(new)}"
    for title in old:
        if gone := [column for column in old[title] if column not in new[title]]:
            return f"{title} has no column {', '.join(gone)}"
    return ""


def made(fleet: Fleet) -> list[tuple[re.Match, str]]:
    """Every capture of the page, made anew under load."""
    urls = [fleet.url("router-east"), fleet.url("router-west")]
    load = Load(lambda n: chat(urls[n % 2], ("m-large", "m-small")[n // 2 % 2], unlike(n), 24, stream=n % 2 == 0), 12)
    try:
        wait_for("load flows", lambda: sum(answer.good for answer in load.so_far()) >= 60, 60)
        decision = next(a.decision for a in reversed(load.so_far()) if a.good)
        return [(match, capture(fleet, match[1], match[2], match[3], decision)) for match in BLOCK.finditer(PAGE.read_text())]
    finally:
        load.stop()


def rewritten(captures: list[tuple[re.Match, str]]) -> str:
    text = PAGE.read_text()
    for match, shown in captures:
        block = f"<!-- capture {match[1] or ''}{match[2]}: {match[3]} -->\n```\n$ {match[3]}\n{shown}\n```\n<!-- end -->"
        text = text.replace(match[0], block)
    return text


def mistakes(captures: list[tuple[re.Match, str]]) -> list[str]:
    return [f"{match[3]}: {wrong}" for match, shown in captures if (wrong := untrue(match[4], shown))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(pathlib.Path(folder) / "laptop", example("laptop.toml"))
        try:
            fleet.up()
            captures = made(fleet)
        finally:
            fleet.down()
    if not options.check:
        PAGE.write_text(rewritten(captures))
        return 0
    for mistake in (found := mistakes(captures)):
        print(mistake)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
