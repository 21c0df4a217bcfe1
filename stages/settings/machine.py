"""`machine` of params.yaml: what decides speed and no result; read without torch, before a stage has its process."""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, with_config

from repro import paths
from repro.options import STRICT, checked, in_form
from stages.settings.yaml_files import read_mapping

PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
ENDPOINT = rf"([A-Za-z0-9_][A-Za-z0-9._-]{{0,252}}|\[[0-9A-Fa-f:.]{{2,45}}\]):({PORT})"
ENDPOINT_IN_WORDS = "host:port with a port from 1 to 65535"

Count = Annotated[int, Field(ge=1, le=10**9)]
Processes = Annotated[int, Field(ge=1, le=1024)]
Device = Annotated[str, in_form("auto|cpu|cuda(:[0-9]{1,4})?", "auto, cpu, cuda or cuda:N with a card's number")]
Endpoint = Annotated[str, in_form(f"({ENDPOINT})?", ENDPOINT_IN_WORDS)]
NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
Name = Annotated[str, in_form(NAME, "up to 100 letters, digits, . _ or -, the first a letter or digit")]


@with_config(STRICT)
@dataclass(frozen=True)
class Resources:
    """What `tools/cluster` reserves for a stage; part of a GPU lets several stages share it."""

    num_cpus: Count = 1
    num_gpus: Annotated[float, Field(ge=0, lt=1e6)] = 0.0


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a machine has; it decides speed, not results. `resources` are by the stage's name before the @."""

    device: Device
    memory_mb: Count
    workers: Annotated[int, Field(ge=0, le=1024)]  # decoding threads; 0: one per core
    checkpoint_every: Count
    replicates: Annotated[int, Field(ge=0, le=1024)] = 0  # seeds side by side; 0: as many as there is room for
    processes: Processes = 1
    nodes: Processes = 1
    endpoint: Endpoint = ""
    resources: dict[Name, Resources] = field(default_factory=dict)


def machine() -> Machine:
    """What params.yaml says of this machine."""
    content = read_mapping(paths.PARAMS, "the parameters of the pipeline")
    return checked(Machine, content.get("machine"), f"{paths.PARAMS}: machine")
