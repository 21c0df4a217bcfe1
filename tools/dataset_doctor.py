"""The command line of the dataset doctor: reads its options, asks the library, shows its findings."""

import inspect
import json
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from repro.errors import BadInput
from repro.preparation.doctor import Report, examine
from repro.preparation.sources import SOURCES, Option, options_of
from stages.settings.grid import read_grid
from stages.settings.params import Params, read_params
from stages.settings.resolving import Resolver
from stages.settings.yaml_files import parse
from stages.tracking import bar, counting
from stages.tracking.names import printable
from tools.command_line import Parser, at_least
from tools.task_lists import TaskLists, task_lists

COLOURS = {"pass": "green", "warn": "yellow", "fail": "bold red"}


def check_dataset(folder: Path, description: str | None, examples: str = "") -> int:
    """Examine the dataset that the command line names, show the findings, and give the exit code."""
    parser = _parser(description, examples)
    arguments = parser.parse(sys.argv[1:])
    if arguments.results:
        parser.error("--results takes nothing else, expected `tools/doctor --results`")
    if arguments.edition is not None:
        parser.error("--edition takes a name and nothing else, expected `tools/doctor --edition NAME`")
    tasks: TaskLists | None
    if arguments.dataset is not None:
        if arguments.source is not None:
            parser.error("--dataset takes source and options from params.yaml; give either it or a source")
        source, seed, options, tasks = _entry(folder, arguments.dataset, arguments.seed)
    elif arguments.source is None:
        parser.error("the following arguments are required: source")
    else:
        source, seed = arguments.source, arguments.seed or 0
        options = _parse_options(parser, arguments.options, options_of(source))
        tasks = _tasks_of_entry_like(folder, source, options)
    with bar("decoding", 0, " images") as shown:
        progress = counting(shown)
        report = examine(source, seed, options, decode=not arguments.fast, tasks=tasks, progress=progress)
    if arguments.json:
        facts = {"source": source, "passed": report.passed, **asdict(report)}
        print(json.dumps(facts, indent=1))  # in ASCII: names of files may be no UTF-8
    else:
        _show(report)
    return 0 if report.passed else 1


def read_value(text: str, option: Option) -> Any:
    """One option's value, read as params.yaml is read; a path is taken as it is typed. Raises BadInput."""
    is_path = Path in get_args(option.annotation)
    return text if is_path and not text.startswith("[") else parse(text, f"{text!r}")


def _parser(description: str | None, examples: str) -> Parser:
    parser = Parser("doctor", description, f"{examples}\n{_describe_sources()}")
    parser.add_argument("source", nargs="?", choices=SOURCES, help="layout of the raw data")
    parser.add_argument("options", nargs="*", metavar="key=value", help="options of the source, explained below")
    parser.add_argument("--dataset", metavar="NAME", help="check this dataset of params.yaml instead")
    parser.add_argument(
        "--seed",
        type=at_least(0),
        metavar="N",
        help="root seed of everything that is drawn (default: 0, or the first of params.yaml)",
    )
    parser.add_argument("--fast", action="store_true", help="do not decode the images, only list and compare them")
    parser.add_argument("--json", action="store_true", help="print findings and counts per class for machines")
    parser.add_argument("--results", action="store_true", help="check what was computed instead; takes nothing else")
    parser.add_argument("--edition", metavar="NAME", help="compare the tree with an edition instead; nothing else")
    return parser


def _describe_sources() -> str:
    """Every option of every source: its default, and what the source's docstring says of it."""
    lines = []
    for source in SOURCES:
        lines.append(f"options of {source}:")
        for key, option in options_of(source).items():
            lines.append(f"  {key}{_default(option.default)}")
            lines += textwrap.wrap(option.meaning, 110, initial_indent="      ", subsequent_indent="      ")
        lines.append("")
    return "\n".join(lines)


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "  (must be given)"
    if value is None:
        return ""
    shown = list(value) if isinstance(value, tuple) else getattr(value, "name", value)
    return f"={shown}".replace(" ", "")


def _parse_options(parser: Parser, given: list[str], allowed: Mapping[str, Option]) -> dict[str, Any]:
    """Read key=value pairs; wrong usage ends the program."""
    options: dict[str, Any] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or key not in allowed:
            parser.error(f"{pair!r} is no option of this source, expected key=value with one of {', '.join(allowed)}")
        if key in options:
            parser.error(f"{key} is given twice, expected each option once")
        if not value:
            parser.error(f"{pair!r} gives no value, expected one; leave it out for the default")
        try:
            options[key] = read_value(value, allowed[key])
        except BadInput as error:
            parser.error(str(error))
    missing = [key for key, each in allowed.items() if each.default is inspect.Parameter.empty and key not in options]
    if missing:
        parser.error(f"no {missing[0]} given, expected {' '.join(f'{key}=…' for key in missing)}")
    return options


def _entry(folder: Path, name: str, seed: int | None) -> tuple[str, int, dict[str, Any], TaskLists]:
    """Source, seed, options and task lists of a dataset in params.yaml. Raises BadInput."""
    params = read_params(folder / "params.yaml")
    raw = sorted(each for each, entry in params.datasets.items() if entry.source in SOURCES)
    if name not in params.datasets:
        raise BadInput(f"--dataset is {name!r}, expected one of {', '.join(params.datasets)}")
    entry = params.datasets[name]
    if entry.source not in SOURCES:
        message = f"--dataset {name} has the source {entry.source}, which has no raw data to check"
        raise BadInput(f"{message}, expected one of {', '.join(raw) or 'a raw source in params.yaml'}")
    return entry.source, params.seeds[0] if seed is None else seed, entry.options, _task_lists(folder, params, name)


def _tasks_of_entry_like(folder: Path, source: str, options: Mapping[str, Any]) -> TaskLists | None:
    """The task lists of a dataset in params.yaml with this source and these options, where there is one."""
    try:
        params = read_params(folder / "params.yaml")
    except BadInput:
        return None  # raw data may be checked before there are parameters for it
    for name, entry in params.datasets.items():
        if entry.source == source and options.items() <= entry.options.items():
            return _task_lists(folder, params, name)
    return None


def _task_lists(folder: Path, params: Params, name: str) -> TaskLists:
    return task_lists(Resolver(params, read_grid(folder), folder).episodes(name))


def _show(report: Report) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for column in ("check", "seen", "expected", "verdict"):
        table.add_column(column, overflow="fold", ratio=3 if column == "seen" else None)
    for each in report.findings:
        words = (escape(printable(text)) for text in (each.check, each.seen, each.expected))
        table.add_row(*words, f"[{COLOURS[each.verdict]}]{each.verdict}[/]")
    console = Console()
    console.print(table)
    console.print("fit to be packed" if report.passed else "not fit to be packed: see the rows that fail")
