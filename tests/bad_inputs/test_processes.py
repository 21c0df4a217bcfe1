"""Real processes answer as the functions do, forked from a server and by themselves."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stages.launching.places import FOLDER
from tests.bad_inputs.asking import Answer, Damage, contents, cut, gone, nothing, params, several, written
from tests.paths import ROOT

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("forked_stages")]
MODEL = "models/pretrained/mini-standard/0"
MEASURE, MEASURED = "evaluate mini-mc_knn-1shot", "results/cells/mini-mc_knn-1shot"

TABLE: dict[str, tuple[Damage, str, str]] = {
    "no stage": (nothing, "", "usage: python -m stages {"),
    "a stage there is not": (nothing, "splt mini", "usage: python -m stages {"),
    "no such file as a stage": (nothing, "../../etc/passwd", "usage: python -m stages {"),
    "a file that is no stage": (nothing, "origins", "usage: python -m stages {"),
    "a name for a stage without one": (nothing, "plan mini", "got 'mini', expected nothing: python -m stages plan"),
    "a seed with a zero before it": (nothing, f"{MEASURE} --seed 00", "got mini-mc_knn-1shot --seed 00, expected one"),
    "a wrong seed": (params(seeds=["x"]), "plan", "seeds.0 is 'x', expected"),
    "a seed that is not listed": (nothing, f"{MEASURE} --seed 7", "got --seed 7, expected one of 0; add it to"),
    "a tag that runs code": (
        written("params.yaml", "a: !!python/object/apply:os.mkdir [ran]"),
        "plan",
        "not plain YAML",
    ),
    "an option a method does not take": (params(methods__castle__options={"bases": 1}), "plan", "unknown option bases"),
    "a truncated array": (
        several(cut("data/mini/0/images.npy"), gone("models/pretrained/mini-standard")),
        "pretrain mini-standard",
        "images.npy: content is",
    ),
    "a name that is not planned": (nothing, "pretrain x", "got the name 'x', expected one of"),
    "truncated tasks": (
        several(cut("episodes/mini/test/0/5way-1shot.safetensors"), gone(MEASURED)),
        MEASURE,
        "not a stored task list",
    ),
    "truncated embeddings": (
        several(cut(f"{MODEL}/embeddings.safetensors"), gone(MEASURED)),
        MEASURE,
        "embeddings.safetensors: content is",
    ),
    "truncated weights": (cut(f"{MODEL}/model.safetensors"), "train mini-protonet-1shot", "model.safetensors"),
}


def launch(folder: Path, words: list[str]) -> Answer:
    command = [sys.executable, "-m", "stages", *words]
    environment = os.environ | {"DVC_ROOT": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stderr)


@pytest.fixture
def judge_process(workspace: Path, bad_inputs) -> Callable[..., None]:
    """As `judge`, with a process of its own."""

    def judge_row(damage: Damage, command: str, expected: str) -> None:
        (workspace / "requirements.lock").symlink_to(ROOT / "requirements.lock")
        damage(workspace)
        before = contents(workspace)
        bad_inputs.tried()
        answer = launch(workspace, command.split())
        assert answer.code == 2 and "Traceback" not in answer.said, answer.said
        assert answer.said.count("\n") == 1 and expected in answer.said, answer.said
        assert contents(workspace) == before
        bad_inputs.answered()

    return judge_row


STREAMS = ["<&- >&- 2>&-", "2>/dev/full", "2>&-"]


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("command", ["stages", "stages plan x", "stages train x --seed 00", "tools/sync --nonsense"])
def test_the_exit_code_is_the_same_where_nobody_can_read_the_sentence(
    command: str, streams: str, workspace: Path, bad_inputs
) -> None:
    program = f"'{sys.executable}' {'-m ' if command.startswith('stages') else ''}{command} {streams}"
    bad_inputs.tried()
    done = subprocess.run(program, shell=True, cwd=ROOT, env=os.environ | {"DVC_ROOT": str(workspace)}, check=False)
    assert done.returncode == 2
    bad_inputs.answered()


@pytest.mark.parametrize("command", ["plan", "splits mini", MEASURE])
def test_places_that_nobody_offered_are_named(command: str, workspace: Path, bad_inputs, monkeypatch) -> None:
    bad_inputs.tried()
    monkeypatch.setenv(FOLDER, str(workspace))
    answer = launch(workspace, command.split())
    assert answer.code == 2 and answer.said.count("\n") == 1, answer.said
    assert "REPRO_PLACES is '" in answer.said and "expected the folder that `tools/repro` made; unset it" in answer.said
    bad_inputs.answered()


ENDINGS = {
    "MemoryError()": (2, "error: the memory does not suffice"),
    "KeyboardInterrupt": (130, ""),
    "torch.linalg.LinAlgError('x is singular')": (2, "error: a fit has no solution (x is singular), expected"),
    "torch.OutOfMemoryError('20 GiB')": (2, "error: the GPU lacks memory (20 GiB), expected"),
}


@pytest.mark.parametrize("error", ENDINGS)
def test_what_ends_a_command_from_within_is_said_without_a_traceback(error: str, bad_inputs) -> None:
    bad_inputs.tried()
    imports = "from stages.tracking import bad_input_exits" + "\nimport torch" * error.startswith("torch")
    program = f"{imports}\nwith bad_input_exits():\n    raise {error}"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    code, said = ENDINGS[error]
    assert done.returncode == code and done.stderr.startswith(said) and done.stderr.count("\n") == bool(said)
    bad_inputs.answered()


def test_a_file_that_a_tool_opens_never_stands_for_a_closed_stream() -> None:
    program = (
        "import sys; sys.path.insert(0, 'tools'); import _bootstrap; _bootstrap.ensure_environment(); "
        "sys.exit(0 if open('params.yaml').fileno() > 2 else 1)"
    )
    command = f'"{sys.executable}" -c "{program}" <&- >&- 2>&-'
    assert subprocess.run(command, shell=True, cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["train", "--help"]])
def test_help_is_no_mistake(words: list[str]) -> None:
    command = [sys.executable, "-m", "stages", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("usage: python -m stages {plan,")


@pytest.mark.parametrize("name", TABLE)
def test_a_process_answers_with_one_sentence(name: str, judge_process: Callable[..., None]) -> None:
    judge_process(*TABLE[name])


def test_without_the_fork_server_too(judge_process: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRO_FORKSERVER")
    judge_process(params(seeds=["x"]), "plan", "seeds.0 is 'x', expected")
