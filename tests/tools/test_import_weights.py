"""Released checkpoints come in and go out unchanged, strictly, and without running what they may hold."""

from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor

from repro.files import sha256
from repro.models import create_backbone
from repro.results.records import read_records
from stages.settings.grid import read_grid
from tests.bad_inputs.asking import ask
from tests.conftest import note_origin, write_tiny_dataset
from tests.paths import ROOT
from tests.pipeline.small_params import small_params
from tests.tools.calling import call_tool

DIM, SEEN = 64, 4
OPTIONS = ["--backbone", "castle_convnet4_small", "--data"]


def released(kind: str = "castle") -> dict[str, Tensor]:
    """Tensors as the released code names them, on the smallest backbone."""
    torch.manual_seed(0)
    backbone, _ = create_backbone("castle_convnet4_small", 1)
    params = {f"encoder.{name}": tensor for name, tensor in backbone.state_dict().items()}
    if kind == "pretrained":
        return params | {"fc.weight": torch.randn(SEEN, DIM), "fc.bias": torch.randn(SEEN)}
    projections = {f"slf_attn.{name}.weight": torch.randn(DIM, DIM) for name in ("w_qs", "w_ks", "w_vs", "fc")}
    return params | projections | {"cls.weight": torch.randn(SEEN, DIM), "shared_key": torch.randn(1, 2 * SEEN, DIM)}


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[object, str, str]:
    """Run the tool in this process: exit code, output, errors."""
    code = call_tool(monkeypatch, "import_weights", *words)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with as many seen classes as the released tensors have."""
    folder = tmp_path_factory.mktemp("data") / "mini"
    write_tiny_dataset(folder / "0", seen=SEEN, per_class=6, size=16)
    note_origin(folder / "0")
    return folder


@pytest.fixture
def tool(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, data: Path):
    """Run with the options for the smallest backbone and dataset, unless something is exported."""

    def call(*words: object) -> tuple[int, str, str]:
        given = [] if "--export" in words else OPTIONS[:-1] if "--data" in words else [*OPTIONS, data]
        return run(capsys, monkeypatch, *given, *words)

    return call


@pytest.mark.parametrize("kind", ["castle", "acastle", "pretrained"])
def test_what_was_imported_is_exported_again_unchanged(tool, tmp_path: Path, kind: str) -> None:
    params = released(kind)
    torch.save({"params": params}, tmp_path / "in.pth")
    code, out, err = tool(tmp_path / "in.pth", tmp_path / "model", "--method", kind)
    assert (code, err) == (0, "")
    code, _, err = tool("--export", tmp_path / "model" / "0", tmp_path / "out.pth")
    assert (code, err) == (0, "")
    back = torch.load(tmp_path / "out.pth", weights_only=True)["params"]
    assert back.keys() == params.keys()
    if kind == "pretrained":
        assert "without the classifier's bias" in out
        params["fc.bias"] = torch.zeros(SEEN)
    assert all(torch.equal(back[name], params[name]) for name in params)


def test_imported_weights_lie_where_the_method_expects_them(tool, tmp_path: Path) -> None:
    params = released()
    torch.save({"params": params}, tmp_path / "in.pth")
    assert tool(tmp_path / "in.pth", tmp_path / "model")[0] == 0
    ours = load_file(tmp_path / "model" / "0" / "model.safetensors")
    assert torch.equal(ours["seen_weight_SD"], params["cls.weight"])
    assert torch.equal(ours["synthesis.dictionary.bases_MD"], params["shared_key"][0])
    assert torch.equal(ours["backbone.encoder.0.0.weight"], params["encoder.encoder.0.0.weight"])


def test_files_written_on_several_gpus_are_read(tool, tmp_path: Path) -> None:
    params = {name.replace("encoder.", "encoder.module.", 1): tensor for name, tensor in released().items()}
    torch.save({"params": params}, tmp_path / "in.pth")
    assert tool(tmp_path / "in.pth", tmp_path / "model")[0] == 0


def test_every_difference_is_named_and_nothing_is_written(tool, tmp_path: Path) -> None:
    params = released()
    del params["cls.weight"]
    params["slf_attn.extra.weight"] = torch.zeros(1)
    params["shared_key"] = params["shared_key"][:, :3]
    torch.save({"params": params}, tmp_path / "in.pth")
    code, _, err = tool(tmp_path / "in.pth", tmp_path / "model")
    assert code == 2
    for expected in ("missing seen_weight_SD", "unexpected slf_attn.extra.weight", "bases_MD has shape (3, 64)"):
        assert expected in err
    assert not (tmp_path / "model").exists()


def test_a_method_that_the_release_does_not_have_is_not_exported(tool, tmp_path: Path) -> None:
    torch.save({"params": released()}, tmp_path / "in.pth")
    assert tool(tmp_path / "in.pth", tmp_path / "model")[0] == 0
    card = tmp_path / "model" / "0" / "model.json"
    card.write_text(card.read_text().replace('"released"', '"paper"'))
    code, _, err = tool("--export", tmp_path / "model" / "0", tmp_path / "out.pth")
    assert code == 2 and "does not fit" in err


@pytest.mark.parametrize("method", ["castle", "acastle"])
def test_an_imported_model_is_measured_by_the_line_that_is_printed(tool, method: str, tmp_path: Path) -> None:
    params, model = small_params(), tmp_path / "models" / "cells" / "model"
    params["datasets"] = {"mini": params["datasets"]["mini"]}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    for name in ("repro", "stages"):
        (tmp_path / name).symlink_to(ROOT / name)
    write_tiny_dataset(tmp_path / "data" / "mini" / "0", seen=SEEN, per_class=20, size=16)
    note_origin(tmp_path / "data" / "mini" / "0")
    torch.save({"params": released(method)}, tmp_path / "in.pth")
    code, out, err = tool(tmp_path / "in.pth", model, "--method", method, "--data", tmp_path / "data/mini")
    assert (code, err) == (0, "")
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "grid.yaml").write_text(
        f"random: []\ntrained: {{}}\nuntrained: {{}}\nadapted:\n{out.splitlines()[-1]}\n"
    )
    cell = f"mini-{method}-1shot-model"
    assert f"`dvc repro {read_grid(tmp_path).stage_of(cell)}`" in out
    answer = ask(tmp_path, f"stages plan && stages episodes mini && stages evaluate {cell}")
    assert answer.code == 0, answer.said
    records = read_records(tmp_path / "results" / "cells" / cell / "0" / "tasks.parquet")
    assert records.metadata["model"] == sha256(model / "0" / "model.safetensors")
    assert len(records.values("gfsl", 5, "hm")) == 40
