"""top, in a real terminal."""

import re

import pytest

from fleet import wait_for
from load import Load, chat, unlike
from screen import Screen


def options(fleet) -> list:
    return ["--config", fleet.file, "--state-dir", fleet.state, "--keys-dir", fleet.folder / "keys"]


@pytest.fixture(scope="module")
def busy(laptop):
    urls = [laptop.url("router-east"), laptop.url("router-west")]
    load = Load(lambda n: chat(urls[n % 2], ("m-large", "m-small")[n // 2 % 2], unlike(n), 16), 10)
    wait_for("load flows", lambda: len(load.so_far()) >= 10, 30)
    yield laptop
    load.stop()


@pytest.fixture
def top(busy):
    made = []

    def make(*arguments, columns=80, lines=24):
        made.append(Screen([busy.binary, "top", "--every", "0.2", *options(busy), *arguments], columns, lines))
        return made[-1]
    yield make
    for screen in made:
        if screen.process.poll() is None:
            screen.type("q")
            screen.end()


def engines_of(text: str) -> list[str]:
    return re.findall(r"^([ew][123]) ", text, re.MULTILINE)


def uses_of(text: str) -> list[int]:
    return [int(use) for use in re.findall(r"[#-]{10} +(\d+)%", text)]


def is_complete(text: str) -> bool:
    return len(engines_of(text)) == 6 and "leader optimizer" in text and re.search(r"w1 .*\d+%", text) is not None


def stands_still(screen: Screen) -> bool:
    before = screen.text()
    screen.read(2.0)
    return screen.text() == before


@pytest.mark.parametrize("columns, lines", [(80, 24), (120, 40)])
def test_everything_is_on_one_screen(top, columns, lines):
    screen = top(columns=columns, lines=lines)
    wanted = ("laptop", "6 engines, 6 serving", r"demand \d+\.\d/s", "alerts 0", r"east: 3 engines, \d ready", r"west: 3 engines, \d ready")
    text = screen.wait_for(lambda t: is_complete(t) and all(re.search(word, t) for word in wanted))
    print(text)
    assert ("TTFT" in text) == (columns >= 92)
    screen.type("q")
    assert screen.end() == 0


def test_keys_sort_filter_and_look_closer(top):
    screen = top("--sort", "use")
    screen.wait_for(is_complete)
    screen.type("c")
    screen.wait_for(lambda t: "3 engines" not in t and is_complete(t) and uses_of(t) == sorted(uses_of(t), reverse=True))
    screen.type("r")
    screen.wait_for("(reversed)")
    screen.type("/w")
    text = screen.wait_for(lambda t: set(engines_of(t)) == {"w1", "w2", "w3"})
    assert "filter" in text
    screen.type("1\n\n")
    text = screen.wait_for("engine w1")
    assert "health" in text and "price" in text and "weights" in text
    screen.type("\x1b")
    screen.wait_for(lambda t: engines_of(t) == ["w1"])
    screen.type("?")
    screen.wait_for("look closer at the chosen engine")
    screen.type("?")


def test_views_and_explanations(top, busy):
    screen = top(columns=120, lines=40)
    screen.wait_for(is_complete)
    for view, word in (("demand", "chat"), ("routers", "router-west"), ("processes", "optimizer-1"), ("alerts", "none|warning|critical|info")):
        screen.type("\t")
        screen.wait_for(lambda t, view=view, word=word: t.splitlines()[3].startswith(view) and re.search(word, t))
    answer = chat(busy.url("router-west"), "m-large", unlike(7), 4)
    assert answer.good
    screen.type(f"e{answer.decision}\n")
    screen.wait_for(lambda t: f"{answer.decision} is of class chat" in t and "candidates" in t and answer.engine in t)
    screen.type("\x1b")
    screen.type("enonsense\n")
    screen.wait_for("no router keeps decision 'nonsense'")


def test_it_follows_the_terminals_size_and_stops_when_told(top):
    screen = top()
    screen.wait_for(is_complete)
    screen.resize(140, 30)
    screen.wait_for(lambda t: "EVIDENCE" in t and "signals_fresh" in t)
    screen.type(" ")
    screen.wait_for("stopped")
    # A picture that goes on shows another age of the plan each time.
    wait_for("the picture stands still", lambda: stands_still(screen), 60)
    screen.type(" ")
    screen.wait_for(lambda t: "stopped" not in t)


def test_without_a_terminal_or_a_bus_it_says_so(busy):
    done = busy.signalbox("top", check=False)
    assert done.returncode == 3 and "no terminal is here" in done.stderr
    screen = Screen([busy.binary, "top", *options(busy), "--port-base", "19900"])
    screen.wait_for("no forwarder of the bus is there")
    assert screen.end() == 3
