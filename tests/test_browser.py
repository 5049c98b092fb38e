"""The page in a real browser: live without reloading, text stays text, keyboard, dark, 400 px."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

from serving import ODD, Process, copy_of, finished_run, people

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: `make browser` installs Debian's Chromium"
)


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    run = copy_of(finished_run(tmp_path_factory), folder / "served")
    process = Process(run, "--rows", "20")
    yield process
    assert process.stop() == 0


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def play(process, count, seed):
    rows = people(count, seed)
    process.http.post("/v1/predict", json={"rows": [row for row, _ in rows]})
    labels = [{"id": row["id"], "label": label} for row, label in rows]
    process.http.post("/v1/labels", json={"labels": labels})


def opened(browser, process, **settings):
    """The page once it is live; whatever it complains of is an error."""
    page = browser.new_page(**settings)
    page.set_default_timeout(120_000)
    problems = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append("a script from the data ran"))
    page.goto(process.address)
    page.locator("#connection", has_text="live").wait_for()
    return page, problems


def test_rounds_appear_without_reloading_and_names_from_the_data_stay_text(browser, process):
    page, problems = opened(browser, process)
    play(process, 60, seed=1)
    page.locator("body[data-rounds='3']").wait_for()
    page.locator("#sentence", has_text="by sex").wait_for()
    assert page.locator("figure").count() == 7
    assert ODD in page.locator(".legend").nth(2).inner_text()
    assert page.locator("main script").count() == 0
    readout = page.locator(".readout").first
    assert readout.get_attribute("aria-live") != "polite"  # not read aloud with every round
    page.locator("summary").focus()
    page.keyboard.press("Tab")  # the next thing that takes the keyboard is the first chart
    page.keyboard.press("ArrowLeft")
    assert "equalized odds by sex" in readout.inner_text()
    assert readout.get_attribute("aria-live") == "polite"
    for role, name in (("heading", "Alarms"), ("group", "Accuracy"), ("status", "")):
        assert page.get_by_role(role, name=name).count() >= 1
    assert page.locator("#verdict[aria-live=polite]").count() == 1
    assert problems == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(browser, process, scheme):
    phone = {"viewport": {"width": 400, "height": 800}, "color_scheme": scheme}
    page, problems = opened(browser, process, **phone)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    light = [sum(map(int, one[4:-1].split(","))) for one in (ink, paper)]
    assert (light[0] < light[1]) == (scheme == "light")
    assert problems == []
    page.close()
