"""The Croissant description of a dataset, read back by Croissant's own library."""

from pathlib import Path

import mlcroissant
import pandas as pd
import pytest

from repro.data.dataset import MANIFEST, open_dataset
from repro.files import sha256
from repro.preparation.croissant import CROISSANT, write_croissant
from tests.conftest import write_tiny_dataset

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # inside of the library


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("croissant") / "tiny"
    write_tiny_dataset(folder, seen=2, val=2, test=2, per_class=3, domain_rule="per_image")
    write_croissant(folder, open_dataset(folder))
    return folder


def test_the_library_finds_no_error_and_reads_every_row_of_the_manifest(folder: Path) -> None:
    described = mlcroissant.Dataset(str(folder / CROISSANT))
    assert not described.metadata.ctx.issues.errors
    read = pd.DataFrame(described.records("images")).rename(columns=lambda name: name.partition("/")[2])
    as_text = read.map(lambda value: value.decode() if isinstance(value, bytes) else value)
    pd.testing.assert_frame_equal(as_text, pd.read_parquet(folder / MANIFEST)[list(read)], check_dtype=False)
    names = [one["classes/name"] for one in described.records("classes")]
    assert names == [info.name for info in open_dataset(folder).header.classes]


def test_a_manifest_that_is_not_the_described_one_is_noticed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / CROISSANT).write_bytes((folder / CROISSANT).read_bytes())
    (tmp_path / MANIFEST).write_bytes((folder / MANIFEST).read_bytes() + b" ")
    with pytest.raises(mlcroissant.GenerationError, match="Download"):
        list(mlcroissant.Dataset(str(tmp_path / CROISSANT)).records("images"))


def test_the_same_dataset_has_the_same_description(folder: Path) -> None:
    before = sha256(folder / CROISSANT)
    write_croissant(folder, open_dataset(folder))
    assert sha256(folder / CROISSANT) == before
    assert str(folder) not in (folder / CROISSANT).read_text()
