"""Real processes answer as the functions do, through the warm launcher and without it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bad_inputs.asking import ROOT, Answer, Damage, contents, cut, nothing, params, written

pytestmark = pytest.mark.timeout(600)
MODEL = "models/pretrained/mini-linear"
MEASURE = f"evaluate one --dataset mini --shot 1 --ways 5 --method mc_knn --model {MODEL}"

TABLE: dict[str, tuple[Damage, str, str]] = {
    "no stage": (nothing, "", "usage: python -m stages {"),
    "a stage there is not": (nothing, "splt mini", "usage: python -m stages {"),
    "no such file as a stage": (nothing, "../../etc/passwd", "usage: python -m stages {"),
    "a wrong seed": (params(seed="x"), "splits mini", "seed is 'x', expected"),
    "a tag that runs code": (
        written("params.yaml", "a: !!python/object/apply:os.mkdir [ran]"),
        "paper",
        "not plain YAML",
    ),
    "an option glyphs do not take": (params(datasets__mini__options__depth=1), "splits mini", "unknown option depth"),
    "more ways than classes": (params(episodes__mini__test=[{"way": 8, "tasks": 4}]), "episodes mini", "8 ways"),
    "a truncated array": (cut("data/mini/images.npy"), "episodes mini", "images.npy: content is"),
    "a backbone there is not": (
        params(backbones__mini__name="x"),
        "pretrain mini-linear --dataset mini --classifier linear",
        "unknown backbone 'x'",
    ),
    "truncated tasks": (cut("episodes/mini/test/5way-1shot.safetensors"), MEASURE, "not a stored task list"),
    "truncated embeddings": (cut(f"{MODEL}/embeddings.safetensors"), MEASURE, "embeddings.safetensors: content is"),
    "truncated weights": (
        cut(f"{MODEL}/model.safetensors"),
        "train one --dataset mini --method protonet --shot 1 --pretrained mini-linear",
        "model.safetensors",
    ),
}


def launch(folder: Path, words: list[str], **environment: str) -> Answer:
    command = [sys.executable, "-m", "stages", *words]
    told = os.environ | {"DVC_ROOT": str(folder), "OMP_NUM_THREADS": "1"} | environment
    done = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stderr)


@pytest.fixture
def judge_process(workspace: Path, bad_inputs) -> Callable[..., None]:
    """As `judge`, with a process of its own."""

    def judge_row(damage: Damage, command: str, expected: str, **environment: str) -> None:
        for name in ("repro", "stages", "requirements.lock"):
            (workspace / name).symlink_to(ROOT / name)
        damage(workspace)
        before = contents(workspace)
        bad_inputs.tried()
        answer = launch(workspace, command.split(), **environment)
        assert answer.code == 2 and "Traceback" not in answer.said, answer.said
        assert answer.said.count("\n") == 1 and expected in answer.said, answer.said
        assert contents(workspace) == before
        bad_inputs.answered()

    return judge_row


@pytest.mark.parametrize("name", TABLE)
def test_a_process_answers_with_one_sentence(name: str, judge_process: Callable[..., None]) -> None:
    judge_process(*TABLE[name])


def test_without_the_warm_process_too(judge_process: Callable[..., None]) -> None:
    judge_process(params(seed="x"), "splits mini", "seed is 'x', expected", REPRO_WARM="0")
