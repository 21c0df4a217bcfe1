"""Every method by the name that params.yaml uses: one line each."""

from repro.methods.acastle import ACastle
from repro.methods.base import Method
from repro.methods.castle import Castle
from repro.methods.castle_minus import CastleMinus

METHODS: dict[str, type[Method]] = {
    "castle": Castle,
    "acastle": ACastle,
    "castle_minus": CastleMinus,
}
