"""Whatever comes in from outside is taken or refused with BadInput, never anything else: tried at random.

The number of tries of each boundary stands in TRIES; damaged pictures are tried in tests/preparation/test_decoding.py.
"""

import contextlib
import copy
import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch
from dvc.utils.serialize import parse_yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from repro.errors import BadInput
from repro.models.weights import install
from repro.options import checked
from repro.trained.released import read_released, to_ours
from stages.settings.grid import Grid
from stages.settings.params import Params
from stages.settings.planned import asked
from stages.settings.yaml_files import parse
from stages.tracking import recorded_runs
from stages.tracking.mongo import copy_run, hosts, mongo_database
from stages.tracking.runs import begin
from tests.pipeline.small_params import small_grid, small_params
from tests.preparation import test_decoding
from tests.tracking import toy
from tools.command_line import Parser, at_least, words

TRIES = {"params": 400, "grid": 400, "-S values": 400, "command lines": 400, ".pth": 150, "run folders": 150}
TRIES |= {"Mongo URLs": 150, "YAML": 800}

NUMBERS = st.one_of(
    st.integers(), st.floats(), st.sampled_from([0, -1, 10**30, float("nan"), float("inf"), 1e308, True, False])
)
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=20),
    st.sampled_from(
        ["", "../x", "$(touch x)", "a;b", "1e-05", "010", "1:30", "\x1b[2J", "\ud800", "x" * 300, "~", "null"]
    ),
)
LEAVES = st.one_of(st.none(), NUMBERS, TEXTS)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=8
)


def tried(boundary: str) -> Callable[[Any], Any]:
    return settings(max_examples=TRIES[boundary], suppress_health_check=list(HealthCheck))


@contextmanager
def only_bad_input() -> Any:
    """BadInput with words that can be printed, or nothing."""
    try:
        yield
    except BadInput as error:
        assert str(error)
        str(error).encode(errors="backslashreplace")


def mutated(draw: st.DrawFn, content: dict[str, Any]) -> dict[str, Any]:
    """The content with one to three values, keys or places changed."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        place: Any = content
        while isinstance(place, dict | list) and place:
            keys = sorted(place, key=str) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(list(keys)))
            if draw(st.booleans()) or not isinstance(place[key], dict | list):
                how = draw(st.sampled_from(["value", "key", "gone"]))
                if how == "key" and isinstance(place, dict):
                    place[draw(TEXTS)] = place.pop(key)
                elif how == "gone":
                    del place[key]
                else:
                    place[key] = draw(VALUES)
                break
            place = place[key]
    return content


@tried("params")
@given(st.data())
def test_params(data: st.DataObject) -> None:
    content = data.draw(st.composite(mutated)(SMALL_PARAMS))
    with only_bad_input():
        assert isinstance(checked(Params, content, "params.yaml"), Params)


@tried("grid")
@given(st.data())
def test_grid(data: st.DataObject) -> None:
    content = data.draw(st.composite(mutated)(SMALL_GRID))
    with only_bad_input():
        lines = checked(Grid, content, "grid.yaml").lines()
        assert all(name.replace("_", "").replace("-", "").replace(".", "").isalnum() for name in lines)


@tried("-S values")
@given(key=st.sampled_from(sorted(small_params())), value=TEXTS | NUMBERS.map(str) | VALUES.map(str))
def test_values_of_dvc_exp_run(key: str, value: str) -> None:
    """`-S KEY=VALUE` puts a YAML value into params.yaml."""
    with only_bad_input():
        checked(Params, {**SMALL_PARAMS, key: parse(value, f"-S {key}")}, "params.yaml")


@tried("-S values")
@given(
    text=st.text("0123456789eE+-.:_xobtyn~", min_size=1, max_size=6) | st.sampled_from(["010", "1:30", "yes", "+.5"]),
    form=st.sampled_from(["a: {}\n", "%YAML 1.1\n---\na: {}\n", "a: !!float {}\n", "a: !!int {}\n", "a: !!int '{}'\n"]),
)
def test_a_value_means_what_dvc_takes_it_for(text: str, form: str) -> None:
    with contextlib.suppress(BadInput):  # refused: no second meaning
        ours = parse(form.format(text), "params.yaml")["a"]
        theirs = parse_yaml(form.format(text), "params.yaml")["a"]
        assert (type(ours), repr(ours)) == (type(theirs), repr(theirs))


@pytest.mark.parametrize("text", ["010", "1:30", "yes", "0o17", "+.5", "!!float '1:30'"])
def test_no_line_of_a_file_chooses_another_yaml(text: str) -> None:
    for before in ("%YAML 1.1\n---\n", "\ufeff%YAML 1.1\n---\n", "# x\n%YAML 1.1\n--- \n"):
        with pytest.raises(BadInput, match="^-S: has a line %YAML"):
            parse(f"{before}a: {text}\n", "-S")


def test_the_numbers_that_were_read_twice_differently() -> None:
    assert [parse(text, "-S") for text in ("1e-05", "010", "1:30")] == [1e-05, 10, "1:30"]


YAML_PARTS = [
    "!!int ",
    "!!bool ",
    "!!float ",
    "!!timestamp ",
    "!!set ",
    "!!omap ",
    "!",
    "%YAML 1.1\n---\n",
    "&a ",
    "*a",
]
YAML_PARTS += [
    "<<: ",
    "? ",
    "- ",
    ": ",
    "\n",
    "  ",
    "{",
    "}",
    "[",
    "]",
    "'",
    '"',
    "|",
    "x",
    "1",
    "0x",
    ".",
    "~",
    "=",
    "#",
]
YAML_PARTS += ["2001-01-01", "e", "_", "-", "\t", "é", "\x00", "0x" + 5000 * "f"]


@tried("YAML")
@given(parts=st.lists(st.sampled_from(YAML_PARTS), max_size=9))
def test_yaml(parts: list[str]) -> None:
    with only_bad_input():
        json.dumps(parse("".join(parts), "params.yaml"))


@pytest.mark.parametrize(
    "text", ["!!bool x", "!!int ''", "!!float ''", "a: &a 1\nb: &a 2", f"0x{5000 * 'f'}", "[" * 3000]
)
def test_yaml_that_its_readers_stumble_over_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(BadInput, match=r"^params.yaml: "):
        parse(text, "params.yaml")


@tried("command lines")
@given(
    arguments=st.lists(TEXTS | st.sampled_from(["--retries", "--through", "--retries=3", "--", "-1", "'a", "--seed"]))
)
def test_command_lines(arguments: list[str]) -> None:
    with only_bad_input():
        found = asked("train", arguments)
        assert "/" not in found.name and not found.name.startswith(("-", "."))
    parser = Parser("cluster", "", "")
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--retries", type=at_least(0))
    parser.add_argument("--through", type=words)
    with only_bad_input(), redirect_stdout(io.StringIO()):
        given_ = parser.parse(arguments)
        assert (given_.retries or 0) >= 0


KINDS = [torch.float32, torch.float64, torch.bool, torch.complex64, torch.int64, torch.uint8, torch.float8_e5m2]
KINDS += [torch.bfloat16]


@tried(".pth")
@given(
    kind=st.sampled_from(KINDS),
    form=st.sampled_from(["plain", "sparse", "quantised", "meta", "empty", "number", "list"]),
    name=st.sampled_from(["weight", "bias", "encoder.weight", 1, None, ("a",), ""]),
    cut=st.none() | st.integers(0, 2000),
    flipped=st.none() | st.integers(0, 2000),
)
def test_released_weights(kind: torch.dtype, form: str, name: Any, cut: int | None, flipped: int | None) -> None:
    tensor: Any = torch.ones(2, 2).to(kind)
    if form == "sparse" and kind.is_floating_point and tensor.element_size() > 1:
        tensor = torch.ones(2, 2).to_sparse()
    tensor = {"meta": torch.ones(2, 2, device="meta"), "number": 3, "list": [tensor]}.get(form, tensor)
    stream = io.BytesIO()
    torch.save({"params": {} if form == "empty" else {name: tensor}}, stream)
    content = bytearray(stream.getvalue()[:cut])
    if flipped is not None and content:
        content[flipped % len(content)] ^= 1
    with tempfile.TemporaryDirectory() as folder, only_bad_input():
        (Path(folder) / "x.pth").write_bytes(content)
        install(torch.nn.Linear(2, 2), to_ours(read_released(Path(folder) / "x.pth")), "x.pth")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("recorded") / "runs"
    toy.record_toy(runs)
    return runs


@tried("run folders")
@given(data=st.data())
def test_run_folders(data: st.DataObject, recorded: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        runs = Path(place) / "runs"
        shutil.copytree(recorded, runs, symlinks=True)
        (run,) = runs.glob("*-toy-*")
        file = run / data.draw(st.sampled_from(["run.json", "config.json", "metrics.jsonl", "cout.txt"]))
        if data.draw(st.booleans()) and file.suffix == ".json":
            forged = data.draw(st.composite(mutated)(json.loads(file.read_text())))
            file.write_text(json.dumps(forged, default=str))
        else:
            file.write_bytes(data.draw(st.binary(max_size=40)))
        list(recorded_runs(runs, "toy"))
        with only_bad_input():
            copy_run(run, None)  # type: ignore[arg-type]  # a record that is whole is copied, which needs a server
        folder, lock, _ = begin(runs, "toy", "mini-castle-1shot", {})
        lock.close()
        assert folder.is_dir()


@tried("Mongo URLs")
@given(before=TEXTS, secret=st.text("0123456789abcdef", min_size=8, max_size=12), after=TEXTS)
def test_mongo_urls(before: str, secret: str, after: str) -> None:
    assume(secret not in before + after)
    for url in (
        f"{before}{secret}{after}",
        f"mongodb://u:{secret}@{after}",
        f"mongodb://h/?proxyPassword={secret}{after}",
    ):
        try:
            with mongo_database(url):
                assert secret not in hosts(url) or "@" not in url
        except BadInput as error:
            assert secret not in str(error)


@pytest.mark.parametrize("after", ["@h", "@h/db", "@h.com/db?w=1", "x@h,i/db"])
def test_a_password_with_a_slash_is_no_host(after: str) -> None:
    url = f"mongodb://user:12/s3cret{after}"
    with pytest.raises(BadInput, match="write a / of a password as %2F") as found, mongo_database(url):
        pass
    assert "s3cret" not in str(found.value) and "user:12" not in str(found.value)


def test_readme_says_how_often_each_boundary_is_tried() -> None:
    source, readme = Path(__file__).read_text(), (Path(__file__).parents[2] / "README.md").read_text()
    tries = {name: times * source.count(f'@tried("{name}")\n') for name, times in TRIES.items()}
    (said,) = re.findall(r"boundary at random: ([^.]*(?:\.pth[^.]*)?)\. ", " ".join(readme.replace("`", "").split()))
    found = {name: int(times) for name, times in re.findall(r"(\S[^,]*?) (\d+)(?: times)?(?:,|$)", said)}
    assert found == tries | {"damaged pictures": test_decoding.TRIES}


SMALL_PARAMS, SMALL_GRID = small_params(), small_grid()
