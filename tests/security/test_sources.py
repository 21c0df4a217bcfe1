"""What our code never does, read from its source: load a pickle, evaluate text, start a shell, listen to others."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Reads numpy arrays out of pickles with a table of allowed names; tests/preparation/test_unpickle.py holds it to that.
RESTRICTED_UNPICKLER = "repro/preparation/unpickle.py"
LOADERS = {"_PlainLoader", "_FAST_LOADER", "SafeLoader", "CSafeLoader"}  # all subclasses of YAML's safe loader
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "pty", "telnetlib"}
FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
    *("yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "yaml.unsafe_load_all", "pd.read_pickle"),
    *("tempfile.mktemp", "ssl._create_unverified_context", "torch.hub.load"),
}


def sources() -> list[Path]:
    """Every Python file of ours that users run: by its ending, or by its first line."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "repro", "stages", "tools"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [Path(name) for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    return [
        file for file in files if file.suffix == ".py" or (ROOT / file).read_bytes().startswith(b"#!/usr/bin/env py")
    ]


SOURCES = sources()


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
    return isinstance(node, ast.Constant) and node.value is value


def loader_of(call: ast.Call, named: dict[str, ast.expr]) -> str:
    loader = call.args[1] if len(call.args) > 1 else named.get("Loader")
    return name_of(loader).rpartition(".")[2] if loader is not None else ""


def problems(text: str) -> list[str]:
    """What a source does that it must not, with the line."""
    tree = ast.parse(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [f"{node.lineno}: imports {name}" for name in names if name.split(".")[0] in FORBIDDEN_MODULES]
    for name, call, named in calls(tree):
        wrong = name in FORBIDDEN_CALLS
        wrong |= name == "torch.load" and not is_constant(named.get("weights_only"), True)
        wrong |= name == "yaml.load" and loader_of(call, named) not in LOADERS
        wrong |= "allow_pickle" in named and not is_constant(named["allow_pickle"], False)
        wrong |= "shell" in named and not is_constant(named["shell"], False)
        wrong |= "verify" in named and is_constant(named["verify"], False)
        wrong |= name.endswith((".extractall", ".unpack_archive"))  # archives may lead out of their folder
        found += [f"{call.lineno}: calls {name}"] if wrong else []
    return found


def test_the_scan_reaches_all_rooms() -> None:
    names = {str(file) for file in SOURCES}
    assert len(names) > 120
    assert {"tools/doctor", "tools/tracking/server.py", "stages/_warm.py", "repro/methods/released.py"} <= names


@pytest.mark.parametrize("file", SOURCES, ids=str)
def test_no_source_loads_or_runs_what_it_is_given(file: Path) -> None:
    found = problems((ROOT / file).read_text())
    if str(file) == RESTRICTED_UNPICKLER:
        found = [each for each in found if not each.endswith("imports pickle")]
    assert not found, f"{file} {found}"


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
        "np.load(file, allow_pickle=True)",
        "np.load(file, allow_pickle=flag)",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.FullLoader)",
        "subprocess.run(command, shell=True)",
        "os.system(command)",
        "eval(text)",
        "tarfile.open(file).extractall(folder)",
        "requests.get(url, verify=False)",
    ],
)
def test_the_scan_would_find_it(text: str) -> None:
    assert problems(text)


def test_the_restricted_unpickler_is_used_in_one_place_and_calls_no_reader_of_the_library() -> None:
    text = (ROOT / RESTRICTED_UNPICKLER).read_text()
    assert "find_class" in text
    assert not re.search(r"pickle\.(loads?|Unpickler)\b", text)


@pytest.mark.parametrize("file", SOURCES, ids=str)
def test_no_source_listens_to_other_machines(file: Path) -> None:
    assert "0.0.0.0" not in (ROOT / file).read_text()
    for name, call, _ in calls(ast.parse((ROOT / file).read_text())):
        listens = name.endswith((".bind", ".create_server", "run_server")) and name != "signature.bind"
        if listens and call.args:
            address = call.args[0]
            host = address.elts[0] if isinstance(address, ast.Tuple) else address
            is_socket_file = isinstance(host, ast.JoinedStr)
            assert is_socket_file or is_constant_text(host, "127.0.0.1"), f"{file}:{call.lineno}"


def is_constant_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def test_omniboard_is_started_on_this_machine_only() -> None:
    script = (ROOT / "tools" / "tracking" / "omniboard.js").read_text()
    assert "listen.call(this, port, '127.0.0.1', callback)" in script
