"""A training that was killed and started again ends with the same bytes as one that was not."""

import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from repro.data.dataset import Dataset
from repro.errors import BadInput
from repro.models.device import Acceleration
from repro.models.weights import save_weights
from repro.training.checkpoints import own_checkpoints, write_checkpoint
from repro.training.distributed import World
from repro.training.loop import Training, run
from repro.training.optim import Optimisation, Schedule
from tests.training.resumed_run import main as run_to_the_end
from tests.training.small import TRAININGS, small_meta_training, small_pretraining


class Killed(Exception):
    pass


def outcome(training: Training, folder: Path) -> tuple[bytes, str, object]:
    """Everything a run leaves behind: the best weights of every measure, history, best validations."""
    for measure in reversed(training.bests):
        training.install_best(measure)
        save_weights(training.learner.model, folder / f"{measure}.safetensors")
    weights = b"".join((folder / f"{measure}.safetensors").read_bytes() for measure in training.bests)
    return weights, json.dumps(training.history), training.bests


def uninterrupted(kind: str, dataset: Dataset, folder: Path, **options: object) -> tuple[bytes, str, object]:
    training = TRAININGS[kind](dataset, **options)
    for _ in training:
        pass
    return outcome(training, folder)


@pytest.mark.parametrize("kind", TRAININGS)
@pytest.mark.parametrize("every", [1, 4])
def test_a_run_stopped_at_random_steps_ends_the_same(tiny: Dataset, tmp_path: Path, kind: str, every: int) -> None:
    expected = uninterrupted(kind, tiny, tmp_path)
    stops = sorted(random.Random(every).sample(range(1, 14), 4))
    for stop in [*stops, None]:
        torch.manual_seed(random.Random(stop).randrange(10**6))  # whatever state the new process happens to be in
        training = TRAININGS[kind](tiny)
        torch.rand(3)
        for metrics in run(training, tmp_path / "checkpoints", checkpoint_every=every):
            if metrics.step == stop:
                break
    assert outcome(training, tmp_path) == expected


def test_frozen_backbones_and_scaled_losses_resume_too(tiny: Dataset, tmp_path: Path) -> None:
    for number, options in enumerate(({"frozen": True}, {"acceleration": Acceleration(amp="fp16")})):
        folder = tmp_path / str(number)
        folder.mkdir()
        expected = uninterrupted("meta", tiny, folder, **options)
        for stop in (6, None):
            training = small_meta_training(tiny, **options)
            for metrics in run(training, folder / "checkpoints", checkpoint_every=5):
                if metrics.step == stop:
                    break
        assert outcome(training, folder) == expected


@pytest.mark.parametrize("kind", TRAININGS)
def test_a_killed_process_goes_on_where_it_was(tiny_folder: Path, tmp_path: Path, kind: str) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    run_to_the_end(kind, tiny_folder, tmp_path / "whole", 0)
    for kill_after, code in ((8, -signal.SIGKILL), (0, 0)):
        command = [sys.executable, "-m", "tests.training.resumed_run", kind]
        arguments = [str(tiny_folder), str(tmp_path / "killed"), str(kill_after)]
        assert subprocess.run([*command, *arguments], check=False).returncode == code
    for file in ("final.safetensors", "history.json"):
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_kill_while_writing_leaves_the_last_checkpoint(
    tiny: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = uninterrupted("meta", tiny, tmp_path)
    folder = tmp_path / "checkpoints"
    for metrics in run(small_meta_training(tiny), folder, checkpoint_every=4):
        if metrics.step == 5:
            break

    def killed(*_: object) -> None:
        raise Killed

    # Once before the new folder gets its name, once after that but before the old one goes.
    for place in ("pathlib.Path.replace", "repro.training.checkpoints._remove_others"):
        with monkeypatch.context() as patch:
            patch.setattr(place, killed)
            with pytest.raises(Killed):
                list(run(small_meta_training(tiny), folder, checkpoint_every=4))
    shutil.copytree(next(folder.glob("step-*")), folder / ".step-000000008.abc.partial")
    training = small_meta_training(tiny)
    list(run(training, folder, checkpoint_every=4))
    assert outcome(training, tmp_path) == expected
    assert [path.name for path in folder.iterdir()] == ["step-000000012"]
    with own_checkpoints(folder, World()), pytest.raises(BadInput, match="in use by another process"):
        with own_checkpoints(folder, World()):
            pass
    assert not folder.exists()


@pytest.fixture(scope="module")
def checkpoints(tiny: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint folder of a meta-training stopped after 5 steps."""
    folder = tmp_path_factory.mktemp("stopped") / "checkpoints"
    for metrics in run(small_meta_training(tiny), folder, checkpoint_every=5, inputs={"dataset_sha256": "abc"}):
        if metrics.step == 6:
            break
    return folder


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seed": 8}, "with seed = 7, now it is 8"),
        ({"shot": 1}, "with batch.shot = 2, now it is 1"),
        (
            {"optimisation": Optimisation(0.1, Schedule("cosine"), clip=5.0)},
            "with optimisation.lr = 0.05, now it is 0.1",
        ),
        ({"optimisation": Optimisation(0.05, clip=5.0)}, r"schedule.name = 'cosine', now it is 'constant'"),
    ],
)
def test_other_settings_are_refused_by_name(
    tiny: Dataset, checkpoints: Path, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(BadInput, match=f"{sentence}; restore the setting, or delete"):
        run(small_meta_training(tiny, **options), checkpoints, checkpoint_every=5, inputs={"dataset_sha256": "abc"})


def test_inputs_that_the_caller_names_count_too(tiny: Dataset, checkpoints: Path) -> None:
    with pytest.raises(BadInput, match="inputs.dataset_sha256 = 'abc', now it is 'xyz'"):
        run(small_meta_training(tiny), checkpoints, checkpoint_every=5, inputs={"dataset_sha256": "xyz"})


@pytest.mark.parametrize("file", ["state.json", "weights.safetensors", "momentum.safetensors", "history.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "gone", "flipped"])
def test_a_damaged_checkpoint_is_named(
    tiny: Dataset, checkpoints: Path, tmp_path: Path, file: str, damage: str
) -> None:
    shutil.copytree(checkpoints, tmp_path / "copy")
    victim = next((tmp_path / "copy").glob("step-*")) / file
    content = victim.read_bytes()
    victim.unlink()
    if damage != "gone":
        half = len(content) // 2
        victim.write_bytes(content[:half] if damage == "cut" else b"\xff" + content[1:])
    with pytest.raises(BadInput, match="step-000000005.*delete .* to start this training anew"):
        run(small_meta_training(tiny), tmp_path / "copy", checkpoint_every=5, inputs={"dataset_sha256": "abc"})


@pytest.mark.parametrize("lines", [0, 1, 4])
def test_a_checkpoint_whose_seal_leaves_files_out_is_refused(
    lines: int, tiny: Dataset, checkpoints: Path, tmp_path: Path
) -> None:
    shutil.copytree(checkpoints, tmp_path / "copy")
    sums = next((tmp_path / "copy").glob("step-*")) / "SHA256SUMS"
    sums.write_text("".join(sums.read_text().splitlines(keepends=True)[:lines]))
    with pytest.raises(BadInput, match="SHA256SUMS.* name.* expected .*delete .* to start this training anew"):
        run(small_meta_training(tiny), tmp_path / "copy", checkpoint_every=5, inputs={"dataset_sha256": "abc"})


def test_a_checkpoint_of_another_network_names_the_shapes(tiny: Dataset, tmp_path: Path) -> None:
    small, other = small_pretraining(tiny), small_meta_training(tiny)
    write_checkpoint(tmp_path / "c", small.snapshot(), other.settings)
    with pytest.raises(BadInput, match="missing seen_weight_SD; unexpected classifier.weight_SD"):
        run(other, tmp_path / "c", checkpoint_every=1)


def test_a_checkpoint_interval_below_one_is_refused(tiny: Dataset, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="checkpoint_every=0"):
        run(small_meta_training(tiny), tmp_path, checkpoint_every=0)
