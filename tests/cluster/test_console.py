"""The console in a real browser: the fleet as it is, as it was, small and large, by mouse, by keyboard, in the dark."""

import importlib.util
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from big_fleet import BigFleet
from fleet import ROOT, Fleet, example, size, stop_all, wait_for
from load import Load, chat, unlike

CHROMIUM = shutil.which("chromium")
SHOTS = ROOT / "build" / "screenshots"

pytestmark = pytest.mark.skipif(CHROMIUM is None or importlib.util.find_spec("playwright") is None,
                                reason="no Chromium, or no Playwright to drive it: tools/setup console")


def options(fleet) -> list:
    return ["--config", fleet.file, "--state-dir", fleet.state, "--keys-dir", fleet.folder / "keys"]


class Console:
    def __init__(self, binary, arguments: list):
        self.process = subprocess.Popen([binary, "console", "--listen", "127.0.0.1:0", *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://"), self.process.stderr.read()

    def get(self, path: str):
        return json.loads(urllib.request.urlopen(self.url + path, timeout=20).read())

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=60)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser):
    """open_page(url, **context) -> page; the test fails if the page logs an error or asks for anything elsewhere."""
    pages = []

    def make(url: str, **context):
        page = browser.new_context(viewport={"width": 1280, "height": 900}, **context).new_page()
        page.set_default_timeout(60_000)
        page.errors = []
        page.on("console", lambda message: page.errors.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("request", lambda request: page.errors.append(f"asks {request.url}") if not request.url.startswith((url.partition("#")[0], "data:", "blob:")) else None)
        page.goto(url)
        pages.append(page)
        return page
    yield make
    for page in pages:
        assert page.errors == []
        page.context.close()


@pytest.fixture(scope="module")
def busy(tmp_path_factory, request):
    """A laptop fleet of this file's own, under load, with its console."""
    fleet = Fleet(tmp_path_factory.mktemp("console"), example("laptop.toml"))
    try:
        fleet.up()
        urls = [fleet.url("router-east"), fleet.url("router-west")]
        load = Load(lambda n: chat(urls[n % 2], ("m-large", "m-small")[n // 2 % 2], unlike(n), 16), 8)
        console = Console(fleet.binary, options(fleet))
        fleet.console, fleet.load = console, load
        wait_for("load flows", lambda: len(load.so_far()) >= 10, 30)
        yield fleet
        load.stop()
        assert console.stop() == 0
    finally:
        stop_all([fleet], request.node)


def until(page, expression: str, timeout_s: float = 60) -> None:
    """Waits until a JavaScript expression holds. The page's policy forbids the eval() of Playwright's own waiting."""
    wait_for(expression, lambda: page.evaluate(expression), timeout_s)


def drawn(page, times: int) -> None:
    """Waits until the page has drawn so many more states."""
    until(page, f"signalbox.durations.length >= {page.evaluate('signalbox.durations.length') + times}")


def shot(page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


def test_it_shows_the_running_fleet(busy, open_page):
    page = open_page(busy.console.url)
    page.wait_for_selector("#topology g.ready")
    assert page.locator("#topology g[role=button]").count() == 6
    until(page, "document.querySelectorAll('#topology path.flow').length >= 2")
    until(page, "document.querySelectorAll('#demand-table tbody tr').length >= 4")
    until(page, "document.getElementById('summary').textContent.includes('6 of 6 serve')")
    drawn(page, 8)
    shot(page, "overview")
    for key, view in zip("12345", ("overview", "engines", "plan", "timeline", "decisions")):
        page.keyboard.press(key)
        assert page.locator(f"#{view}").is_visible()
        drawn(page, 2)
        shot(page, view)
    page.keyboard.press("3")
    until(page, "document.querySelectorAll('#snapshot-table tbody tr').length === 2")
    until(page, "document.getElementById('snapshot-table').textContent.includes('optimal')")


def test_a_decision_is_found_and_explained(busy, open_page):
    answer = chat(busy.url("router-west"), "m-large", unlike(99), 4)
    assert answer.good
    page = open_page(busy.console.url + "#decisions")
    page.fill("#decision-id", answer.decision)
    page.keyboard.press("Enter")
    page.wait_for_selector("#explanation:not([hidden])")
    sentence = page.inner_text("#explanation-sentence")
    assert answer.decision in sentence and "class chat" in sentence
    assert page.locator("#explanation-costs tbody tr").count() == 6
    assert answer.engine in page.inner_text("#explanation-costs tr.chosen")
    page.wait_for_selector("#explanation-weights:not([hidden]) tbody tr")
    assert "the plan that the decision read" in page.inner_text("#explanation-plan")
    assert answer.engine in page.inner_text("#explanation-weights")
    shot(page, "explanation")
    page.wait_for_selector("#recent-table button.link")  # published, as somebody listens
    page.fill("#decision-id", "no-such-decision")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('decision-error').textContent.includes('no router keeps decision')")
    page.errors[:] = [error for error in page.errors if "404" not in error]


def test_keyboard_dark_and_names(busy, open_page):
    page = open_page(busy.console.url, color_scheme="dark")
    page.wait_for_selector("#topology g.ready")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    until(page, "signalbox.durations.length > 4")
    shot(page, "overview-dark")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.focus("#tab-overview")
    page.keyboard.press("ArrowRight")
    assert page.locator("#engines").is_visible() and page.evaluate("document.activeElement.id") == "tab-engines"
    page.keyboard.press("/")
    page.keyboard.type("w1")
    until(page, "document.querySelectorAll('#engine-table tbody tr').length === 1")
    page.press("#engine-filter", "Tab")
    page.locator("#engine-table button.link").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#engine-detail:not([hidden])")
    assert page.inner_text("#engine-detail-title") == "Engine w1"
    until(page, "document.getElementById('engine-detail-body').textContent.includes('weight for chat')")
    nameless = page.evaluate("""() => [...document.querySelectorAll('button, input, select, canvas, table, [role=img], svg[role], g[tabindex]')]
        .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.title)).map(e => e.outerHTML.slice(0, 80))""")
    assert nameless == []


def contrast(page) -> list:
    """Pairs of text and background colours on the page whose contrast is under 4.5."""
    return page.evaluate("""() => {
        const parts = text => text.match(/[\\d.]+/g).map(Number);
        const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
        const back = e => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
        const bad = [];
        for (const e of document.querySelectorAll('main *, header *, footer *')) {
            if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility() || e.closest('svg')) continue;
            const a = light(parts(getComputedStyle(e).color)), b = light(back(e));
            const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
            if (ratio < 4.5) bad.push(`${e.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
        }
        return bad;
    }""")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(busy, open_page, scheme):
    page = open_page(busy.console.url, color_scheme=scheme)
    page.wait_for_selector("#topology g.ready")
    for key in "12345":
        page.keyboard.press(key)
        drawn(page, 1)
        assert contrast(page) == []


def test_it_only_reads(busy):
    for method in ("POST", "PUT", "DELETE"):
        request = urllib.request.Request(busy.console.url + "fleet", data=b"{}", method=method)
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=10)
        assert error.value.code == 405
    assert set(busy.console.get("fleet")) == {"version", "fleet", "recording", "clusters", "engines", "states", "bindings"}


def changes_of(page, engine: str) -> list[str]:
    """How this engine's health changed, as the list of events shows it, the oldest first."""
    rows = page.evaluate("[...document.querySelectorAll('#event-table tbody tr')].map(r => [...r.cells].slice(1, 5).map(c => c.textContent).join(' '))")
    return [row for row in reversed(rows) if row.startswith(f"health {engine}") and "–" not in row]


def test_a_killed_engine_turns_red_and_a_recording_shows_the_same(busy, open_page, tmp_path):
    file = tmp_path / "killed.sbx"
    tap = subprocess.Popen([busy.binary, "tap", "--quiet", "--record", file, *map(str, options(busy))], stderr=subprocess.DEVNULL)
    page = open_page(busy.console.url)
    page.wait_for_selector("#topology g.ready")
    wait_for("the tap records", lambda: file.exists() and file.stat().st_size > 20_000, 60)
    busy.signalbox("stop", "w2")
    began = time.monotonic()
    page.wait_for_selector("#topology g.gone, #topology g.suspect", timeout=60_000)
    red = time.monotonic() - began
    print(f"red after {red:.2f} s")
    page.wait_for_selector("#topology g.gone", timeout=60_000)
    shot(page, "engine-gone")
    page.keyboard.press("4")
    live = wait_for("the loss is told", lambda: (told := changes_of(page, "w2")) and "gone" in told[-1] and told, 60)
    shot(page, "timeline-gone")
    tap.terminate()
    assert tap.wait(timeout=60) == 0
    busy.signalbox("restart", "w2")

    # On another machine there is nothing but the file.
    console = Console(busy.binary, ["--recording", file])
    try:
        page = open_page(console.url + "#timeline")
        page.wait_for_selector("#replay:not([hidden])")
        until(page, "document.getElementById('replay-at').max > 1")
        end = float(page.get_attribute("#replay-at", "max"))
        page.fill("#replay-at", f"{end:.1f}")
        page.dispatch_event("#replay-at", "change")
        until(page, "document.getElementById('event-table').textContent.includes('gone')")
        past = changes_of(page, "w2")
        # The recording began later than the console that was live, and ended later.
        assert any(live[-n:] == past[:n] and any("gone" in change for change in past[:n]) for n in range(1, len(live) + 1)), (live, past)
        shot(page, "recording")
        page.goto("about:blank")
    finally:
        console.stop()


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    folder = tmp_path_factory.mktemp("big")
    file = folder / "big.sbx"
    BigFleet(folder / "fleet", 2000).record(file, 10)
    return file


def task_s(session) -> float:
    return next(m["value"] for m in session.send("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")


def test_two_thousand_engines_are_shown_in_little_time(busy, open_page, big):
    console = Console(busy.binary, ["--recording", big])
    try:
        page = open_page(console.url)
        page.wait_for_selector("canvas.grid", timeout=60_000)
        session = page.context.new_cdp_session(page)
        session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})  # the thread's own time: others' load counts for less
        session.send("Performance.enable")
        page.evaluate("signalbox.durations.length = 0")
        before = task_s(session)
        drawn(page, 12)
        spent = sorted(page.evaluate("signalbox.durations"))
        each_ms = 1e3 * (task_s(session) - before) / len(spent)
        p95_ms = spent[int(0.95 * (len(spent) - 1))]
        print(f"{len(spent)} updates: drawing takes {p95_ms:.1f} ms (95th percentile), the main thread's own time {each_ms:.1f} ms each")
        assert each_ms < size("console_task_ms")
        assert p95_ms < size("console_update_ms")
        shot(page, "big-overview")
        page.keyboard.press("2")
        until(page, "document.querySelectorAll('#engine-table tbody tr').length === 50")
        until(page, "document.getElementById('engine-table').textContent.includes('gone')", 60)
        shot(page, "big-engines")
        page.keyboard.press("1")
        page.focus("canvas.grid")
        page.keyboard.press("ArrowRight")
        assert "gpu-" in page.inner_text("#grid-tip")
        page.goto("about:blank")
    finally:
        console.stop()
