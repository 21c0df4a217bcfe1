"""What decides a stage's result is in its settings file: every value, and the hash of every line of code it runs."""

import ast
import json
import re
import shutil
import subprocess
import sys
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc.repo import Repo

from repro.options import checked
from repro.report.layout import TABLES
from repro.report.needs import required_cells
from repro.results.published import read_published
from repro.training.pretrain import Pretraining
from stages.settings import grid, params
from stages.settings.code import DECIDES_NOTHING, Code
from stages.settings.files import plain
from stages.settings.grid import Grid, read_grid
from stages.settings.params import Params, read_params
from stages.settings.resolving import Resolver
from tests.paths import ROOT

FILES = {"params": "params.yaml", "grid": "paper/grid.yaml"}
STAGES = ("splits", "episodes", "pretrain", "train", "evaluate", "summary", "paper")
STARTS = {  # the modules that running a stage begins with
    stage: [f"stages.{stage}", *(["repro.methods.castle"] if stage in ("train", "evaluate") else [])]
    for stage in STAGES
}
# Import what each begins with in a process of its own, and say what was loaded; what is not ours is loaded before.
LOADED = """
import importlib, json, os, sys, warnings
warnings.simplefilter("ignore")
import pandas, sacred, timm, torch
for stage, modules in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        for module in modules:
            importlib.import_module(module)
        print(json.dumps([stage, [str(getattr(each, "__file__", "")) for each in sys.modules.values()]]), flush=True)
        os._exit(0)
    os.wait()
"""


def planned(chosen: Params, lines: Grid) -> dict[str, dict[str, object]]:
    """What `plan` writes for every stage."""
    return {f"{stage}/{name}": plain(settings) for stage, name, settings in Resolver(chosen, lines, ROOT).all()}


@cache
def ours() -> dict[str, dict[str, object]]:
    return planned(read_params(ROOT / FILES["params"]), read_grid(ROOT))


@cache
def loaded() -> dict[str, set[Path]]:
    """The files of the library that Python loads for each stage."""
    program = [sys.executable, "-c", LOADED, json.dumps(STARTS)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    return {
        stage: {Path(file).relative_to(ROOT) for file in files if file.startswith(str(ROOT / "repro"))}
        for stage, files in map(json.loads, done.stdout.splitlines())
    }


@pytest.mark.parametrize("stage", STAGES)
def test_the_code_of_a_stage_is_what_python_loads(stage: str) -> None:
    """A second route to the same answer: run the imports and look at what was loaded."""
    reached = {file for file in Code(ROOT).reached(*STARTS[stage]) if file.parts[0] == "repro"}
    assert loaded()[stage] <= reached
    assert len(reached & loaded()[stage]) > 5


def deciding_files() -> list[Path]:
    """Every file of the library that decides something, and that some stage reaches."""
    reached = Code(ROOT).deciding(
        *(f"stages.{stage}" for stage in STAGES), *(f"repro.methods.{name}" for name in methods())
    )
    return sorted(file for file in reached if defaults_in((ROOT / file).read_text()))


def methods() -> list[str]:
    return sorted({str(settings["method"]) for settings in ours().values() if "method" in settings})


def defaults_in(source: str) -> list[ast.Constant]:
    """The numbers, words and truth values in the defaults of a file, the last first.

    Defaults are those of arguments and fields, and whatever a module, a class or a function gives a name.
    """
    found: dict[tuple[int, int], ast.Constant] = {}
    for node in ast.walk(ast.parse(source)):
        values: list[ast.expr | None] = []
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            values = [*node.args.defaults, *node.args.kw_defaults]
        if isinstance(node, ast.AnnAssign | ast.Assign):
            values = [node.value]
        for value in filter(None, values):
            in_text = {
                id(part) for text in ast.walk(value) if isinstance(text, ast.JoinedStr) for part in ast.walk(text)
            }
            for each in ast.walk(value):
                if isinstance(each, ast.Constant) and each.value is not ... and id(each) not in in_text:
                    found[each.lineno, each.col_offset] = each
    return [found[place] for place in sorted(found, reverse=True)]


def with_other_defaults(source: str) -> str:
    """The same file, every default value another one."""
    lines = source.encode().splitlines(keepends=True)  # columns count bytes
    for value in defaults_in(source):
        last = lines[value.end_lineno - 1][value.end_col_offset :]
        lines[value.lineno - 1] = lines[value.lineno - 1][: value.col_offset] + repr(other(value.value)).encode() + last
        del lines[value.lineno : value.end_lineno]
    return b"".join(lines).decode()


def other(value: object) -> object:
    if isinstance(value, bool):
        return not value
    return f"{value}, another" if isinstance(value, str) else 2 * value + 1 if isinstance(value, int | float) else 0


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code, to be edited."""
    folder = tmp_path_factory.mktemp("copy")
    for top in ("repro", "stages"):
        shutil.copytree(ROOT / top, folder / top, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@cache
def before() -> dict[tuple[str, ...], tuple[str, set[Path]]]:
    """Hash and files of the code of every stage as it is, by the modules it begins with."""
    code = Code(ROOT)
    starts = {tuple(modules_of(key, settings)) for key, settings in ours().items()}
    return {modules: (code.digest(*modules), code.deciding(*modules)) for modules in starts}


@pytest.mark.parametrize("file", deciding_files(), ids=str)
def test_other_defaults_change_the_settings_of_the_stages_that_use_them(file: Path, copy: Path) -> None:
    text = (copy / file).read_text()
    (copy / file).write_text(with_other_defaults(text))
    values = [[value.value for value in defaults_in(source)] for source in (text, (copy / file).read_text())]
    assert len(values[0]) == len(values[1]) and all(one != two for one, two in zip(*values, strict=True))
    edited = Code(copy)
    for modules, (digest, files) in before().items():
        assert (edited.digest(*modules) != digest) == (file in files), modules
    (copy / file).write_text(text)


def modules_of(key: str, settings: dict[str, object]) -> list[str]:
    from repro.methods.registry import method_class

    modules, name = [f"stages.{key.partition('/')[0]}"], settings.get("method")
    while name:
        modules.append(f"repro.methods.{name}")
        name = method_class(str(name)).base_method
    return modules


MODULES = (grid.__name__, params.__name__)
# What params.yaml and the grid need not say, each with another value than its default.
NOT_SAID: dict[str, Any] = {
    "grid trained mini-castle-5shot seen": True,
    "grid trained mini-castle-1shot overlap": [25],
    "grid trained mini-castle-1shot options": {"ratio": 0.5},
    "grid trained mini-castle-1shot training": {"lr": 0.5},
    "params own options": {"ratio": 0.5},
    "params own training": {"lr": 0.5},
    "params backbone options": {"final_activation": False},
    "params pretraining classifiers standard options": {"temperature": 0.25},
    "params pretraining classifiers standard backbone": {"final_activation": False},
    "params datasets mini episodes": {"query": 3},
    "params datasets mini backbone": {"name": "castle_convnet4"},
    "params datasets mini pretraining": {"epochs": 1},
    "params datasets mini training": {"lr": 0.5},
    "params methods castle options": {"ratio": 0.5},
    "params methods castle training": {"lr": 0.5},
    "params methods castle limit": 7,
    "params paper rows": ["teen"],
}


def test_every_default_of_params_and_grid_is_tried() -> None:
    """Those of the library are above; `machine` decides nothing, and no settings file has it."""
    classes = [each for module in (grid, params) for each in vars(module).values() if is_dataclass(each)]
    found = [one for each in classes if each.__module__ in MODULES for one in fields(each)]
    defaults = {one.name for one in found if one.default is not MISSING or one.default_factory is not MISSING}
    of_library = {one.name for one in fields(Pretraining)}
    assert defaults - of_library - {"own"} == {path.split()[-1] for path in NOT_SAID}


@pytest.mark.parametrize("path", NOT_SAID)
def test_another_default_in_params_or_grid_changes_settings(path: str) -> None:
    files = {name: yaml.safe_load((ROOT / file).read_text()) for name, file in FILES.items()}
    *outer, last = path.split()
    inner = files
    for key in outer:
        inner = inner[key]
    new = NOT_SAID[path]
    inner[last] = {**inner.get(last, {}), **new} if isinstance(new, dict) else new
    chosen = checked(Params, files["params"], "params"), checked(Grid, files["grid"], "grid")
    assert planned(*chosen) != ours()


def test_an_edit_of_the_report_or_of_training_re_runs_no_dataset() -> None:
    splits = Code(ROOT).deciding("stages.splits")
    assert Path("repro/preparation/glyphs.py") in splits
    assert not [file for file in splits if file.is_relative_to("repro/report") or file.is_relative_to("repro/training")]


def test_the_code_that_is_left_out_gives_no_number_to_code_that_decides() -> None:
    """Recording, checking and naming files; settings are compared as values."""
    assert all((ROOT / path).exists() for path in DECIDES_NOTHING)
    code = Code(ROOT)
    deciding = set().union(*(files for _, files in before().values()))
    for file in deciding:
        for node in ast.walk(ast.parse((ROOT / file).read_text())):
            given = code.file_of(node.module or "") if isinstance(node, ast.ImportFrom) else None
            if given and given not in deciding and isinstance(node, ast.ImportFrom):
                values = vars(import_module(str(node.module)))
                numbers = [alias.name for alias in node.names if isinstance(values.get(alias.name), int | float)]
                assert not numbers, f"{file} takes {numbers} from {given}, which no hash covers"


def test_every_stage_of_dvc_has_its_settings_and_depends_on_them() -> None:
    found = set()
    for stage in Repo(str(ROOT)).index.stages:
        named = [Path(dep.fspath).relative_to(ROOT) for dep in stage.deps]
        files = [path for path in named if path.parts[0] == "settings"]
        if stage.addressing != "plan":
            assert len(files) == 1, stage.addressing
            _, _, _, kind, *told = stage.cmd.replace("{}", stage.addressing.partition("@")[2]).split()
            assert files[0] == Path("settings") / kind / f"{(told or ['paper'])[0]}.json"
            found.add(f"{kind}/{files[0].stem}")
    assert found == set(ours())


def test_every_output_persists_so_that_a_failure_leaves_what_was_there() -> None:
    outs = [out for stage in Repo(str(ROOT)).index.stages for out in stage.outs]
    assert len(outs) > 100 and all(out.persist for out in outs)


def test_no_name_of_the_users_is_in_a_command() -> None:
    """Names come from params.yaml and paper/grid.yaml; DVC hands a command to a shell."""
    commands = {stage.cmd for stage in Repo(str(ROOT)).index.stages}
    names = {*read_params(ROOT / "params.yaml").datasets, *read_grid(ROOT).lines()}
    assert not [cmd for cmd in commands for name in names if name in cmd]
    assert all(re.fullmatch(r"python -m stages [\w {}-]+", cmd) for cmd in commands)


def test_every_cell_that_the_paper_needs_is_measured() -> None:
    lines, published = read_grid(ROOT).lines(), read_published(ROOT / "paper" / "published.yaml")
    own = {table.key for table in TABLES} - published.keys()
    for need in required_cells():
        if own.issuperset(need.needed_by):
            continue  # a table of one's own shows dashes for what is not measured
        line = lines[need.cell.name]
        for protocol, way in need.protocols:
            assert line.seen if protocol == "seen" else {way, "all"} & set(line.ways), f"{need.cell.name}: {way} ways"


def test_a_line_of_the_grid_is_named_after_what_it_says() -> None:
    for name, line in read_grid(ROOT).lines().items():
        assert f"{name}-".startswith(f"{line.dataset}-{line.method}-{line.shot}shot-")


def test_an_edited_method_touches_its_own_cells_only() -> None:
    code = Code(ROOT)
    users = {
        key for key, it in ours().items() if Path("repro/methods/protonet.py") in code.deciding(*modules_of(key, it))
    }
    assert users == {key for key in ours() if "-protonet-" in key or "upper_bound" in key}
