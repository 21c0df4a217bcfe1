"""Scales: overlays that say only what differs from params.yaml, and how one is put on and taken off.

params.yaml as committed is the scale `embedded`. What a run leaves in files that git tracks (DVC's locks, the rendered
paper) is kept aside per scale, so that going back restores it and DVC finds every stage of that scale up to date.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from repro import paths
from repro.errors import BadInput, one_line
from repro.files import replace_together, whole_folder
from repro.options import checked
from stages.settings.yaml_files import parse, read_mapping, read_text

EMBEDDED = "embedded"
SCALES = Path("tools") / "scales"
KEPT = Path(".scales")  # what runs of other scales have rendered
GENERATED = (
    *(paths.LOCK, paths.EVALUATIONS_LOCK, paths.PAPER / "figures", paths.SUMMARY / "metrics.json"),
    *(paths.PAPER / name for name in ("tables.tex", "figures.tex", "claims.tex", "claims.json", "claims.md")),
    *(paths.PAPER / name for name in ("protocol.md", "provenance.json", "report.html")),
)
CHOSEN = (paths.PARAMS, paths.GRID)


def names() -> list[str]:
    """Every scale."""
    return [EMBEDDED, *sorted(file.stem for file in SCALES.glob("*.yaml"))]


def current() -> str | None:
    """The scale that params.yaml has; None where it was edited."""
    present = {file: read_chosen(file) for file in CHOSEN}
    base = {file: _committed(file) for file in CHOSEN}
    for name in names():
        if present == {file: read(text) for file, text in scaled(name, base).items()}:
            return name
    return None


def scaled(name: str, base: dict[Path, str]) -> dict[Path, str]:
    """params.yaml and paper/grid.yaml with a scale on top of `base`; raises BadInput for an unknown scale.

    What an overlay says under `grid` goes into the grid; lines whose dataset the scale lacks are left out.
    """
    if name not in names():
        raise BadInput(f"scale is {name!r}, expected one of {', '.join(names())}")
    if name == EMBEDDED:
        return base
    params, grid = (_editor().load(base[file]) for file in CHOSEN)
    place = str(SCALES / f"{name}.yaml")
    for overlay in _overlays(name):
        lines = overlay.pop("grid", {})
        if not isinstance(lines, dict):
            raise BadInput(f"{place}: grid is {lines!r:.60}, expected what differs from {paths.GRID}")
        put_on(grid, lines)
        put_on(params, overlay)
    from stages.settings.grid import Grid  # they load torch, which nobody needs who asks for help
    from stages.settings.params import Params

    checked(Params, read(_text(params)), place)
    checked(Grid, read(_text(grid)), f"{place}: grid")
    for group in ("trained", "untrained", "adapted"):
        for cell in [cell for cell, line in grid[group].items() if line["dataset"] not in params["datasets"]]:
            del grid[group][cell]
    grid["random"] = [dataset for dataset in grid["random"] if dataset in params["datasets"]]
    changed = read(_text(grid)) != read(base[paths.GRID])
    return {paths.PARAMS: _text(params), paths.GRID: _text(grid) if changed else base[paths.GRID]}


def _overlays(name: str, *above: str) -> list[dict[str, Any]]:
    """What a scale says, after what the one says that it lies `over`; `above` are those that lie over this one."""
    overlay = read_mapping(SCALES / f"{name}.yaml", "what differs from params.yaml")
    below = overlay.pop("over", None)
    others = [each for each in names() if each not in (EMBEDDED, name, *above)]
    if below is not None and below not in others:
        raise BadInput(f"{SCALES / name}.yaml: over is {below!r}, expected another of {', '.join(others)}")
    return [*(_overlays(below, name, *above) if below else []), overlay]


def put_on(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    """Change `base` by what an overlay says: mappings entry by entry, nothing (~) removes one, all else replaces.

    Options, and whatever else goes with a name (a schedule, a backbone), are replaced as a whole.
    """
    for key, value in overlay.items():
        inner = base.get(key)
        if value is None:
            base.pop(key, None)
        elif isinstance(value, dict) and isinstance(inner, dict) and key != "options" and "name" not in value:
            put_on(inner, value)
        elif isinstance(value, list) and isinstance(inner, list):
            inner[:] = value  # written as it was: on one line, its comment beside it
        else:
            base[key] = value


def overlaid(text: str, overlay: dict[str, Any]) -> str:
    """A YAML file's text with an overlay put on; all other lines stay as they are."""
    content = _editor().load(text)
    put_on(content, overlay)
    return _text(content)


def apply(name: str) -> None:
    """Put a scale on, in place of the present one; raises BadInput where that would lose edits of the user's."""
    wanted, before = scaled(name, {file: _committed(file) for file in CHOSEN}), current()
    if before is None:
        message = f"{paths.PARAMS} or {paths.GRID} has edits that are in no scale"
        raise BadInput(f"{message}; commit them, or drop them with `git checkout {paths.PARAMS} {paths.GRID}`")
    if name == before:
        return
    _set_aside(KEPT / before)
    # Of a scale that never ran nothing was set aside: what is there stays, and DVC sees that it is stale.
    rendered = {file: KEPT / name / file for file in GENERATED if (KEPT / name / file).exists()}
    replace_together({**wanted, **rendered}, KEPT)
    # What that scale has computed lies in DVC's cache; where a part of it is gone, `dvc repro` makes it anew.
    subprocess.run([sys.executable, "-m", "dvc", "checkout", "--quiet", "--force"], capture_output=True, check=False)


def changes(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """What differs between two mappings, a line each."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from changes(before.get(key), after.get(key), f"{place}.{key}".lstrip("."))
    elif before != after:
        old, new = ("nothing" if value is None else str(value) for value in (before, after))
        yield f"{place}: {old:.60} → {new:.60}"


def read(text: str) -> Any:
    """Its plain content."""
    return parse(text, str(paths.PARAMS))


def read_chosen(file: Path) -> Any:
    """The content of params.yaml or paper/grid.yaml, wherever it lies; raises BadInput."""
    return parse(read_text(file, "parameters or a grid"), str(file))


def _set_aside(folder: Path) -> None:
    with whole_folder(folder) as partial:
        for file in filter(Path.exists, GENERATED):
            _copy(file, partial / file)


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if file.is_dir() else shutil.copy2)(file, target)


def _committed(file: Path) -> str:
    """The text in the last commit; raises BadInput where no scale can lie over it."""
    shown = subprocess.run(["git", "show", f"HEAD:./{file}"], capture_output=True, check=False)
    if shown.returncode:
        said = one_line(shown.stderr.decode(errors="replace"))
        raise BadInput(f"{file} is in no commit ({said}), expected it there: scales lie over it")
    place = f"{file} as committed"
    try:
        text = shown.stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{place}: is no text ({error}); commit a whole one") from error
    if not isinstance(parse(text, place), dict):
        raise BadInput(f"{place}: holds no mapping, which scales lie over; commit a whole one")
    return text


def _editor() -> YAML:
    """It keeps comments and the form that DVC writes."""
    editor = YAML()
    editor.width = 10**4
    return editor


def _text(content: Any) -> str:
    stream = StringIO()
    _editor().dump(content, stream)
    return stream.getvalue()
