"""Omniboard in a headless Chromium: start it, look at its table, click. Screenshots stay under tests/artifacts/."""

import shutil
from contextlib import contextmanager

import pytest

from tests.paths import ROOT
from tests.tracking.conftest import services

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1600,1000"
)
SECONDS = 60


@contextmanager
def chromium(profile):
    """A headless browser with this folder as its profile."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (program and driver):
        pytest.skip("NO BROWSER HERE: Omniboard is not tested; install chromium and chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.set_page_load_timeout(SECONDS)
    try:
        yield browser
    finally:
        browser.quit()


@contextmanager
def shown(runs, home, named=None):
    """Omniboard on a folder of runs: its address. The user may have named another."""
    port = services.free_port()
    with services.embedded_server(home) as (_, url):
        with services.runs_on_server(url) as (database, known):
            services.arrange_columns(database)
            assert services.sync(runs, database, known, lambda _: None) == []
        with services.dashboard(home, home / "omniboard", url, port, named):
            yield f"http://127.0.0.1:{port}/"


def until(browser, condition):
    """Wait for the page."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser, SECONDS, 0.1, ignored_exceptions=[StaleElementReferenceException])
    return wait.until(lambda _: condition())


def all_of(browser, selector):
    return browser.find_elements("css selector", selector)


def rows(browser):
    """The text of each row of the table, cell by cell."""
    found = all_of(browser, ".public_fixedDataTable_bodyRow")
    return [row.text.split("\n") for row in found if row.text.strip()]


def click(browser, selector, text=None):
    """Click the first element that the selector and its text name."""
    element = until(
        browser,
        lambda: next((item for item in all_of(browser, selector) if text is None or item.text.strip() == text), None),
    )
    browser.execute_script("arguments[0].click()", element)


def keep(browser, name):
    """Keep a picture of the page."""
    folder = ROOT / "tests" / "artifacts"
    folder.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(folder / f"omniboard-{name}.png"))


def plotted(browser):
    """Names of the curves that are drawn."""
    return [item.text for item in all_of(browser, ".js-plotly-plot .legendtext")]


def severe(browser):
    """What the page complained about, but for two things of Omniboard's own that do no harm."""
    entries = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    return [message for message in entries if "favicon" not in message and "ReactList" not in message]


def new_home(installed, folder):
    """A home for the tools with nothing but the installed Omniboard in it."""
    (folder / "omniboard").symlink_to((installed / "omniboard").resolve())
    return folder
