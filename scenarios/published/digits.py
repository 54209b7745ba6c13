"""The `digits` scenario: ten digits as MNIST, MNIST-M, SVHN and USPS show them.

    fsdil-bench run --method ncm --scenario digits-4shot --data ~/digits

MNIST comes first: written digits on black, the data set that everybody has. MNIST-M puts them on
colour photographs, SVHN shows photographed house numbers, and USPS holds digits from envelopes in
16 x 16 pixels. Every data set has a published split into training and test images, which is used
as it is.

The files are read as they are published (`digit_files`). USPS is taken from the compressed libsvm
files: they have a plain address and a known checksum and keep the original split.
"""

from __future__ import annotations

from fsdil_bench import Domain, ScenarioInfo, ScenarioRequest, Stream, hookimpl

from .descriptors import as_asked, published_scenario

DOMAINS = ("mnist", "mnist-m", "svhn", "usps")
CLASSES = tuple("0123456789")


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `digits`."""
    return [
        published_scenario(
            "digits",
            "ten digits: written, on photographs, as house numbers and from envelopes "
            "(MNIST, MNIST-M, SVHN, USPS)",
            DOMAINS,
            len(CLASSES),
            "digits",
        )
    ]


def build(request: ScenarioRequest) -> Stream:
    """The four data sets as domains."""
    from ..names import class_texts
    from .digit_files import read_part

    data = request.data
    assert data is not None
    class_names, synonyms = class_texts("digits", CLASSES, request.names, request.synonyms)
    stream = Stream(
        name="digits",
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(
            Domain(name, *(read_part(data, name, part) for part in ("train", "test")))
            for name in DOMAINS
        ),
    )
    return as_asked(stream, request)
