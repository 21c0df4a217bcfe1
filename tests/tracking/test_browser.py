"""Omniboard in a real browser, on runs recorded through the real code. Screenshots stay under tests/artifacts/."""

import shutil
from contextlib import contextmanager

import pytest

from tests.tracking import real_runs, toy
from tests.tracking.conftest import ROOT, services

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1600,1000"
)
SECONDS = 60
LAYOUT = "default|RunsTable|1"  # where the page keeps its table's layout, in the browser
CELLS = {"mini-castle-1shot", "mini-acastle-5shot", "office-castle-1shot", "office-dfsl-1shot"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium with a fresh profile."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("NO BROWSER HERE: Omniboard is not tested; install chromium and chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.set_page_load_timeout(SECONDS)
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def page(browser, installed, tmp_path_factory):
    """Omniboard's first page, with three finished runs and a failed one."""
    runs, home = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("board")
    (home / "omniboard").symlink_to((installed / "omniboard").resolve())
    toy.record(runs, "mini-castle-1shot", steps=30, seed=1)
    toy.record(runs, "mini-acastle-5shot", steps=30, seed=2, method="acastle", shot=5)
    toy.record(runs, "office-castle-1shot", steps=30, seed=3, dataset="office")
    with pytest.raises(RuntimeError):
        toy.record(runs, "office-dfsl-1shot", seed=4, dataset="office", method="dfsl", trouble="crash")
    with shown(runs, home) as address:
        yield address


@contextmanager
def shown(runs, home):
    """Omniboard on a folder of runs: its address."""
    port = services.free_port()
    with services.embedded_server(home) as (_, url):
        with services.opened(url) as (database, known):
            services.arrange_columns(database)
            assert services.sync(runs, database, known, lambda _: None) == []
        with services.dashboard(home, home / "omniboard", url, port):
            yield f"http://127.0.0.1:{port}/"


@pytest.fixture
def board(browser, page):
    """The browser on the table of runs."""
    browser.get(page)
    until(browser, lambda: len(rows(browser)) >= 3)
    yield browser
    severe = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [message for message in severe if "favicon" not in message and "ReactList" not in message] == []


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


def test_it_opens_on_dataset_method_shot_and_measures_of_every_run(board):
    headers = [header.text.strip() for header in all_of(board, "[test-attr^=header-sort-]")]
    wanted = ["Id", "Experiment Name", "Cell", "Dataset", "Method", "Shot", "HM", "Acc", "AUSUC", "Status", "Duration"]
    assert headers[: len(wanted)] == wanted
    table = {row[row.index("toy") + 1]: row[row.index("toy") + 2 :] for row in rows(board)}
    assert table["mini-acastle-5shot"][:7] == ["mini", "acastle", "5", "62", "72", "0.5", "COMPLETED"]
    assert table["office-castle-1shot"][:7] == ["office", "castle", "1", "63", "73", "0.5", "COMPLETED"]
    assert table["office-dfsl-1shot"][:4] == ["office", "dfsl", "1", "FAILED"]
    assert len(table) == 4
    keep(board, "runs")


def test_a_runs_metrics_are_plotted(board):
    click(board, ".public_fixedDataTableCell_cellContent a", "►")
    until(board, lambda: plotted(board) == ["loss", "val.hm"])
    curves = [curve.get_attribute("d") for curve in all_of(board, ".js-plotly-plot .scatterlayer .js-line")]
    assert curves[0].count("L") == 4  # the loss bends at each of its five points
    keep(board, "metrics")


def test_a_failed_runs_traceback_output_artifacts_sources_and_config_can_be_read(board):
    click(board, ".public_fixedDataTableCell_cellContent a", "►")
    click(board, "#sidebar a", "Fail Trace")
    until(board, lambda: "RuntimeError: boom" in board.find_element("css selector", ".tab-content").text)
    for tab, expected in {
        "Captured Out": "done with office-dfsl-1shot",
        "Source Files": ".py",  # a virtual list: which of them are in view depends on how many were loaded
        "Config": "dfsl",
        "Host Info": "python_version",
        "Experiment Details": "dependencies",
    }.items():
        click(board, "#sidebar a", tab)
        until(board, lambda expected=expected: expected in board.find_element("css selector", ".tab-content").text)


def test_two_runs_are_compared(board):
    boxes = all_of(board, ".public_fixedDataTable_bodyRow input[type=checkbox]")
    for box in boxes[1:3]:
        board.execute_script("arguments[0].click()", box)
    until(board, lambda: board.find_element("id", "compare_runs").is_enabled())
    board.find_element("id", "compare_runs").click()
    title = board.find_element("css selector", ".compare-runs-modal .modal-title")
    until(board, lambda: title.text == "Compare 2 Runs [3, 2]")
    until(board, lambda: plotted(board) == ["2-loss", "3-loss", "2-val.hm", "3-val.hm"])
    keep(board, "compare-metrics")
    click(board, ".compare-runs-modal #sidebar a", "Config")
    until(board, lambda: "acastle" in board.find_element("css selector", ".compare-runs-modal .tab-content").text)
    keep(board, "compare-config")
    click(board, ".compare-runs-modal #sidebar a", "Captured Out")
    until(board, lambda: "done with" in board.find_element("css selector", ".compare-runs-modal .tab-content").text)
    click(board, ".compare-runs-modal #sidebar a", "Source Files")
    until(board, lambda: ".py" in board.find_element("css selector", ".compare-runs-modal").text)
    keep(board, "compare-sources")


@pytest.mark.parametrize(
    ("status", "name", "operator", "value", "expected"),
    [
        ("FAILED", "", "", "", {"office-dfsl-1shot"}),
        ("", "config.dataset", "$eq", "mini", {"mini-castle-1shot", "mini-acastle-5shot"}),
        ("", "result.hm", "$gte", "62", {"mini-acastle-5shot", "office-castle-1shot"}),
        ("", "config.cell", "$regex", "^office", {"office-castle-1shot", "office-dfsl-1shot"}),
        ("", "duration", "$gt", "1h", set()),
    ],
)
def test_the_table_is_filtered(board, status, name, operator, value, expected):
    filters = {
        "status": [status] if status else [],
        "advanced": [{"name": name, "operator": operator, "value": value}] if name else [],
    }
    change = """
      const layout = JSON.parse(localStorage[arguments[0]]);
      layout.filters = arguments[1];
      localStorage[arguments[0]] = JSON.stringify(layout);
    """
    board.execute_script(change, LAYOUT, filters)
    board.refresh()
    until(board, lambda: f"{len(expected)} experiments" in board.find_element("css selector", ".count-text").text)
    until(board, lambda: {cell for row in rows(board) for cell in row} & CELLS == expected)
    board.execute_script(change, LAYOUT, {"status": [], "advanced": []})


def test_the_table_is_sorted_by_a_measure(board):
    def order():
        return [cell for row in rows(board) for cell in row if cell in CELLS]

    click(board, "[test-attr=header-sort-HM]")
    until(board, lambda: order()[:3] == ["office-castle-1shot", "mini-acastle-5shot", "mini-castle-1shot"])
    click(board, "[test-attr=header-sort-HM]")
    until(board, lambda: order()[1:] == ["mini-castle-1shot", "mini-acastle-5shot", "office-castle-1shot"])


def test_a_metric_column_shows_the_last_value(board, page):
    script = """
      const done = arguments[arguments.length - 1];
      fetch('/sacred/api/v1/Omniboard.Metric.Columns', {method: 'POST', headers: {'Content-Type': 'application/json'},
        body: JSON.stringify({name: 'last loss', metric_name: 'loss', extrema: 'last'})})
        .then((reply) => { localStorage.clear(); done(reply.status); });
    """
    assert board.execute_async_script(script) == 201
    board.get(page + "sacred")
    reply = board.execute_async_script(
        "const done = arguments[0]; fetch('/sacred/api/v1/Runs?select=_id,last loss').then(r => r.json()).then(done)"
    )
    assert {run["_id"]: run["last loss"] for run in reply} == {
        1: pytest.approx(11 / 30), 2: pytest.approx(12 / 30), 3: pytest.approx(13 / 30), 4: pytest.approx(14 / 5)
    }  # fmt: skip
    until(board, lambda: "Last loss" in board.find_element("tag name", "body").text)


def test_runs_of_the_real_stages_are_listed_plotted_and_compared(browser, installed, tmp_path_factory):
    home = tmp_path_factory.mktemp("real board")
    (home / "omniboard").symlink_to((installed / "omniboard").resolve())
    with shown(real_runs.record(tmp_path_factory.mktemp("real")), home) as address:
        browser.get(address)
        until(browser, lambda: len(rows(browser)) == len(real_runs.STAGES))
        evaluated = [row for row in rows(browser) if "evaluate" in row]
        assert {row[row.index("evaluate") + 3] for row in evaluated} == {"castle", "protonet"}
        assert all("COMPLETED" in row for row in rows(browser))
        keep(browser, "real-runs")
        boxes = all_of(browser, ".public_fixedDataTable_bodyRow input[type=checkbox]")
        for box in boxes[2:4]:  # newest first: behind the two evaluations stand the two trainings
            browser.execute_script("arguments[0].click()", box)
        until(browser, lambda: browser.find_element("id", "compare_runs").is_enabled())
        browser.find_element("id", "compare_runs").click()
        until(browser, lambda: sum(name.endswith("-loss") for name in plotted(browser)) == 2)
        keep(browser, "real-compare")
        browser.get(address)
        until(browser, lambda: len(rows(browser)) == len(real_runs.STAGES))
        click(browser, ".public_fixedDataTableCell_cellContent a", "►")
        click(browser, "#sidebar a", "Artifacts")
        until(browser, lambda: "metrics.json" in browser.find_element("css selector", ".tab-content").text)
