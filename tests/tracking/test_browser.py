"""Omniboard in a real browser, on runs recorded through the real code. Screenshots stay under tests/artifacts/."""

import pytest

from tests.tracking import curves, real_runs, toy
from tests.tracking.browsing import all_of, click, keep, new_home, plotted, rows, severe, shown, until

LAYOUT = "default|RunsTable|1"  # where the page keeps its table's layout, in the browser
CELLS = {"mini-castle-1shot", "mini-acastle-5shot", "office-castle-1shot", "office-dfsl-1shot"}


@pytest.fixture(scope="module")
def page(browser, installed, tmp_path_factory):
    """Omniboard's first page, with three finished runs and a failed one."""
    runs, home = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("board")
    (home / "omniboard").symlink_to((installed / "omniboard").resolve())
    toy.record_toy(runs, "mini-castle-1shot", steps=30, seed=1)
    toy.record_toy(runs, "mini-acastle-5shot", steps=30, seed=2, method="acastle", shot=5)
    toy.record_toy(runs, "office-castle-1shot", steps=30, seed=3, dataset="office")
    with pytest.raises(RuntimeError):
        toy.record_toy(runs, "office-dfsl-1shot", seed=4, dataset="office", method="dfsl", trouble="crash")
    with shown(runs, home) as address:
        yield address


@pytest.fixture
def board(browser, page):
    """The browser on the table of runs."""
    browser.get(page)
    until(browser, lambda: len(rows(browser)) >= 3)
    yield browser
    assert severe(browser) == []


def test_it_opens_on_dataset_method_shot_and_measures_of_every_run(board):
    headers = [header.text.strip() for header in all_of(board, "[test-attr^=header-sort-]")]
    wanted = "Id|Experiment Name|Cell|Dataset|Method|Shot|Seed|HM|AUSUC|Status|Duration|Start Time|Tags|Notes"
    assert headers == wanted.split("|")
    table = {row[row.index("toy") + 1]: row[row.index("toy") + 2 :] for row in rows(board)}
    assert table["mini-acastle-5shot"][:7] == ["mini", "acastle", "5", "2", "62", "0.5", "COMPLETED"]
    assert table["office-castle-1shot"][:7] == ["office", "castle", "1", "3", "63", "0.5", "COMPLETED"]
    assert table["office-dfsl-1shot"][:5] == ["office", "dfsl", "1", "4", "FAILED"]
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


def test_evaluations_are_compared_as_curves_over_ways_and_trainings_have_loss_and_validation(
    browser, installed, tmp_path_factory
):
    runs, home = tmp_path_factory.mktemp("curves"), new_home(installed, tmp_path_factory.mktemp("curve board"))
    curves.record_curves(runs, "castle", 65.0)
    curves.record_curves(runs, "acastle", 67.0)
    with shown(runs, home) as address:
        for boxes, expected in (((0, 2), curves.MEASURES), ((1, 3), ("loss", "val_hm"))):  # newest first
            browser.get(address)
            until(browser, lambda: len(rows(browser)) == 4)
            found = all_of(browser, ".public_fixedDataTable_bodyRow input[type=checkbox]")
            for box in boxes:
                browser.execute_script("arguments[0].click()", found[box])
            until(browser, lambda: browser.find_element("id", "compare_runs").is_enabled())
            browser.find_element("id", "compare_runs").click()
            numbers = [4 - box for box in reversed(boxes)]
            names = {f"{number}-{name}" for name in expected for number in numbers}
            until(browser, lambda names=names: set(plotted(browser)) == names)
            keep(browser, f"compare-{expected[0]}")
            drawn = browser.execute_script(
                "return document.querySelector('.js-plotly-plot').data.map((curve) => [curve.name, curve.x, curve.y])"
            )
            points = {name: (x, y) for name, x, y in drawn}
            if "hm" in expected:
                assert points["2-hm"] == (curves.WAYS, [62.5, 60.0, 57.5, 55.0])
                assert points["4-cal_hm"] == (curves.WAYS, [65.5, 63.0, 60.5, 58.0])
            else:
                assert len(points["1-loss"][0]) == curves.STEPS and points["3-val_hm"][0] == [10, 20, 30, 40]
