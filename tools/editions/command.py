"""What tools/edition does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from repro import paths
from repro.editions.edition import Edition, kept_edition, names
from repro.errors import BadInput
from repro.files import replace_together
from stages.settings import scales
from stages.settings.params import read_params
from tools.editions.joining import join
from tools.editions.keeping import CHOSEN, keep
from tools.editions.pages import BYTES, write_pages
from tools.editions.rebuilding import differing, fresh_paper, rendered_files


@dataclass(frozen=True)
class Asked:
    """The name of an edition, a folder to write to, and the editions that are its parts, where they are given."""

    name: str
    out: Path | None
    parts: Sequence[str]


def perform(action: str, name: str | None, out: Path | None = None, parts: Sequence[str] = ()) -> int:
    """Do it and give the exit code; raises BadInput where there is no such action, or it lacks what it needs."""
    if action not in ACTIONS:
        message = f"action is {action!r:.60}, expected one of {', '.join(ACTIONS)}"
        raise BadInput(f"{message}; `tools/edition --help` explains them")
    if name is None and action in NEED_A_NAME:
        raise BadInput(f"{action} is given no name, expected an edition's: `tools/edition {action} NAME`")
    if name is not None and action in OF_ALL:
        raise BadInput(f"{action} is about all editions, expected no name beside it")
    if out is not None and action != "rebuild":
        raise BadInput(f"--out was given with {action}, expected it with rebuild alone")
    if out is not None and out.exists() and not out.is_dir():  # known before all is rendered
        raise BadInput(f"--out is {out}, which is no folder; expected one to rebuild in")
    if (action == "join") != bool(parts):
        raise BadInput("--parts names the editions to join, and join needs them: `tools/edition join NAME --parts A B`")
    return ACTIONS[action](Asked(name or "", out, parts))


def _list(asked: Asked) -> int:
    for each in map(kept_edition, names()):
        seeds = ", ".join(map(str, each.about.seeds))
        print(f"{each.name}: {each.about.benchmark}, seeds {seeds}. {each.summary()}")
    if not names():
        print("no editions yet; `tools/edition keep NAME` keeps what a finished run rendered")
    return 0


def _keep(asked: Asked) -> int:
    edition = keep(asked.name)
    size = sum(file.stat().st_size for file in edition.folder.glob("records.*")) / BYTES
    print(f"{edition.folder}: kept, its records take {size:.1f} MB; add it to git, then `tools/edition pages`")
    return 0


def _join(asked: Asked) -> int:
    edition = join(asked.name, [kept_edition(part) for part in asked.parts])
    seeds = ", ".join(map(str, edition.about.seeds))
    print(f"{edition.folder}: seeds {seeds}. {edition.summary()}; add it to git, then `tools/edition pages`")
    return 0


def _rebuild(asked: Asked) -> int:
    edition = kept_edition(asked.name)
    changed = changes(edition) if asked.out is None else []
    if others := [line for line in changed if not line.startswith(SEEDS)]:
        message = f"params.yaml or paper/grid.yaml is not that of {asked.name} ({others[0]})"
        raise BadInput(f"{message}; give --out FOLDER, or put its scale on with `tools/scale`")
    with fresh_paper(edition, Path.cwd()) as (found, result):
        target = asked.out or paths.PAPER
        target.mkdir(parents=True, exist_ok=True)
        replace_together({target / name: found / name for name in sorted(rendered_files(found))}, target)
        not_as_kept = differing(edition.folder, found)
    print(result.summary)
    if changed:  # more replicates of the same parameters, or fewer
        here = ", ".join(map(str, read_params(paths.PARAMS).seeds))
        seeds = ", ".join(map(str, edition.about.seeds))
        print(f"of seeds {seeds}; params.yaml has {here}, which `dvc repro paper` would render")
    return _say(edition, not_as_kept, f"rebuilt in {target}")


def _check(asked: Asked) -> int:
    worst = 0
    for edition in map(kept_edition, [asked.name] if asked.name else names()):
        with fresh_paper(edition, Path.cwd()) as (found, _):
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


def _pages(asked: Asked) -> int:
    for file in write_pages():
        print(file)
    return 0


def changes(edition: Edition) -> list[str]:
    """What the parameters and the grid of the working tree have otherwise, a line each; the machine's do not count."""
    found = []
    for kept, file in CHOSEN.items():
        if file in scales.CHOSEN:
            before, after = map(scales.read_chosen, (edition.folder / kept, file))
            found += [line for line in scales.changes(before, after) if not line.startswith("machine.")]
    return found


ACTIONS: dict[str, Callable[[Asked], int]] = {
    "list": _list,
    "keep": _keep,
    "join": _join,
    "rebuild": _rebuild,
    "check": _check,
    "pages": _pages,
}
SEEDS = "seeds:"  # how a change of them begins
NEED_A_NAME, OF_ALL = ("keep", "join", "rebuild"), ("list", "pages")
