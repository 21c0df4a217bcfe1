"""What was chosen, for people (paper/tuning.md) and for params.yaml, which stays the owner of every setting."""

from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.representer import RoundTripRepresenter

from repro.errors import BadInput
from repro.files import whole_file
from repro.results.tuning import ChosenSetting, Climb, Tuning, Tunings
from stages.settings.yaml_files import read_mapping
from tools.tuning.choices import FILE, Choices

WIDTH = 10**4  # lines of params.yaml are never folded


class _WithTildes(RoundTripRepresenter):
    """Writes nothing as `~`, as scales do."""


_WithTildes.add_representer(type(None), lambda to, _: to.represent_scalar("tag:yaml.org,2002:null", "~"))


def lines_for_params(tuning: Tuning, choices: Choices) -> dict[str, Any]:
    """The entries of params.yaml that follow from what was chosen.

    A method has its setting everywhere, and trains as long as the largest budget asks that any dataset and shot has
    for it or for one of those that it is chosen together with.
    """
    datasets = {one.dataset: {"pretraining": {"epochs": one.steps}} for one in tuning.pretraining}
    methods = {}
    for name, chosen in tuning.settings.items():
        if budgets := [one.steps for one in tuning.budgets if one.method in chosen.together]:
            entry = choices.entry(chosen.setting.options, chosen.setting.training, max(budgets))
            methods[name] = {"options": entry.options, "training": entry.training}
    return {"datasets": datasets, "methods": methods}


def put_into(file: Path, lines: dict[str, Any]) -> None:
    """Write these entries into params.yaml, or into a scale, in place of its own; comments and all else stay."""
    read_mapping(file, "parameters or a scale")
    editor = YAML()
    editor.width, editor.preserve_quotes, editor.Representer = WIDTH, True, _WithTildes
    params = editor.load(file.read_text(encoding="utf-8"))
    for group, entries in lines.items():
        for name, parts in entries.items():
            entry = _mapping(file, _mapping(file, params, group), name)
            for part, values in parts.items():
                if not values:
                    entry.pop(part, None)
                    continue
                # Of a pre-training the epochs alone are chosen, of all else everything.
                own = _mapping(file, entry, part) if part == "pretraining" else {}
                entry[part] = CommentedMap({**own, **values})
                entry[part].fa.set_flow_style()
    with whole_file(file) as partial, partial.open("w", encoding="utf-8") as stream:
        editor.dump(params, stream)


def _mapping(file: Path, outer: dict[str, Any], name: str) -> dict[str, Any]:
    """The mapping of this name, an empty one where there is none (or `~`, with which a scale removes one)."""
    if outer.get(name) is None:
        outer[name] = CommentedMap()
    inner: dict[str, Any] = outer[name]
    if not isinstance(inner, dict):
        raise BadInput(f"{file}: {name} is {inner!r:.60}, expected a mapping to write what was chosen into")
    return inner


def as_yaml(lines: dict[str, Any]) -> str:
    """The same as text, a method to a line."""
    editor, stream = YAML(), StringIO()
    editor.width, editor.default_flow_style = WIDTH, None
    editor.dump(lines, stream)
    return stream.getvalue()


def as_markdown(tunings: Tunings) -> str:
    """For each benchmark three tables: pre-training's budgets, the settings that were compared, and their budgets."""
    parts = ["\n".join([f"# {name}", "", *_all_of(tuning), ""]) for name, tuning in tunings.benchmarks.items()]
    return "\n".join(parts)


def _all_of(tuning: Tuning) -> Iterator[str]:
    if tuning.amp != "none":
        yield f"Trainings computed in {tuning.amp} (`precision.amp`), evaluations in float32."
        yield ""
    yield from _pretraining(tuning)
    yield ""
    yield from _settings(tuning)
    yield ""
    yield from _budgets(tuning)


def _pretraining(tuning: Tuning) -> Iterator[str]:
    yield "Pre-training: AUSUC on validation tasks (mean over seeds) against epochs, as a method has it that trains"
    yield "nothing after it. It has its plateau where twice the epochs gain less than half a point."
    yield ""
    yield from _ladders({(one.dataset, one.method): one for one in tuning.pretraining}, ("dataset", "method"))


def _settings(tuning: Tuning) -> Iterator[str]:
    yield f"Settings, chosen on validation tasks (means in percent). `{FILE}` has all that there was to choose from;"
    yield "**bold**: chosen by the larger HM, calibrated (†) where it is next to nothing; CASTLE's kin by their mean."
    yield ""
    yield "| method | training | options | HM | calibrated HM | AUSUC |"
    yield "|---|---|---|---|---|---|"
    for name, chosen in tuning.settings.items():
        for number, tried in enumerate(chosen.tried):
            values = [tried.outcome.hm, tried.outcome.cal_hm, tried.outcome.ausuc]
            numbers = ["diverged"] * 3 if tried.outcome.diverged else [f"{value:.2f}" for value in values]
            cells = [_marked(name, chosen), _values(tried.training), _values(tried.options), *numbers]
            yield f"| {' | '.join(f'**{cell}**' if number == chosen.chosen and cell else cell for cell in cells)} |"


def _marked(name: str, chosen: ChosenSetting) -> str:
    return f"{name} †" if chosen.by == "cal_hm" else name


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _budgets(tuning: Tuning) -> Iterator[str]:
    yield "Budgets: AUSUC on validation tasks (mean over seeds) against steps. A method has its plateau where twice the"
    yield "steps gain less than half a point."
    yield ""
    named: dict[tuple[str, ...], Climb] = {(one.dataset, one.method, str(one.shot)): one for one in tuning.budgets}
    yield from _ladders(named, ("dataset", "method", "shot"))


def _ladders(climbs: Mapping[tuple[str, ...], Climb], heads: tuple[str, ...]) -> Iterator[str]:
    """A row for each, a column for each budget that any of them tried."""
    steps = sorted({rung.steps for one in climbs.values() for rung in one.rungs})
    yield f"| {' | '.join([*heads, *map(str, steps)])} | last gain | budget |"
    yield f"|{'---|' * (len(heads) + len(steps) + 2)}"
    for names, one in climbs.items():
        found = {rung.steps: f"{rung.ausuc:.2f}" for rung in one.rungs}
        shown = [f"**{found[each]}**" if each == one.steps else found.get(each, "") for each in steps]
        budget = str(one.steps) if one.reached else f"{one.steps}, no plateau yet"
        yield f"| {' | '.join([*names, *shown, f'{one.gain:+.2f}', budget])} |"
