"""`signalbox simulate` hands over to the program beside it, and its errors name what was typed."""

import subprocess

import pytest

from fleet import ROOT, find_binary

STEP = ROOT / "tests/scenarios/step.toml"


def simulate(*arguments):
    return subprocess.run([find_binary(), "simulate", *map(str, arguments)], capture_output=True, text=True, timeout=600)


def test_a_run_is_told_and_drawn(tmp_path):
    done = simulate(STEP, "--compare", "--svg", tmp_path / "weights.svg")
    assert done.returncode == 0, done.stderr
    assert "step: global-optimizer" in done.stdout and "step: feedback-balancer" in done.stdout
    assert "engine e1 takes 3 times as long" in done.stdout
    svg = (tmp_path / "weights.svg").read_text()
    assert svg.startswith("<svg") and svg.count("<path") > 12


def test_the_same_seed_gives_the_same_report():
    one, two, other = (simulate(STEP, "--seed", seed, "--json", "-").stdout for seed in (7, 7, 8))
    assert one.startswith("{") and one == two and one != other


@pytest.mark.parametrize("arguments, named", [
    (["no-such.toml"], "no-such.toml"),
    ([STEP, "--control", "magic"], "magic"),
    ([STEP, "--seeds", "none"], "none"),
    ([STEP, "--sed", "7"], "--sed"),
    ([STEP, "--svg", "no-such-folder/x.svg"], "no-such-folder/x.svg"),
], ids=["scenario", "control", "seeds", "option", "svg"])
def test_a_mistake_is_named_as_it_was_typed(arguments, named):
    done = simulate(*arguments)
    assert done.returncode in (1, 2)
    assert named in done.stderr, done.stderr


def test_help_speaks_of_the_command_that_was_typed():
    done = simulate("--help")
    assert done.returncode == 0
    assert "Usage: signalbox simulate " in done.stdout
