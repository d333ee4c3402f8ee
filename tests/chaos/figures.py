"""What the rows measured, held to their limits and written as a report.

A figure's limit is what the fleet promises. It is judged as such in the soak sizes; in CI, where machines are small and
binaries sanitized, ten times the limit is the ceiling and the figure is only noted.
"""

import dataclasses
import json
import os
import pathlib
import platform

CI_CEILING = 10


@dataclasses.dataclass
class Figure:
    row: str
    name: str
    value: float
    unit: str
    most: float | None
    exact: bool


class Figures:
    def __init__(self, soak: bool):
        self.soak = soak
        self.figures: list[Figure] = []
        self.outcomes: dict[str, tuple[str, float, float]] = {}

    def of(self, node):
        """A function for one test: note(name, value, unit, most=None, exact=False). `exact`: no ceiling in CI either."""
        row = title_of(node)

        def note(name: str, value: float, unit: str = "", most: float | None = None, exact: bool = False) -> None:
            self.figures.append(Figure(row, name, value, unit, most, exact))
            if most is not None:
                limit = most if exact or self.soak else most * CI_CEILING
                assert value <= limit, f"{row}: {name} is {value:.4g} {unit}, at most {limit:.4g}"
        return note

    def note_outcome(self, node, outcome: str, seconds: float) -> None:
        """Of several tests of one row the worst outcome stands."""
        known, before, _ = self.outcomes.get(title_of(node), ("passed", 0.0, 0.0))
        self.outcomes[title_of(node)] = (outcome if known == "passed" else known, before + seconds, os.getloadavg()[0])

    def write(self, folder: pathlib.Path) -> None:
        if not self.outcomes:
            return
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "figures.json").write_text(json.dumps({
            "machine": machine(), "soak": self.soak, "figures": [dataclasses.asdict(f) for f in self.figures],
            "rows": [{"row": row, "outcome": o, "seconds": s, "load": load} for row, (o, s, load) in self.outcomes.items()]}, indent=1))
        (folder / "report.md").write_text(self.markdown())

    def markdown(self) -> str:
        lines = [f"Sizes: {'soak' if self.soak else 'CI'}. Machine: {machine()}.", "",
                 "| fault | outcome | figure | measured | required |", "| --- | --- | --- | --- | --- |"]
        for row, (outcome, *_) in self.outcomes.items():
            mine = [f for f in self.figures if f.row == row] or [Figure(row, "", 0, "", None, False)]
            for i, f in enumerate(mine):
                required = "" if f.most is None else f"{f.most:g} {f.unit}".strip()
                measured = f"{f.value if isinstance(f.value, int) else format(f.value, '.3g')} {f.unit}".strip() if f.name else ""
                lines.append(f"| {row if i == 0 else ''} | {outcome if i == 0 else ''} | {f.name} | {measured} | {required} |")
        return "\n".join(lines) + "\n"


def title_of(node) -> str:
    """The first line of the test's docstring, else its name."""
    text = (node.function.__doc__ or "").strip()
    return text.splitlines()[0].rstrip(".") if text else node.name


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} CPUs ({platform.machine()}), {memory:.0f} GiB, Linux {platform.release().split('-')[0]}"
