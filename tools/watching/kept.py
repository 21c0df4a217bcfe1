"""What the kept editions have of one number: read from what they print, their records restored only for the rest."""

import gzip
import json
from typing import Any

from repro.editions.edition import Edition, kept_edition, names
from repro.editions.groups import FACTS
from repro.paths import PAPER
from repro.results.records import group_name
from repro.results.store import Reading


def of_editions(reading: Reading) -> dict[str, float]:
    """By the editions' names and benchmarks; raises BadInput, or what reading a forged file raises."""
    if not (PAPER / "editions").is_dir():
        return {}
    found = {}
    for edition in map(kept_edition, names()):
        if (value := _printed(edition, reading)) is not None:
            found[f"edition {edition.name} ({edition.about.benchmark})"] = value
    return found


def _printed(edition: Edition, reading: Reading) -> float | None:
    wanted = (reading.cell.name, reading.protocol, reading.way, reading.measure)
    provenance = json.loads((edition.folder / "provenance.json").read_bytes())
    for number in provenance["numbers"]:
        if (number["cell"], number["protocol"], number["way"], number["measure"]) == wanted:
            return float(number["mean"])
    facts = json.loads(gzip.decompress((edition.folder / FACTS).read_bytes()))
    if f"{reading.cell.name}/{edition.about.seeds[0]}" not in facts["cells"]:
        return None
    group = group_name(reading.protocol, int(reading.way))
    kept: dict[str, Any] = facts["estimates"].get(reading.cell.name, {}).get(group, {})
    return float(kept[reading.measure][0]) if reading.measure in kept else _restored(edition, reading)


def _restored(edition: Edition, reading: Reading) -> float | None:
    from tools.editions.comparing import records_of

    with records_of(edition) as side:
        mean = side.mean(reading)
    return mean.mean if mean else None
