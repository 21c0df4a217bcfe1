"""What our code never does: load a pickle, evaluate text, start a shell, listen to others. Ruff's S rules find most."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.paths import ROOT, sources

# Reads numpy arrays out of pickles with a table of allowed names; tests/preparation/test_unpickle.py holds it to that.
RESTRICTED_UNPICKLER = "repro/preparation/unpickle.py"


SOURCES = sources()


@pytest.mark.parametrize(
    "text",
    [
        "import pickle\npickle.load(file)",
        "import dill\ndill.load(file)",
        "import yaml\nyaml.load(text)",
        "import yaml\nyaml.load(text, Loader=yaml.FullLoader)",
        "import subprocess\nsubprocess.run(command, shell=True)",
        "import os\nos.system(command)",
        "eval(text)",
        "exec(text)",
        "import tarfile\ntarfile.open(file).extractall(folder)",
        "import requests\nrequests.get(url, verify=False)",
        "import tempfile\ntempfile.mktemp()",
    ],
)
def test_the_linter_of_the_suite_would_find_it(text: str) -> None:
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--output-format",
        "concise",
        "--stdin-filename",
        "tools/x.py",
        "-",
    ]
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    assert re.search(r" S\d\d\d ", done.stdout), done.stdout


def name_of(node: ast.expr) -> str:
    """The dotted name of what is called."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call, dict[str, ast.expr]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield name_of(node.func), node, {each.arg: each.value for each in node.keywords if each.arg}


def is_constant(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value


def readers_of_pickles(text: str) -> list[str]:
    """Calls that the linter does not know to unpickle, with the line."""
    found = []
    for name, call, named in calls(ast.parse(text)):
        wrong = name == "torch.load" and not is_constant(named.get("weights_only"), True)
        wrong |= "allow_pickle" in named and not is_constant(named["allow_pickle"], False)
        wrong |= name in ("joblib.load", "torch.hub.load")
        found += [f"{call.lineno}: calls {name}"] if wrong else []
    return found


@pytest.mark.parametrize("text", ["torch.load(x)", "torch.load(x, weights_only=no)", "np.load(x, allow_pickle=True)"])
def test_the_search_for_pickles_would_find_it(text: str) -> None:
    assert readers_of_pickles(text)


def test_no_source_reads_a_pickle_unseen() -> None:
    assert {"tools/doctor", "tools/tracking/server.py", "stages/launching/forkserver.py"} <= set(map(str, SOURCES))
    found = {str(file): readers_of_pickles((ROOT / file).read_text()) for file in SOURCES}
    assert not {file: problems for file, problems in found.items() if problems}


def test_the_restricted_unpickler_calls_no_reader_of_the_library() -> None:
    text = (ROOT / RESTRICTED_UNPICKLER).read_text()
    assert "find_class" in text
    assert not re.search(r"pickle\.(loads?|Unpickler)\b", text)


def test_no_source_listens_to_other_machines() -> None:
    for file in SOURCES:
        for name, call, _ in calls(ast.parse((ROOT / file).read_text())):
            listens = name.endswith((".bind", ".create_server", "run_server")) and name != "signature.bind"
            if listens and call.args:
                address = call.args[0]
                host = address.elts[0] if isinstance(address, ast.Tuple) else address
                is_socket_file = isinstance(host, ast.JoinedStr) or name_of(host) == "str"
                is_socket_file |= isinstance(host, ast.Call) and name_of(host.func) == "str"
                assert is_socket_file or is_constant(host, "127.0.0.1"), f"{file}:{call.lineno}"


def test_omniboard_is_started_on_this_machine_only() -> None:
    script = (ROOT / "tools" / "tracking" / "omniboard.js").read_text()
    assert "listen.call(this, port, '127.0.0.1', callback)" in script
