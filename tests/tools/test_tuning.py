"""tools/tune: which settings and budgets follow from which validation numbers, and that nothing else decides."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml

from repro import paths
from repro.errors import BadInput
from repro.methods.registry import method_class, method_names
from repro.results.tuning import TrialOutcome, Tuning, Tunings, read_tunings, write_tunings
from stages.settings.grid import read_grid
from stages.settings.kinds import TrainSettings
from stages.settings.params import read_params
from stages.settings.resolving import Resolver
from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from tools.tuning import formats  # noqa: E402
from tools.tuning.choices import Choices, read_choices  # noqa: E402
from tools.tuning.declaring import as_markdown, lines_for_params, put_into  # noqa: E402
from tools.tuning.search import Search  # noqa: E402
from tools.tuning.trials import (  # noqa: E402
    Begun,
    MetaTrial,
    Place,
    PreTrial,
    file_of,
    measure,
    read_outcome,
    settings_of,
)

CHOICES = read_choices("glyphs", ROOT / "tools" / "tuning.yaml")
PARAMS, GRID = replace(read_params(ROOT / "params.yaml"), seeds=(0, 1)), read_grid(ROOT)
RESOLVER = Resolver(PARAMS, GRID, ROOT)
KIN = ("castle_minus", "castle", "acastle")
Told = Callable[[Any], TrialOutcome]


def told(settings: TrainSettings) -> TrialOutcome:
    """The middle rate is best, and longer trainings gain half as much each time: 4, 2, 1, 0.5 and 0.25 points."""
    assert settings.training is not None
    good = settings.training.lr in (0.05, 0.01, 0.1, 0.3, 0.003)
    return TrialOutcome(hm=50 + good, cal_hm=60 - good, ausuc=60 - 4 * 500 / settings.training.steps)


def search(tell: Told = told, choices: Choices = CHOICES) -> Search:
    def outcomes(wanted: Iterable[Any]) -> list[TrialOutcome]:
        return [tell(trial.settings) for trial in wanted]

    return Search(choices, RESOLVER, outcomes)


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_no_method_has_more_settings_to_choose_from_than_castle() -> None:
    most = len(CHOICES.methods["castle"].settings)
    assert {name: len(each.settings) for name, each in CHOICES.methods.items()} == dict.fromkeys(CHOICES.methods, most)
    assert all(len(method_class(name).tuning_grid) <= most for name in method_names())


def test_every_trained_method_of_the_grid_is_tuned() -> None:
    assert {line.method for line in GRID.trained.values()} <= set(CHOICES.methods)


@pytest.mark.parametrize("name", CHOICES.methods)
def test_settings_are_ones_that_the_stage_would_train_with(name: str) -> None:
    for each in CHOICES.methods[name].complete():
        entry = CHOICES.entry(each.options, each.training, 500)
        settings = settings_of(RESOLVER, Place("mini", name, 1), entry, 0)
        assert settings.training is not None and (settings.training.steps, settings.training.validate_every) == (
            500,
            100,
        )
        assert settings.options == each.options


def test_the_largest_validation_hm_chooses_and_the_calibrated_one_where_hm_is_nothing() -> None:
    found = search().tuned(Tuning(), "mini", 1, list(CHOICES.methods))
    assert found.settings["castle"].setting.training == {"lr": 0.05}
    assert found.settings["mc_protonet"].by == "cal_hm"
    assert found.settings["mc_protonet"].setting.training == {"lr": 0.03}  # the lower HM, the higher calibrated one


def test_rows_that_are_compared_with_each_other_share_the_setting_that_is_best_in_their_mean() -> None:
    def tell(settings: TrainSettings) -> TrialOutcome:
        assert settings.training is not None
        liked = {"castle_minus": 0.02, "castle": 0.1, "acastle": 0.1}[settings.method]
        return TrialOutcome(hm=50.0 + 9 * (settings.training.lr == liked), cal_hm=0.0, ausuc=0.0)

    found = search(tell).tuned(Tuning(), "mini", 1, list(KIN))
    assert {name: each.setting.training["lr"] for name, each in found.settings.items()} == dict.fromkeys(KIN, 0.1)


def test_a_budget_is_the_first_that_is_not_worth_doubling() -> None:
    budget = search().tuned(Tuning(), "mini", 1, ["dfsl"]).budgets[0]
    assert [rung.steps for rung in budget.rungs] == [500, 1000, 2000, 4000, 8000]
    assert budget.reached and budget.steps == 4000 and budget.gain == pytest.approx(0.25)


def test_a_method_that_still_gains_at_the_largest_budget_is_said_to_have_no_plateau() -> None:
    found = search(lambda it: TrialOutcome(hm=1.0, cal_hm=1.0, ausuc=it.training.steps / 100)).tuned(
        Tuning(), "mini", 1, ["dfsl"]
    )
    assert not found.budgets[0].reached and found.budgets[0].steps == 8000
    assert "8000, no plateau yet" in as_markdown(Tunings({"glyphs": found}))


@pytest.mark.parametrize(("hm", "by", "lr"), [(1.9, "cal_hm", 0.1), (2.1, "hm", 0.03)])
def test_an_hm_near_to_guessing_chooses_nothing(hm: float, by: str, lr: float) -> None:
    """The smallest rate has the largest HM, the largest calibrated one grows with the rate up to 0.1."""

    def tell(settings: TrainSettings) -> TrialOutcome:
        assert settings.training is not None
        rate = settings.training.lr
        return TrialOutcome(hm=hm if rate == 0.03 else 1.0, cal_hm=60 - abs(rate - 0.1), ausuc=50.0)

    chosen = search(tell).tuned(Tuning(), "mini", 1, ["dfsl"]).settings["dfsl"]
    assert (chosen.by, chosen.setting.training["lr"]) == (by, lr)


def test_a_diverged_training_is_never_chosen() -> None:
    def tell(settings: TrainSettings) -> TrialOutcome:
        assert settings.training is not None
        fails = settings.training.lr > 0.1
        return TrialOutcome(hm=0.0 if fails else 5.0, cal_hm=0.0, ausuc=0.0, diverged=fails)

    found = search(tell).tuned(Tuning(), "mini", 1, ["dfsl"])
    assert found.settings["dfsl"].setting.training["lr"] == 0.03
    assert "diverged" in as_markdown(Tunings({"glyphs": found}))


def test_other_datasets_and_shots_take_the_chosen_settings_and_find_their_own_budget() -> None:
    first = search().tuned(Tuning(), "mini", 1, ["dfsl"])
    shorter = search(lambda it: TrialOutcome(hm=1.0, cal_hm=1.0, ausuc=1.0))
    found = shorter.tuned(first, "tiered", 5, ["dfsl"])
    assert {(one.dataset, one.shot): one.steps for one in found.budgets} == {("mini", 1): 4000, ("tiered", 5): 500}
    assert lines_for_params(found, CHOICES)["methods"]["dfsl"]["training"]["steps"] == 4000  # the larger, everywhere
    assert found.budgets[1].training == first.settings["dfsl"].setting.training
    with pytest.raises(BadInput, match="no setting of castle was chosen yet; run `tools/tune castle` first"):
        shorter.tuned(first, "tiered", 5, ["castle"])


def test_the_kin_train_as_long_as_the_longest_of_them() -> None:
    def tell(settings: TrainSettings) -> TrialOutcome:
        assert settings.training is not None
        grows = settings.method == "acastle" and settings.training.steps <= 2000
        return TrialOutcome(hm=1.0, cal_hm=1.0, ausuc=settings.training.steps / 100 if grows else 20.0)

    found = search(tell).tuned(Tuning(), "mini", 1, [*KIN, "dfsl"])
    entries = lines_for_params(found, CHOICES)["methods"]
    steps = {name: entry["training"]["steps"] for name, entry in entries.items()}
    assert steps == {**dict.fromkeys(KIN, 2000), "dfsl": 500}


def test_budgets_of_a_setting_that_is_no_longer_chosen_go() -> None:
    first = search().tuned(Tuning(), "mini", 1, ["dfsl"])
    first = search().tuned(first, "tiered", 1, ["dfsl"])
    again = search(lambda it: TrialOutcome(hm=it.training.lr, cal_hm=1.0, ausuc=1.0)).tuned(first, "mini", 1, ["dfsl"])
    assert [one.dataset for one in again.budgets] == ["mini"]


def test_what_was_chosen_comes_back_from_its_file_and_goes_into_params(tmp_path: Path) -> None:
    found = search().tuned(Tuning(), "mini", 1, list(CHOICES.methods))
    found = search().tuned(found, "office", 1, [*KIN, "dfsl"])
    both = Tunings({"photographs": Tuning()}).with_tuning("glyphs", found)
    write_tunings(tmp_path / "tuning.json", both)
    assert read_tunings(tmp_path / "tuning.json") == both and both.of("glyphs") == found
    assert both.of("unheard of") == Tuning()
    lines = lines_for_params(found, CHOICES)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    put_into(tmp_path / "params.yaml", lines)
    after = yaml.safe_load((tmp_path / "params.yaml").read_text())
    assert differences(after, lines) == []
    before = (ROOT / "params.yaml").read_text().splitlines()
    comments = [line for line in before if line.lstrip().startswith("#")]
    assert set(comments) <= set((tmp_path / "params.yaml").read_text().splitlines())
    assert read_params(tmp_path / "params.yaml").methods["castle"].training["steps"] == 4000


def differences(params: dict[str, Any], lines: dict[str, Any]) -> list[str]:
    """Entries of params.yaml that are not what was chosen."""
    return [
        f"{group}.{name}.{part}"
        for group, entries in lines.items()
        for name, parts in entries.items()
        for part, values in parts.items()
        if params[group].get(name, {}).get(part, {}) != values
    ]


def test_params_has_what_validation_tasks_chose() -> None:
    lines = lines_for_params(read_tunings(ROOT / paths.TUNED).of(PARAMS.benchmark.name), CHOICES)
    assert differences(yaml.safe_load((ROOT / "params.yaml").read_text()), lines) == []


def test_pretraining_is_as_long_as_its_plateau_asks_and_the_epochs_alone_go_into_params(tmp_path: Path) -> None:
    found = search(lambda it: TrialOutcome(hm=0.0, cal_hm=9.0, ausuc=40 - 8 / it.pretraining.epochs)).pretrained(
        Tuning(), "tiered"
    )
    (climb,) = found.pretraining
    assert [rung.steps for rung in climb.rungs] == [5, 10, 20] and climb.steps == 10 and climb.reached
    again = search(lambda it: TrialOutcome(hm=0.0, cal_hm=9.0, ausuc=1.0)).pretrained(found, "tiered")
    assert [one.steps for one in again.pretraining] == [5]
    shutil.copy(ROOT / "params.yaml", tmp_path)
    put_into(tmp_path / "params.yaml", {"datasets": {"tiered": {"pretraining": {"lr": 0.3}}}})
    put_into(tmp_path / "params.yaml", lines_for_params(found, CHOICES))
    own = read_params(tmp_path / "params.yaml").datasets["tiered"].pretraining
    assert own["epochs"] == 10 and own["lr"] == 0.3
    assert "| tiered | mc_knn | 38.40 | **39.20** | 39.60 | +0.40 | 10 |" in as_markdown(Tunings({"glyphs": found}))


@pytest.mark.parametrize(
    "scale", ["datasets: ~\n", "datasets: {tiered: ~}\n", "datasets: {tiered: {pretraining: ~}}\n"]
)
def test_what_a_scale_takes_away_is_written_anew(scale: str, tmp_path: Path) -> None:
    (tmp_path / "scale.yaml").write_text(scale)
    put_into(tmp_path / "scale.yaml", {"datasets": {"tiered": {"pretraining": {"epochs": 3}}}})
    written = yaml.safe_load((tmp_path / "scale.yaml").read_text())
    assert written == {"datasets": {"tiered": {"pretraining": {"epochs": 3}}}}


@pytest.mark.parametrize(
    "scale", ["datasets: [1]\n", "datasets: {tiered: 3}\n", "datasets: {tiered: {pretraining: x}}\n"]
)
def test_nothing_is_written_into_what_is_no_mapping(scale: str, tmp_path: Path) -> None:
    (tmp_path / "scale.yaml").write_text(scale)
    with pytest.raises(BadInput, match="expected a mapping to write what was chosen into"):
        put_into(tmp_path / "scale.yaml", {"datasets": {"tiered": {"pretraining": {"epochs": 3}}}})
    assert (tmp_path / "scale.yaml").read_text() == scale


@pytest.mark.parametrize("content", ["", "{", "[1]", "{}", '{"outcome": 3}', '{"outcome": {"hm": "x"}}', "[" * 5000])
def test_a_damaged_outcome_is_one_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(BadInput, match=r"x.json: not what a training came to .*; delete it"):
        read_outcome(tmp_path / "x.json")


def test_one_seed_is_not_enough_for_a_plateau() -> None:
    with pytest.raises(BadInput, match=r"params.yaml lists the seeds \[0\], expected at least 2"):
        Search(CHOICES, RESOLVER.with_params(replace(PARAMS, seeds=(0,))), lambda _: [])


def test_numbers_of_two_formats_are_not_compared() -> None:
    in_bf16 = replace(PARAMS, precision=replace(PARAMS.precision, amp="bf16"))
    other = Search(CHOICES, RESOLVER.with_params(in_bf16), lambda _: [])
    begun = other.begin(Tuning())
    assert begun.amp == "bf16" and "computed in bf16" in as_markdown(Tunings({"glyphs": begun}))
    found = search().tuned(search().begin(Tuning()), "mini", 1, ["dfsl"])
    assert search().begin(found) == found and "bf16" not in as_markdown(Tunings({"glyphs": found}))
    with pytest.raises(BadInput, match="precision.amp is bf16, expected none as in paper/tuning.json"):
        other.begin(found)


@pytest.mark.parametrize(
    ("dataset", "shot", "asked", "sentence"),
    [
        ("mimi", 1, [], "got --dataset mimi, expected one of mini"),
        ("mini", 1, ["castel"], "got method 'castel', expected some of castle_minus"),
        ("office", 5, [], "does not train anything on office with 5 shots"),
    ],
)
def test_what_is_not_there_is_refused(dataset: str, shot: int, asked: list[str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        search().names(dataset, shot, asked)


def test_one_of_the_kin_brings_the_others() -> None:
    assert search().names("mini", 1, ["castle"]) == list(KIN)
    assert search().names("mini", 5, ["castle"]) == ["castle", "acastle"]


@pytest.fixture
def without_test_tasks(workspace: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the small grid to work in, without its test tasks."""
    for name in ("params.yaml", "paper", "data", "episodes", "models", "repro", "stages"):
        source = workspace[0] / name
        shutil.copytree(source, tmp_path / name) if source.is_dir() else shutil.copy(source, tmp_path)
    shutil.rmtree(tmp_path / "episodes" / "mini" / "test")
    monkeypatch.chdir(tmp_path)


@pytest.mark.timeout(1200)  # the first to ask for the small grid waits for it
@pytest.mark.usefixtures("without_test_tasks")
def test_a_trial_trains_what_the_stage_trains_and_sees_no_test_task() -> None:
    """The weights of the cell in the small grid have the validation HM that the trial measures."""
    resolver = Resolver(read_params(paths.PARAMS), read_grid())
    settings = settings_of(resolver, Place("mini", "castle", 1), resolver.params.methods["castle"], 0)
    assert "HM" in measure(MetaTrial(settings))
    outcome = read_outcome(file_of(MetaTrial(settings)))

    from repro.data.dataset import open_dataset
    from repro.data.episodes import read_tasks
    from repro.evaluation.validation import Validation
    from repro.models.device import pick_device
    from repro.trained.building import load_method

    trained = load_method(paths.model("mini-castle-1shot", 0), "castle", {}, 0)
    tasks = read_tasks(paths.tasks("mini", "val", 5, 1, 0))
    data = open_dataset(paths.dataset("mini", 0))
    found = Validation(data, tasks, 10, 0, 64, pick_device("cpu"), 0).measures(trained)
    assert {name: getattr(outcome, name) for name in found} == {name: round(value, 4) for name, value in found.items()}


def test_a_training_whose_fit_breaks_down_counts_as_diverged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_down(*_: object, **__: object) -> Iterator[None]:
        yield None
        torch.cholesky_inverse(torch.zeros(2, 2))  # as a method's own fit does once its numbers have exploded

    monkeypatch.setattr("repro.training.loop.run", breaks_down)
    settings = settings_of(RESOLVER, Place("mini", "ifsl", 1), PARAMS.methods["ifsl"], 0)
    begun = Begun(SimpleNamespace(best=None), {}, dict)  # type: ignore[arg-type]
    trial = SimpleNamespace(settings=settings, name="broken", title="one step", inputs=dict, begin=lambda world: begun)
    monkeypatch.chdir(tmp_path)
    assert "broken, seed 0, one step: diverged" in measure(trial)  # type: ignore[arg-type]
    assert read_outcome(file_of(trial)).diverged  # type: ignore[arg-type]


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("without_test_tasks")
def test_a_trial_of_pretraining_measures_what_the_stage_pretrains() -> None:
    """The small grid's backbone has, as MC + kNN, the validation AUSUC that the trial measures."""
    settings = Resolver(read_params(paths.PARAMS), read_grid()).pretrain("mini", "standard")
    trial = PreTrial(settings, "mc_knn")
    assert f"{settings.pretraining.epochs} epochs, as mc_knn" in measure(trial)

    from repro.data.dataset import open_dataset
    from repro.data.episodes import read_tasks
    from repro.evaluation.validation import Validation
    from repro.models.device import pick_device
    from repro.trained.building import start_method

    _, method = start_method(paths.pretrained("mini-standard", 0), "mc_knn", {}, 0)
    tasks = read_tasks(paths.tasks("mini", "val", 5, 1, 0))
    data = open_dataset(paths.dataset("mini", 0))
    found = Validation(data, tasks, 10, 0, 64, pick_device("cpu"), 0).measures(method.eval())
    assert read_outcome(file_of(trial)).ausuc == round(found["ausuc"], 4)


def test_a_benchmark_has_its_own_ladders_and_shares_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "tuning.yaml"
    shared = (ROOT / "tools" / "tuning.yaml").read_text().partition("\nbenchmarks:")[0]
    file.write_text(f"{shared}\nbenchmarks: {{photographs: {{epochs: [3, 6]}}}}\n")
    assert read_choices("photographs", file) == replace(CHOICES, epochs=(3, 6))
    assert read_choices("glyphs", file) == CHOICES
    file.write_text(file.read_text().replace("[3, 6]", "[3, 7]"))
    with pytest.raises(BadInput, match="expected each to be twice the last"):
        read_choices("photographs", file)


def test_what_was_chosen_for_a_scale_goes_into_its_own_file(tmp_path: Path) -> None:
    scale = tmp_path / "laptop.yaml"
    shutil.copy(ROOT / "tools" / "scales" / "laptop.yaml", scale)
    found = search().tuned(Tuning(), "mini", 1, ["dfsl"])
    found = search(lambda _: TrialOutcome(hm=0.0, cal_hm=9.0, ausuc=1.0)).pretrained(found, "mini")
    put_into(scale, lines_for_params(found, CHOICES))
    after = yaml.safe_load(scale.read_text())
    assert after["datasets"]["mini"]["pretraining"] == {"epochs": 5}
    assert after["methods"]["dfsl"]["training"] == {"lr": 0.1, "steps": 4000, "validate_every": 800}
    assert after["datasets"]["tiered"] is None
    before = (ROOT / "tools" / "scales" / "laptop.yaml").read_text().splitlines()
    kept = [line for line in before if line in scale.read_text().splitlines()]
    others = [line.strip() for line in before if line not in kept]
    assert all(line.startswith(("training: {", "options: {", "pretraining: {")) for line in others), others


@pytest.mark.parametrize("content", ["a: b: c", "[1]", "a: 1\na: 2", ""])
def test_a_scale_that_is_none_is_named_and_stays(tmp_path: Path, content: str) -> None:
    scale = tmp_path / "laptop.yaml"
    scale.write_text(content)
    with pytest.raises(BadInput, match="laptop.yaml: "):
        put_into(scale, {"datasets": {}, "methods": {}})
    assert scale.read_text() == content


def test_formats_are_compared_seed_by_seed() -> None:
    def outcomes(trials: Iterable[Any]) -> list[TrialOutcome]:
        """A quarter of a point more in bf16, give or take a little between seeds."""
        found = []
        for trial in trials:
            seed, bf16 = trial.settings.seed, trial.settings.precision.amp == "bf16"
            found.append(TrialOutcome(hm=50.0 + seed, cal_hm=60.0, ausuc=40.0 + 2 * seed + bf16 * (0.25 + 0.01 * seed)))
        return found

    lines = list(formats.table(RESOLVER, CHOICES, SimpleNamespace(outcomes=outcomes), "bf16"))
    assert len(lines) == 2 + 1 + len(CHOICES.methods)
    # 0.25 and 0.26, in the mean 0.255: Student's t of one degree of freedom is 12.7, their standard error 0.005.
    assert lines[2] == "| pre-training | 41.00 | 1.41 | +0.00 ± 0.00 | +0.00 ± 0.00 | +0.25 ± 0.06 |"
    assert set(formats.roles(CHOICES)) == {"standard", "cosine"}
    one = RESOLVER.with_params(replace(PARAMS, seeds=(0,)))
    with pytest.raises(BadInput, match=r"lists the seeds \[0\], expected at least 2"):
        list(formats.table(one, CHOICES, SimpleNamespace(outcomes=outcomes), "bf16"))
