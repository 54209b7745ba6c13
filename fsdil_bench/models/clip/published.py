"""Weights that open_clip publishes under a tag: found on this machine, or downloaded once."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from fsdil_bench.errors import RequestError

from .catalogue import catalogue

#: Names of the weights in a repository of the hub, where the tag does not name one.
_USUAL_FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
#: Where open_clip and OpenAI's own package kept their downloads before there was the hub.
_OLD_CACHE = Path("~/.cache/clip")
_PATIENCE = 5.0  # seconds to find out that there is no way to the hub
_UNREACHED = "\n{} cannot be reached from here: is there a connection?"


class Published:
    """Where the weights of a tag are on the hub, and where they may be on this machine."""

    def __init__(self, model: str, tag: str) -> None:
        card = catalogue().tags[model][tag]
        self.model, self.tag = model, tag
        self.repository, _, file = card["hf_hub"].rpartition("/")
        self.files = (file,) if file else _USUAL_FILES
        self.old = _OLD_CACHE.expanduser() / card["url"].rpartition("/")[2]

    def find(self) -> Path | None:
        """The file, if it is on this machine."""
        from huggingface_hub import try_to_load_from_cache

        for file in self.files:
            cached = try_to_load_from_cache(self.repository, file)
            if isinstance(cached, str):
                return Path(cached)
        return self.old if self.old.is_file() else None

    def check(self) -> None:
        """Say at once if the file is not here and may not be downloaded."""
        from huggingface_hub import constants

        if constants.HF_HUB_OFFLINE and self.find() is None:
            raise self._missing("HF_HUB_OFFLINE forbids to download them")

    def fetch(self) -> Path:
        """The file, downloaded if need be."""
        self.check()
        return self.find() or self._download()

    def _download(self) -> Path:
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        for file in self.files:
            try:
                return Path(hf_hub_download(self.repository, file))
            except Exception as error:  # many kinds: connection, access, disk
                # The local one is for a hub that could not be asked.
                if isinstance(error, EntryNotFoundError) and not isinstance(
                    error, LocalEntryNotFoundError
                ):
                    continue
                why = " ".join(str(error).split())[:300]
                # A hint, no more: mirrors and proxies refuse what is not a download.
                hint = "" if _can_reach(constants.ENDPOINT) else _UNREACHED
                raise self._missing(
                    f"cannot be downloaded: {type(error).__name__}: {why}"
                    + hint.format(constants.ENDPOINT)
                ) from error
        raise self._missing(f"the hub has none of {', '.join(self.files)}")

    def _missing(self, why: str) -> RequestError:
        from huggingface_hub import constants

        return RequestError(
            f"the weights '{self.tag}' of {self.model} are not on this machine, and {why}\n"
            f"Looked for {self.repository} in {constants.HF_HUB_CACHE}, and for {self.old}.",
            "Run once with a connection, after which they are kept, or get the file elsewhere and "
            f"name it: --backbone {self.model}:path/to/file (see docs/backbones.md).",
        )


def _can_reach(address: str) -> bool:
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=_PATIENCE)
    except urllib.error.HTTPError:  # an answer, too
        return True
    except OSError:
        return False
    return True
