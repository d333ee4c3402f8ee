"""What docs/metrics.md promises, the processes tell: every family of it is scraped, with its type and its labels."""

import os
import re
import urllib.request

from fleet import ROOT, wait_for
from load import chat

DOC = ROOT / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", re.M)


def scrape(fleet, process: dict) -> dict[str, tuple[str, frozenset, str]]:
    """Family -> (type, names of labels, help)."""
    text = urllib.request.urlopen(fleet.operator_url(process["id"]) + "/metrics", timeout=10).read().decode()
    help_of = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    out = {}
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        lines = re.findall(rf"^{name}(?:_bucket|_sum|_count)?{{(.*)}} \S+$", text, re.M)
        labels = {label for line in lines for label in re.findall(r'(\w+)="', line)} - {"le"}
        out[name] = kind, frozenset(labels), help_of[name]
    return out


def tell(fleet) -> dict[str, dict]:
    """By role."""
    told: dict = {}
    for process in fleet.config["process"]:
        if "operator" in process:
            told.setdefault(process["role"], {}).update(scrape(fleet, process))
    for bus in fleet.config["bus"]:
        told.setdefault("forwarder", {}).update(scrape(fleet, bus))
    return told


def test_what_is_promised_is_told(laptop):
    for router in ("router-east", "router-west"):
        assert chat(laptop.url(router), "m-large", "hello", max_tokens=3, stream=True).good
        assert chat(laptop.url(router), "m-small", "hello", max_tokens=3).good
    told = tell(laptop)
    if os.environ.get("SIGNALBOX_REWRITE"):
        DOC.write_text(document(told))
    promised = ROW.findall(DOC.read_text())
    assert len(promised) > 30
    names = {name for name, *_ in promised}

    def everything() -> dict | None:
        found = {name: row for rows in tell(laptop).values() for name, row in rows.items()}
        return found if names <= set(found) else None

    # Averages over engines are told as soon as one of them was read.
    found = wait_for("every family is told", everything, 60)
    for name, kind, labels, _ in promised:
        assert found[name][0] == kind, name
        assert found[name][1] == set(re.findall(r"`(\w+)`", labels)), name


def document(told: dict) -> str:
    out = ["# Metrics\n", "Every process with an `operator` address tells Prometheus at `/metrics`. A name that is out is not changed. A histogram X is "
           "scraped as\n`X_bucket`, `X_sum` and `X_count`. Written by `SIGNALBOX_REWRITE=1 pytest tests/cluster/test_metrics.py` "
           "from what a running fleet told.\n"]
    common = set.intersection(*(set(rows) for rows in told.values()))
    sections = [("Every process", common, told["forwarder"])]
    actors = set.intersection(*(set(rows) for role, rows in told.items() if role != "forwarder")) - common
    sections.append(("Every process but forwarders", actors, told["cluster-router"]))
    sections += [(f"{role}s", set(rows) - common - actors, rows) for role, rows in sorted(told.items())]
    for title, names, rows in sections:
        if names:
            out += [f"## {title[0].upper() + title[1:]}\n", "| family | type | labels | |\n| --- | --- | --- | --- |"]
            out += [f"| `{n}` | {rows[n][0]} | {', '.join(f'`{label}`' for label in sorted(rows[n][1]))} | {rows[n][2]} |" for n in sorted(names)]
            out.append("")
    return "\n".join(out)
