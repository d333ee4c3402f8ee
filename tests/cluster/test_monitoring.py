"""Monitoring: rules and dashboards speak of what is exposed, and a real Prometheus answers them."""

import re
import shutil
import subprocess
import sys

import pytest

from fleet import ROOT, wait_for
from load import Load, chat, unlike

sys.path.insert(0, str(ROOT / "tools/project"))

import monitoring  # noqa: E402  what tools/demo --monitoring uses

needs_prometheus = pytest.mark.skipif(shutil.which("promtool") is None, reason="Debian's prometheus is not installed: tools/setup monitoring")


@needs_prometheus
def test_rules_are_sound_and_raise_what_they_should():
    for command in (["check", "rules", "rules.yml"], ["test", "rules", "rules_test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=monitoring.MONITORING, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_and_names_an_owner_a_command_and_a_runbook():
    rules = (monitoring.MONITORING / "rules.yml").read_text()
    tests = (monitoring.MONITORING / "rules_test.yml").read_text()
    sections = {f"docs/{name}.md#" + re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                for name in ("operations", "runbook") for line in (ROOT / f"docs/{name}.md").read_text().splitlines() if line.startswith("#")}
    blocks = rules.split("- alert: ")[1:]
    assert len(blocks) > 15
    for block in blocks:
        name = block.splitlines()[0]
        assert f"alertname: {name}" in tests, f"{name} has no test"
        assert "owner: " in block and "severity: " in block and "look_closer: signalbox " in block, name
        runbook = re.search(r"runbook: (\S+)", block)
        assert runbook and runbook.group(1) in sections, f"{name}: there is no {runbook and runbook.group(1)}"


@pytest.fixture(scope="module")
def watched(laptop, tmp_path_factory):
    made = monitoring.Monitoring(laptop, tmp_path_factory.mktemp("monitoring"))
    yield made
    made.stop()


def test_everything_asked_for_is_exposed_and_what_the_exporter_tells_is_documented(watched):
    def names(text: str) -> set[str]:
        return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    wait_for("the exporter has heard the fleet", lambda: 'signalbox_engine_state{engine="e1"' in watched.exposed(), 60)
    rules = (monitoring.MONITORING / "rules.yml").read_text()
    wanted = set()
    for expression in re.findall(r"expr: (?:>\n)?((?:.|\n          )+)", rules):
        wanted |= monitoring.metric_names(expression)
    for dashboard in monitoring.dashboards().values():
        for _, query in monitoring.expressions(dashboard):
            wanted |= monitoring.metric_names(query)
    recorded = {name for name in wanted if ":" in name}
    assert len(wanted) > 20
    wait_for("all that is asked for is exposed", lambda: wanted - recorded <= names(watched.exposed()), 60)
    documented = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/fleet-metrics.md").read_text(), re.MULTILINE))
    wait_for("all that is documented is told", lambda: documented <= names(monitoring.fetch(watched.exporter_url)), 60)
    assert names(monitoring.fetch(watched.exporter_url)) <= documented


def grave_alerts(watched) -> set[str]:
    raised = {name for name, state in watched.alerts().items() if state == "firing"}
    return raised & {"SignalboxNoLeader", "SignalboxProcessDown", "SignalboxEngineGone", "SignalboxPlanOld"}


@needs_prometheus
def test_a_real_prometheus_answers_the_dashboards(laptop, watched):
    urls = [laptop.url("router-east"), laptop.url("router-west")]
    load = Load(lambda n: chat(urls[n % 2], ("m-large", "m-small")[n // 2 % 2], unlike(n), 8), 10)
    watched.start(interval="500ms")
    try:
        watched.wait("sum(rate(signalbox_router_requests_total[5s]))", lambda s: s and float(s[0]["value"][1]) > 1, 90)
        watched.wait('up{job="signalbox"} == 1', lambda s: {series["metric"]["process"] for series in s} == set(watched.processes), 60)
        quiet = {"fleet: Alerts of the fleet", "engines: Health", "processes: Bus: dropped by reason"}  # nothing is wrong
        for name, dashboard in monitoring.dashboards().items():
            for panel, query in monitoring.expressions(dashboard):
                if f"{name}: {panel}" in quiet:
                    watched.query(query)
                else:
                    watched.wait(query.replace("[1m]", "[10s]"), bool, 60)
        wait_for("what is well raises nothing", lambda: not grave_alerts(watched), 60)
    finally:
        load.stop()
