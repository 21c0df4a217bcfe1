"""The report in a real browser: nothing from the network, sortable, traceable, fit for a phone and for print."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from repro.report.figure_layout import DIAGRAMS, FIGURES
from repro.report.layout import TABLES
from repro.results.paper_claims import CLAIMS, DESCRIBED
from tests.report.conftest import MISSING, OF_BEFORE, Paper

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is NOT installed: the report was NOT opened")
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.remote.webdriver import WebDriver  # noqa: E402
from selenium.webdriver.remote.webelement import WebElement  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="chromium or chromedriver is NOT installed: the report was NOT opened in a browser",
)
QUIET = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1200,900"
).split()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    options = Options()
    options.binary_location = str(CHROMIUM)
    for argument in (*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: WebDriver, paper: Paper) -> WebDriver:
    """The report, freshly loaded at desktop size."""
    browser.set_window_size(1200, 900)
    browser.get("about:blank")
    browser.get(address(paper))
    return browser


def address(paper: Paper, anchor: str = "") -> str:
    return (paper.out / "report.html").as_uri() + anchor


def column(page: WebDriver, table: str, place: int) -> list[str]:
    """Sort values of one column in the order of the rows."""
    script = (
        "return [...document.getElementById(arguments[0]).tBodies[0].rows].map(row => {"
        " const cell = row.cells[arguments[1]];"
        " return 'value' in cell.dataset ? cell.dataset.value : cell.textContent; });"
    )
    return list(page.execute_script(script, table, place))


def sort_by(page: WebDriver, table: str, place: int) -> None:
    button = page.find_element(By.CSS_SELECTOR, f"#{table} th[data-column='{place}'] button")
    page.execute_script("arguments[0].click()", button)


def test_it_loads_without_errors_and_without_the_network(page: WebDriver) -> None:
    logs = [entry for entry in page.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert logs == []
    script = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    assert [name for name in page.execute_script(script) if not name.startswith("data:")] == []
    outside = (
        "[...document.querySelectorAll('[src], link, a[href]')].filter(each => /^http/.test(each.src || each.href))"
    )
    cited = page.execute_script(f"return {outside}.map(each => each.closest('#methods') ? '' : each.outerHTML)")
    assert cited and not any(cited)  # links to the cited papers, for whoever clicks them


def test_it_shows_every_section_table_figure_and_claim(page: WebDriver) -> None:
    for key in (
        "summary",
        "claims",
        "tables",
        "figures",
        "datasets",
        "trainings",
        "methods",
        "runs",
        "T1a",
        "T12",
        "F1",
        "F11",
    ):
        assert page.find_element(By.ID, key).is_displayed()
    assert len(page.find_elements(By.CSS_SELECTOR, "#tables table")) == len(TABLES)
    assert len(page.find_elements(By.CSS_SELECTOR, "#table-claims tbody tr")) == len(CLAIMS) + len(DESCRIBED)
    drawn = "[...document.querySelectorAll('#figures img')]"
    assert page.execute_script(f"return {drawn}.every(image => image.complete && image.naturalWidth > 100)")
    assert len(page.find_elements(By.CSS_SELECTOR, "#figures img")) == len(DIAGRAMS) + 1 + len(FIGURES)
    assert page.find_element(By.ID, "benchmark").text == "glyphs benchmark, scale laptop"


def test_a_place_shows_ours_published_and_difference(page: WebDriver) -> None:
    place = page.find_element(By.CSS_SELECTOR, "[data-place='T2/castle/1shot_hm']")
    ours, published, difference = place.text.splitlines()
    assert published == "66.22 ± 0.15"
    expected = float(ours.split()[0]) - 66.22
    assert float(difference.replace("−", "-")) == pytest.approx(expected, abs=1e-6)
    missing = page.find_element(By.CSS_SELECTOR, "[data-place='T2/l2ml/1shot_hm']")
    assert missing.text.splitlines() == ["–", "2.98 ± 0.06", "–"]


@pytest.mark.parametrize("table", ["table-T2", "table-T3", "table-T5"])
def test_a_click_sorts_numbers_down_then_up_with_dashes_last(page: WebDriver, table: str) -> None:
    place = 3
    before = column(page, table, place)
    sort_by(page, table, place)
    down = [value for value in column(page, table, place) if value]
    assert down == sorted(down, key=float, reverse=True)
    assert column(page, table, place)[len(down) :] == [""] * before.count("")
    sort_by(page, table, place)
    up = [value for value in column(page, table, place) if value]
    assert up == down[::-1] or up == sorted(down, key=float)
    assert column(page, table, place)[len(up) :] == [""] * before.count("")


def test_claims_sort_by_signed_effect(page: WebDriver) -> None:
    sort_by(page, "table-claims", 2)
    effects = [float(value.replace("−", "-")) for value in column(page, "table-claims", 2) if value != "–"]
    assert effects == sorted(effects, reverse=True) and min(effects) < 0 < max(effects)


def click(page: WebDriver, selector: str) -> None:
    page.execute_script("arguments[0].click()", page.find_element(By.CSS_SELECTOR, selector))


def opened_step(page: WebDriver, title: str) -> WebElement:
    """The step of this title in the dialog, which must be open and in view."""
    steps = page.find_elements(By.CSS_SELECTOR, "#chain .step")
    (step,) = [each for each in steps if each.find_element(By.TAG_NAME, "summary").text == title]
    assert step.get_attribute("open") is not None
    return step


def test_a_number_leads_by_clicks_to_its_dataset(page: WebDriver) -> None:
    dialog = page.find_element(By.ID, "chain")
    assert not dialog.is_displayed()
    number = page.find_element(By.CSS_SELECTOR, "[data-place='T2/castle/1shot_hm'] a")
    shown = number.text
    click(page, "[data-place='T2/castle/1shot_hm'] a")
    assert dialog.is_displayed() and page.find_element(By.ID, "chain-title").text == shown
    reading = "T2, CASTLE: HM of CASTLE, mini, 1-shot; 5 ways, labels seen and unseen; 64 tasks"
    for words in (reading, "mini-castle-1shot/0/tasks.parquet", "dvc repro evaluate@mini-castle-1shot"):
        assert words in dialog.text
    click(page, "#chain .step summary")
    for title, link in (
        ("Evaluation mini-castle-1shot, seed 0", "Training mini-castle-1shot, seed 0"),
        ("Training mini-castle-1shot, seed 0", "Pre-training mini-linear, seed 0"),
        ("Pre-training mini-linear, seed 0", "Dataset mini, seed 0"),
    ):
        step = opened_step(page, title)
        page.execute_script("arguments[0].click()", step.find_element(By.LINK_TEXT, link))
    dataset = opened_step(page, "Dataset mini, seed 0")
    page.execute_script("arguments[0].click()", dataset.find_element(By.CSS_SELECTOR, "details details summary"))
    assert '"stage_of": "mini"' in dataset.text
    click(page, "#chain form button")
    assert not dialog.is_displayed()


def test_a_number_leads_to_the_tables_and_claims_that_read_it(page: WebDriver) -> None:
    for target in ("T3", "claim-hm-mini-1shot-5"):
        click(page, "[data-place='T2/castle/1shot_hm'] a")
        assert page.find_element(By.CSS_SELECTOR, "#chain dd summary").text.endswith(" read it")
        click(page, f"#chain dd a[href='#{target}']")
        assert not page.find_element(By.ID, "chain").is_displayed()
        assert page.execute_script("return location.hash") == f"#{target}"


def test_every_step_leads_to_the_users_own_run(page: WebDriver, paper: Paper) -> None:
    click(page, "[data-place='T2/castle/1shot_hm'] a")
    links = [link.get_attribute("href") for link in page.find_elements(By.CSS_SELECTOR, "#chain a[href$='run.json']")]
    outputs = json.loads((paper.out / "provenance.json").read_text())["steps"].values()
    runs = (paper.out.parent / "runs" / "by_output").as_uri()
    assert len(links) == 5 and set(links) <= {f"{runs}/{step['output']}/run.json" for step in outputs}


def test_every_number_of_ours_is_clickable(page: WebDriver) -> None:
    click(page, "#table-measures tbody tr:nth-child(2) td:nth-child(6)")
    cell = page.find_element(By.CSS_SELECTOR, "#table-measures tbody tr:nth-child(2)").get_attribute("data-cell")
    assert f"{cell}/0/tasks.parquet" in page.find_element(By.ID, "chain").text
    unlinked = "return [...document.querySelectorAll('#tables .ours')].filter(each => !each.closest('a')).length"
    assert page.execute_script(unlinked) == 0
    missing = (
        "return [...document.querySelectorAll('[data-cell]')]"
        ".filter(each => !document.getElementById('cell-' + each.dataset.cell)).length"
    )
    assert page.execute_script(missing) == 0


def test_a_record_of_before_says_that_its_origin_is_not_recorded(page: WebDriver) -> None:
    click(page, f"#tables a[data-cell='{OF_BEFORE}']")
    assert "origin not recorded" in page.find_element(By.ID, "chain").text
    assert not page.find_elements(By.CSS_SELECTOR, "#chain .step")


def test_a_missing_cell_says_how_to_make_it(page: WebDriver, paper: Paper) -> None:
    page.get(address(paper, f"#cell-{MISSING}"))
    entry = page.find_element(By.ID, f"cell-{MISSING}")
    assert "not evaluated" in entry.text and f"dvc repro evaluate@{MISSING}" in entry.text


def test_a_phone_scrolls_tables_and_not_the_page(browser: WebDriver, paper: Paper) -> None:
    metrics = {"width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.get("about:blank")
        browser.get(address(paper))
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 375
        verdict = "return document.querySelector('td.verdict').getBoundingClientRect().right"
        assert browser.execute_script(verdict) <= 375
        wide = "const box = document.getElementById('table-T3').parentElement; return box.scrollWidth > box.clientWidth"
        assert browser.execute_script(wide)
        small = (
            "return [...document.querySelectorAll('main td, main p, figcaption')]"
            ".filter(each => parseFloat(getComputedStyle(each).fontSize) < 12).length"
        )
        assert browser.execute_script(small) == 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_tables_of_the_paper_fit_a_screen_of_1280_pixels(page: WebDriver) -> None:
    page.set_window_size(1280, 900)
    wide = "box => box.scrollWidth > box.clientWidth"
    assert page.execute_script(f"return [...document.querySelectorAll('#tables .scroll')].filter({wide})") == []
    assert page.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_it_prints(page: WebDriver, tmp_path: Path) -> None:
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF") and len(pdf) > 100_000
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not page.find_element(By.TAG_NAME, "nav").is_displayed()
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_every_table_fits_a_printed_page_and_repeats_its_head(page: WebDriver) -> None:
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    a4 = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", a4)
    try:
        wide = "each => each.scrollWidth > each.parentElement.clientWidth"
        assert page.execute_script(f"return [...document.querySelectorAll('table')].filter({wide})") == []
        # Chromium leaves out buttons, which are boxes of their own, where it repeats a head.
        button = page.find_element(By.CSS_SELECTOR, "#table-measures th button")
        assert button.value_of_css_property("display") == "contents"
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_an_editions_report_leads_to_the_same_runs(page: WebDriver, paper: Paper, tmp_path: Path) -> None:
    folder = tmp_path / "paper" / "editions" / "mine"
    folder.mkdir(parents=True)
    shutil.copy(paper.out / "report.html", folder)
    page.get((folder / "report.html").as_uri())
    runs = page.execute_script("return [...document.querySelectorAll('.step a')].map(each => each.href)")
    there = [address for address in runs if address.endswith("run.json")]
    assert there and all(address.startswith((tmp_path / "runs" / "by_output").as_uri()) for address in there)


def test_the_title_of_a_measure_is_one_number(page: WebDriver) -> None:
    place = "#table-measures tbody tr:nth-child(2) td:nth-child(6)"
    wider = "arguments[0].insertAdjacentHTML('beforeend', '<span class=theirs>± 4.21</span>')"
    page.execute_script(wider, page.find_element(By.CSS_SELECTOR, place))
    click(page, place)
    mean, interval = page.find_element(By.ID, "chain-title").text.split(" ± ")
    assert float(mean) and float(interval)
    assert page.find_element(By.ID, "chain-reading").text.endswith(" tasks; verdicts use ± 4.21")


def test_a_number_shows_its_tasks_its_seeds_and_what_guessing_gives(page: WebDriver) -> None:
    click(page, "[data-place='T2/castle/1shot_hm'] a")
    shown = page.find_element(By.ID, "chain-values")
    mean = page.find_element(By.ID, "chain-title").text.split()[0]
    assert f"64 tasks; means (lines): seed 0: {mean}" in shown.text and "guessing would give 1.45" in shown.text
    assert len(shown.find_elements(By.TAG_NAME, "rect")) == 24


def test_claims_name_methods_and_link_to_what_shows_them(page: WebDriver) -> None:
    claim = page.find_element(By.ID, "claim-hm-mini-1shot-5")
    assert claim.find_element(By.LINK_TEXT, "T2").get_attribute("href").endswith("#T2")
    click(page, "#claim-hm-mini-1shot-5 summary")
    assert "L2ML, mini, 1-shot" in claim.text and MISSING not in claim.text


def test_all_measures_come_with_intervals_and_as_csv(page: WebDriver) -> None:
    address_of_csv = page.find_element(By.ID, "measures-csv").get_attribute("href")
    lines = base64.b64decode(address_of_csv.split(",")[1]).decode().splitlines()
    assert lines[0] == "cell,protocol,way,tasks,seeds,measure,mean,interval,interval_tasks"
    for evaluation in ("gfsl,5,64,1,hm", "fsl,5,64,1,u_u", "seen,64,64,1,syn_s"):
        assert any(line.startswith(f"mini-castle-1shot,{evaluation},") for line in lines)
    row = page.find_element(By.CSS_SELECTOR, "#table-measures tr[data-cell='mini-castle-1shot']")
    cells = [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
    assert cells[:4] == ["CASTLE, mini, 1-shot", "seen and unseen", "5", "64"] and "±" in cells[4]


def test_a_long_table_scrolls_below_its_header(page: WebDriver) -> None:
    script = (
        "const box = document.getElementById('table-measures').parentElement; box.scrollTop = 2000;"
        "const top = element => element.getBoundingClientRect().top;"
        "return [box.clientHeight / innerHeight, box.scrollTop, top(box.querySelector('th')) - top(box)];"
    )
    share_of_screen, scrolled, header = page.execute_script(script)
    assert share_of_screen < 1 and scrolled > 1000 and 0 <= header < 5


def test_a_training_is_drawn_with_loss_and_validation_apart(page: WebDriver) -> None:
    for figure, words in (
        ("training-loss", "loss over steps"),
        ("training-validation", "validation HM (%) over steps"),
    ):
        drawn = page.find_element(By.ID, figure)
        assert drawn.text.endswith(words) and len(drawn.find_elements(By.TAG_NAME, "polyline")) == 1
    assert len(page.find_elements(By.CSS_SELECTOR, "#training-validation circle")) == 3  # validated three times


def test_a_dataset_shows_what_is_hard_and_never_right_and_where_methods_differ(page: WebDriver) -> None:
    first = page.find_element(By.CSS_SELECTOR, "#hardest-mini tbody tr")
    assert first.text.split("\n")[0].startswith("mini class 0 seen 0.00")
    assert len(page.find_elements(By.CSS_SELECTOR, "#never-mini li")) == 2
    loaded = "return [...document.querySelectorAll('.pixels')].every(each => each.naturalWidth === 28)"
    assert page.execute_script(loaded)
    differing = page.find_elements(By.CSS_SELECTOR, ".differ[data-dataset='mini'] li")
    assert len(differing) == 10 and "mini class" in differing[0].text


def test_the_page_stays_small(paper: Paper) -> None:
    assert (paper.out / "report.html").stat().st_size < 8_000_000
