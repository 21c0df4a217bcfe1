"""Tags, notes and deletions made in Omniboard, in a real browser; they are there after the next start and copy."""

import json

import pytest

from tests.tracking import toy
from tests.tracking.browsing import all_of, click, keep, new_home, rows, shown, until

CELLS = ("mini-castle-1shot", "mini-acastle-5shot", "office-castle-1shot")


@pytest.fixture
def runs(tmp_path):
    """Three finished runs."""
    folder = tmp_path / "runs"
    for seed, cell in enumerate(CELLS):
        toy.record_toy(folder, cell, seed=seed)
    return folder


@pytest.fixture
def home(tmp_path, installed):
    """Where the embedded server keeps its data from one start to the next."""
    return new_home(installed, tmp_path)


def open_table(browser, address, number):
    """Wait for a table with that number of runs."""
    browser.get(address)
    until(browser, lambda: len(rows(browser)) == number)


def row_of(browser, cell):
    """The row of the run of this cell."""
    found = all_of(browser, ".public_fixedDataTable_bodyRow")
    return next((row for row in found if cell in row.text.split("\n")), None)


def inside(browser, cell, selector):
    """What the selector finds in that row, when it is there."""
    return until(browser, lambda: row_of(browser, cell).find_element("css selector", selector))


def asked(browser, path):
    """The answer of the server to the page."""
    script = "const done = arguments[1]; fetch(arguments[0]).then((reply) => reply.json()).then(done)"
    return browser.execute_async_script(script, path)


def stored(browser, cell):
    """What Omniboard keeps about the run of this cell."""
    found = asked(browser, "/sacred/api/v1/Runs?select=_id,meta.cell,omniboard")
    return next(run for run in found if run["meta"]["cell"] == cell).get("omniboard") or {}


def add_tag(browser, cell, tag):
    from selenium.webdriver.common.keys import Keys

    inside(browser, cell, ".select-cell input").send_keys(tag, Keys.ENTER)
    until(browser, lambda: tag in stored(browser, cell).get("tags", []))


def test_tags_are_kept(browser, runs, home):
    with shown(runs, home) as address:
        open_table(browser, address, 3)
        add_tag(browser, CELLS[1], "good")
        add_tag(browser, CELLS[1], "for the paper")
        keep(browser, "tags")
    toy.record_toy(runs, CELLS[1], seed=5)  # another run of the same cell has tags of its own
    with shown(runs, home) as address:
        open_table(browser, address, 4)
        tagged = [row for row in rows(browser) if "good" in row]
        assert [row[row.index("toy") + 1] for row in tagged] == [CELLS[1]]
        assert "for the paper" in tagged[0]


def test_notes_are_kept(browser, runs, home):
    note = "the seed with the large dictionary\nsee table 2"
    with shown(runs, home) as address:
        open_table(browser, address, 3)
        browser.execute_script("arguments[0].click()", inside(browser, CELLS[0], "[test-attr=edit-button]"))
        until(browser, lambda: all_of(browser, "textarea"))[0].send_keys(note)
        keep(browser, "note")
        click(browser, "button.editable-submit")
        until(browser, lambda: stored(browser, CELLS[0]).get("notes") == note)
    with shown(runs, home) as address:
        open_table(browser, address, 3)
        until(browser, lambda: "the seed with the large dictionary" in row_of(browser, CELLS[0]).text)
        assert stored(browser, CELLS[0])["notes"] == note


def test_a_deleted_run_stays_away_and_the_others_keep_their_files(browser, runs, home):
    with shown(runs, home) as address:
        open_table(browser, address, 3)
        browser.execute_script("arguments[0].click()", inside(browser, CELLS[1], "input[type=checkbox]"))
        until(browser, lambda: browser.find_element("id", "delete_runs").is_enabled())
        browser.find_element("id", "delete_runs").click()
        click(browser, "[test-attr=delete-btn]")
        until(browser, lambda: len(rows(browser)) == 2)
        keep(browser, "deleted")
        assert asked(browser, "/sacred/api/v1/Metrics?query=" + json.dumps({"run_id": 2})) == []
        assert len(asked(browser, "/sacred/api/v1/files/artifacts/1")) == 1
        names = {file["filename"] for file in asked(browser, "/sacred/api/v1/Fs.files")}
        assert [name for name in names if CELLS[1] in name] == []
    with shown(runs, home) as address:
        open_table(browser, address, 2)
        assert {row[row.index("toy") + 1] for row in rows(browser)} == {CELLS[0], CELLS[2]}
        sources = asked(browser, "/sacred/api/v1/files/source/3")
        assert {file["filename"] for file in sources} >= {"tests/tracking/toy.py", "stages/tracking/experiment.py"}
    toy.record_toy(runs, CELLS[1], seed=9)  # a new run of the deleted one's cell
    with shown(runs, home) as address:
        open_table(browser, address, 3)
        assert sorted(run["_id"] for run in asked(browser, "/sacred/api/v1/Runs?select=_id")) == [1, 3, 4]
