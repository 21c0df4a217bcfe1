"""What tools/edition does: each action takes the name of an edition, where one is given, and a folder to write to."""

import shutil
from collections.abc import Callable
from pathlib import Path

from repro import paths
from repro.editions.edition import EDITIONS, Edition, names
from repro.errors import BadInput
from stages.settings import scales
from tools.editions.keeping import CHOSEN, keep
from tools.editions.pages import BYTES, write_pages
from tools.editions.rebuilding import RENDERED, differing, rendered


def _list(name: str | None, out: Path | None) -> int:
    for each in map(Edition, (EDITIONS / name for name in names())):
        seeds = ", ".join(map(str, each.about.seeds))
        print(f"{each.name}: {each.about.benchmark}, seeds {seeds}. {each.summary()}")
    if not names():
        print("no editions yet; `tools/edition keep NAME` keeps what a finished run rendered")
    return 0


def _keep(name: str | None, out: Path | None) -> int:
    edition = keep(str(name))
    size = sum(file.stat().st_size for file in edition.folder.glob("records.*")) / BYTES
    print(f"{edition.folder}: kept, its records take {size:.1f} MB; add it to git, then `tools/edition pages`")
    return 0


def _rebuild(name: str | None, out: Path | None) -> int:
    edition = Edition(EDITIONS / str(name))
    if out is None and (changed := list(changes(edition))):
        message = f"params.yaml or paper/grid.yaml is not that of {name} ({changed[0]})"
        raise BadInput(f"{message}; give --out FOLDER, or put its scale on with `tools/scale`")
    with rendered(edition, Path.cwd()) as (found, result):
        target = out or paths.PAPER
        for file in RENDERED:
            if (found / file).is_dir():
                shutil.copytree(found / file, target / file, dirs_exist_ok=True)
            else:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(found / file, target / file)
        others = differing(edition.folder, found)
    print(result.summary)
    return _say(edition, others, f"rebuilt in {target}")


def _check(name: str | None, out: Path | None) -> int:
    worst = 0
    for each in [name] if name else names():
        edition = Edition(EDITIONS / each)
        with rendered(edition, Path.cwd()) as (found, _):
            worst = max(worst, _say(edition, differing(edition.folder, found), "checked"))
    return worst


def _say(edition: Edition, others: list[str], done: str) -> int:
    if others:
        message = f"{edition.name}: {done}; {len(others)} files are not as kept: {', '.join(others)}"
        print(f"{message} (kept at commit {edition.about.commit[:12] or 'unknown'})")
        return 1
    copied = f"; {', '.join(edition.about.copied)} taken over" if edition.about.copied else ""
    print(f"{edition.name}: {done}, every byte as kept{copied}")
    return 0


def _pages(name: str | None, out: Path | None) -> int:
    for file in write_pages():
        print(file)
    return 0


def changes(edition: Edition) -> list[str]:
    """What the parameters and the grid of the working tree have otherwise, a line each; the machine's do not count."""
    found = []
    for kept, file in CHOSEN.items():
        if file in scales.CHOSEN:
            before, after = (scales.read(path.read_text(encoding="utf-8")) for path in (edition.folder / kept, file))
            found += [line for line in scales.changes(before, after) if not line.startswith("machine.")]
    return found


ACTIONS: dict[str, Callable[[str | None, Path | None], int]] = {
    "list": _list,
    "keep": _keep,
    "rebuild": _rebuild,
    "check": _check,
    "pages": _pages,
}
