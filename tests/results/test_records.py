"""Per-task records: the same bytes twice, read back whole, refused where they are something else."""

import json
from pathlib import Path

import numpy as np
import pytest

from repro.errors import BadInput
from repro.results.records import MEASURES, read_records, summarise, write_json, write_records

DIGESTS = {"gfsl_5way": "aaaa", "fsl_5way": "aaaa"}


def columns(tasks: int = 40) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    hm = random.uniform(20, 60, tasks).astype(np.float32)
    nothing = np.full(tasks, np.nan, np.float32)
    return {
        "protocol": np.array(["gfsl"] * tasks + ["fsl"] * tasks, dtype=object),
        "way": np.full(2 * tasks, 5, np.int32),
        "task": np.tile(np.arange(tasks, dtype=np.int32), 2),
        "hm": np.concatenate([hm, nothing]),
        "u_u": random.uniform(40, 90, 2 * tasks).astype(np.float32),
    }


def written(path: Path) -> Path:
    write_records(path, columns(), {"cell": "mini-castle-1shot", "shot": 1, "tasks": DIGESTS})
    return path


def test_records_come_back_as_written_and_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = written(tmp_path / "first"), written(tmp_path / "second")
    assert first.read_bytes() == second.read_bytes()
    records = read_records(first)
    assert records.metadata == {"cell": "mini-castle-1shot", "shot": 1, "tasks": DIGESTS}
    assert list(records.columns) == ["protocol", "way", "task", *MEASURES]
    for name, values in columns().items():
        assert np.array_equal(records.columns[name], values, equal_nan=name == "hm"), name
    assert records.columns["hm"].dtype == np.float32 and np.isnan(records.columns["ausuc"]).all()
    assert records.groups() == [("gfsl", 5), ("fsl", 5)]


def test_metrics_hold_the_measures_that_exist(tmp_path: Path) -> None:
    summary = summarise(read_records(written(tmp_path / "records")))
    assert summary.keys() == {"gfsl_5way", "fsl_5way"}
    assert summary["gfsl_5way"].keys() == {"hm", "u_u", "tasks"} and summary["fsl_5way"].keys() == {"u_u", "tasks"}
    hm = columns()["hm"][:40].astype(np.float64)
    assert summary["gfsl_5way"]["hm"] == {
        "mean": pytest.approx(hm.mean(), abs=1e-4),
        "ci": pytest.approx(1.96 * hm.std() / 40**0.5, abs=1e-4),
    }
    write_json(tmp_path / "metrics.json", summary)
    assert json.loads((tmp_path / "metrics.json").read_text()) == summary


def test_unknown_measures_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"unknown measures \['luck'\]"):
        write_records(tmp_path / "new", columns() | {"luck": np.zeros(80)}, {"tasks": DIGESTS})


@pytest.mark.parametrize("value", [1e30, np.inf, -101.0, 100.1])
def test_a_sealed_record_of_an_impossible_percentage_is_refused(value: float, tmp_path: Path) -> None:
    forged = columns()
    forged["hm"][3] = value
    write_records(tmp_path / "records", forged, {"tasks": DIGESTS})
    with pytest.raises(BadInput, match="records: hm reaches .*, expected percent"):
        read_records(tmp_path / "records")
