"""Heterogeneous: 20 + 20 + 20 classes from each of five fine-grained datasets, a domain each (paper, section 5).

A class gives 50 images; a seen class 15 more, eight for seen_test and seen_val's seven. CUB has at most 60 images per
class, so its seen classes give the 10 that are left, five for each half.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from repro.errors import BadInput
from repro.preparation.collection import Collection
from repro.preparation.images import RawImage
from repro.preparation.listing import image_file, read_lines, subfolders
from repro.preparation.pools import Draw, draw_dataset
from repro.preparation.sources.cub import cropping, read_birds
from repro.preparation.sources.image_folder import read_classes
from repro.preparation.splits import split_sizes

BANNER = 20  # rows at the bottom of every FGVC-Aircraft image that name its photographer
Classes = dict[str, list[RawImage]]


def collect(
    name: str,
    seed: int,
    *,
    aircraft: str | Path,
    cars: str | Path,
    birds: str | Path,
    dogs: str | Path,
    indoor: str | Path,
    classes: Sequence[int] = (20, 20, 20),
    per_class: int = 50,
    extra: int = 15,
    least_extra: int = 10,
) -> Collection:
    """Draw Heterogeneous from the official folders of the five datasets. Raises BadInput.

    aircraft: FGVC-Aircraft, with data/images and data/images_variant_*.txt
    cars: Cars-196, with cars_annos.mat, or devkit, cars_train and cars_test, or a folder per class
    birds: CUB-200-2011, with images, images.txt, image_class_labels.txt and classes.txt
    dogs: Stanford Dogs, with Images and a folder per class in it
    indoor: Indoor-67, with Images and a folder per class in it
    classes: [seen, val, test], how many classes of each dataset a split gets
    per_class: images of a class besides the extra ones
    extra: images of a seen class that are held out for seen_val and seen_test, half each
    least_extra: how many of them suffice where a class has no more
    """
    readers: dict[str, tuple[Callable[[Path], Classes], str | Path]] = {
        "aircraft": (read_aircraft, aircraft),
        "bird": (read_birds, birds),
        "car": (read_cars, cars),
        "dog": (read_folders, dogs),
        "indoor scene": (read_folders, indoor),
    }
    pools = {
        domain: {f"{domain}/{class_name}": images for class_name, images in read(Path(root)).items()}
        for domain, (read, root) in readers.items()
    }
    return draw_dataset(
        name,
        pools,
        rule="per_class",
        sizes=split_sizes(classes),
        draw=Draw(extra=extra, per_class=per_class, least_extra=least_extra),
        seed=seed,
        provenance={"source": "heterogeneous", "birds": cropping(Path(birds))},
    )


def read_aircraft(root: Path) -> Classes:
    """FGVC-Aircraft: `data/images/*.jpg`, and `data/images_variant_{trainval,test}.txt` with image and variant."""
    data = root / "data" if (root / "data").is_dir() else root
    classes: Classes = {}
    for part in ("trainval", "test"):
        file = data / f"images_variant_{part}.txt"
        for line in read_lines(file, "FGVC-Aircraft's list of images and variants"):
            number, _, variant = line.partition(" ")
            image = image_file(data / "images" / f"{number}.jpg", root, file, crop_bottom=BANNER)
            classes.setdefault(variant, []).append(image)
    return classes


def read_cars(root: Path) -> Classes:
    """Cars-196: `cars_annos.mat` and `car_ims/`; or `devkit/`, `cars_train/` and `cars_test/`; or class folders."""
    if (root / "cars_annos.mat").exists():
        return _read_annotations(root, root / "cars_annos.mat", "relative_im_path", root)
    if not (root / "devkit").is_dir():
        return read_folders(root)
    labelled = [root / "cars_test_annos_withlabels.mat", root / "devkit" / "cars_test_annos_withlabels.mat"]
    test = next((file for file in labelled if file.exists()), labelled[0])
    classes = _read_annotations(root, root / "devkit" / "cars_train_annos.mat", "fname", root / "cars_train")
    for class_name, images in _read_annotations(root, test, "fname", root / "cars_test").items():
        classes.setdefault(class_name, []).extend(images)
    return classes


def read_folders(root: Path) -> Classes:
    """Stanford Dogs and Indoor-67: `Images/<class>/*.jpg`, or the class folders directly."""
    expected = "a folder Images with a folder per class"
    images = next((name for name in subfolders(root, expected) if name.lower() == "images"), ".")
    return read_classes(root / images, root)


def _read_annotations(root: Path, file: Path, path_field: str, folder: Path) -> Classes:
    """Read one of Cars-196's Matlab files: a structure per image with its file and its class number."""
    rows, names = _matlab(file, "annotations"), _class_names(root, file)
    classes: Classes = {}
    try:
        listed = [(str(row[path_field]), int(row["class"])) for row in rows]
        named = [(path, names[label - 1]) for path, label in listed]
    except (IndexError, KeyError, ValueError, TypeError) as error:
        message = f"{file}: has no usable annotations ({error})"
        raise BadInput(f"{message}, expected the fields {path_field} and class for every image") from error
    for path, class_name in named:
        classes.setdefault(class_name, []).append(image_file(folder / path, root, file))
    return classes


def _class_names(root: Path, file: Path) -> list[str]:
    meta = root / "devkit" / "cars_meta.mat"
    return [str(each) for each in _matlab(meta if meta.exists() else file, "class_names")]


def _matlab(file: Path, field: str) -> Any:
    """One variable of a Matlab file as a flat array. Raises BadInput."""
    from scipy.io import loadmat  # imported here: it takes longer than all else that a source needs
    from scipy.io.matlab import MatReadError

    try:
        return loadmat(file, squeeze_me=True)[field].reshape(-1)
    except (OSError, KeyError, ValueError, TypeError, NotImplementedError, MatReadError) as error:
        raise BadInput(f"{file}: cannot be read ({error}), expected Cars-196's Matlab file with {field}") from error
