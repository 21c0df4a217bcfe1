"""Every method by the name that params.yaml uses: one line each."""

from repro.methods.acastle import ACastle
from repro.methods.adaptation import ACastleAdapted, CastleAdapted
from repro.methods.attractor import AttentionAttractor
from repro.methods.base import Method
from repro.methods.castle import Castle
from repro.methods.castle_minus import CastleMinus
from repro.methods.dfsl import DFSL
from repro.methods.incremental import ICaRL, LwF
from repro.methods.l2ml import L2ML
from repro.methods.mc_protonet import MulticlassProtoNet
from repro.methods.multiclass import MulticlassKNN
from repro.methods.protonet import ProtoNet
from repro.methods.upper_bound import UpperBound

METHODS: dict[str, type[Method]] = {
    "castle": Castle,
    "acastle": ACastle,
    "castle_minus": CastleMinus,
    "mc_knn": MulticlassKNN,
    "protonet": ProtoNet,
    "mc_protonet": MulticlassProtoNet,
    "l2ml": L2ML,
    "dfsl": DFSL,
    "ifsl": AttentionAttractor,
    "lwf": LwF,
    "icarl": ICaRL,
    "castle_adapted": CastleAdapted,
    "acastle_adapted": ACastleAdapted,
    "upper_bound": UpperBound,
}
