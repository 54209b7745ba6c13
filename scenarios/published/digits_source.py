"""Where the four data sets of digits come from, and whether they are all there."""

from __future__ import annotations

from pathlib import Path

from fsdil_bench import DataError, DataSource, Download, Outline, ScenarioRequest

from ..names import class_texts
from .digit_files import FILES, read_part
from .digits import CLASSES, DOMAINS
from .findings import Findings

#: Training and test images of each data set.
IMAGES = {
    "mnist": (60_000, 10_000),
    "mnist-m": (59_001, 9_001),
    "svhn": (73_257, 26_032),
    "usps": (7_291, 2_007),
}

_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_OLD_MNIST = "http://yann.lecun.com/exdb/mnist/"
_SVHN = "http://ufldl.stanford.edu/housenumbers/"
_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"


def _mnist(name: str, md5: str) -> Download:
    return Download(_MNIST + name, f"mnist/{name}", md5=md5, also=(_OLD_MNIST + name,))


SOURCE = DataSource(
    homepage="http://yann.lecun.com/exdb/mnist/",
    license="MNIST CC BY-SA 3.0; SVHN for non-commercial use; MNIST-M and USPS none stated",
    verify="fsdil_scenarios.published.digits_source:verify",
    layout=tuple(dict.fromkeys(file for files in FILES.values() for file in files)),
    downloads=(
        _mnist("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        _mnist("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        _mnist("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        _mnist("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
        Download(
            f"{_SVHN}train_32x32.mat",
            "svhn/train_32x32.mat",
            md5="e26dedcc434d2e4c54c9b2d4a06d8373",
        ),
        Download(
            f"{_SVHN}test_32x32.mat",
            "svhn/test_32x32.mat",
            md5="eb5a983be6a315427106f1b164d9cef3",
        ),
        Download(f"{_USPS}usps.bz2", "usps/usps.bz2", md5="ec16c51db3855ca6c91edd34d0e9b197"),
        Download(f"{_USPS}usps.t.bz2", "usps/usps.t.bz2", md5="8ea070ee2aca1ac39742fdd1ef5ed118"),
    ),
    manual=(
        "MNIST-M has no plain address: open http://yaroslav.ganin.net/ and follow its link to the "
        "unpacked version of MNIST-M, mnist_m.tar.gz.",
        "Unpack it in the folder named above, so that mnist_m/mnist_m_train_labels.txt is there. "
        "Its checksum is not known here: the number of its images is checked.",
    ),
    size="0.4 GB",
    outline="fsdil_scenarios.published.digits_source:outline",
)


def outline(request: ScenarioRequest) -> Outline:
    """How many images every data set has."""
    names, synonyms = class_texts("digits", CLASSES, request.names, request.synonyms)
    return Outline(names, IMAGES, synonyms)


def verify(root: Path) -> list[str]:
    """What is wrong with the digits at `root`, one line each; every packed file is unpacked."""
    findings = Findings(root)
    for domain in DOMAINS:
        for part, published in zip(("train", "test"), IMAGES[domain], strict=True):
            try:
                samples = read_part(root, domain, part)
                if len(samples):
                    samples.load(samples.ids[0])
            except DataError as error:
                findings.add("unfit files", error.message)
            else:
                findings.compare(f"{domain}, {part}", len(samples), published)
    return findings.lines()
