"""A prepared dataset described in Croissant, MLCommons' metadata for datasets (version 1.0).

`croissant.json` names the files of the folder with their content hashes and the columns of the manifest; row n of
`images.npy` is the image of the manifest's row n. It holds no date and no path of a machine, so equal datasets have
equal descriptions.
"""

import json
from pathlib import Path
from typing import Any

from repro.data.dataset import HEADER, IMAGES, MANIFEST, ROLES, Dataset
from repro.files import read_seal, whole_file

CROISSANT = "croissant.json"
FORMATS = {
    MANIFEST: "application/x-parquet",
    IMAGES: "application/octet-stream",
    HEADER: "application/json",
}
# The manifest's columns: what each holds, and its type.
COLUMNS = {
    "class": ("sc:Text", "Name of the image's class"),
    "label": ("sc:Integer", "Number of the class; seen classes come first"),
    "domain": ("sc:Integer", "Number of the image's domain"),
    "role": ("sc:Text", "What the image is used for"),
    "source": ("sc:Text", "Where the image comes from"),
    "sha256": ("sc:Text", "Content hash of its pixels"),
}
REFERENCES = {"role": "roles/name", "label": "classes/label", "domain": "domains/number"}
_CROISSANT_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format"),
    *("includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex"),
    *("repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
)
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _CROISSANT_TERMS},
}


def write_croissant(folder: Path, dataset: Dataset) -> None:
    """Describe the dataset of a sealed folder in a file of it."""
    with whole_file(folder / CROISSANT) as partial:
        described = json.dumps(_described(folder, dataset), indent=1, ensure_ascii=False)
        partial.write_text(described + "\n", encoding="utf-8")


def _described(folder: Path, dataset: Dataset) -> dict[str, Any]:
    header, sums = dataset.header, read_seal(folder)
    height, width, channels = dataset.image_shape
    images = sum(len(rows) for rows in dataset.roles.values())
    classes = [
        {"classes/label": label, "classes/name": info.name, "classes/split": info.split}
        for label, info in enumerate(header.classes)
    ]
    domains = [{"domains/number": number, "domains/name": name} for number, name in enumerate(header.domains)]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": header.name,
        "description": f"{images} images of {len(classes)} classes, {height}×{width} with {channels} channels, packed "
        "for generalized few-shot learning: seen classes, and val and test classes that are unseen. Rights in the "
        "images are those of their sources.",
        "keywords": ["few-shot learning", "generalized few-shot learning"],
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "encodingFormat": FORMATS[name],
                "sha256": sums[name],
            }
            for name in FORMATS
        ],
        "recordSet": [
            _listed("roles", {"name": "sc:Text"}, [{"roles/name": role} for role in ROLES], "cr:Split"),
            _listed("classes", {"label": "sc:Integer", "name": "sc:Text", "split": "sc:Text"}, classes),
            _listed("domains", {"number": "sc:Integer", "name": "sc:Text"}, domains),
            {
                "@type": "cr:RecordSet",
                "@id": "images",
                "name": "images",
                "description": f"One record per image, in the order of {IMAGES}",
                "field": [_column(name, kind, words) for name, (kind, words) in COLUMNS.items()],
            },
        ],
    }


def _listed(name: str, fields: dict[str, str], data: list[dict[str, Any]], kind: str | None = None) -> dict[str, Any]:
    """A record set whose records stand in the description itself."""
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        **({"dataType": kind} if kind else {}),
        "key": {"@id": f"{name}/{next(iter(fields))}"},
        "field": [
            {"@type": "cr:Field", "@id": f"{name}/{field}", "name": field, "dataType": type_}
            for field, type_ in fields.items()
        ],
        "data": data,
    }


def _column(name: str, kind: str, words: str) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"images/{name}",
        "name": name,
        "description": words,
        "dataType": kind,
        "source": {"fileObject": {"@id": MANIFEST}, "extract": {"column": name}},
    }
    return field | ({"references": {"field": {"@id": REFERENCES[name]}}} if name in REFERENCES else {})
