"""The folder of a run: what is finished stays, what is half-written never counts.

    runs/<scenario>/<method>/seed<seed>-<run id>/
        spec.json         what is run
        log.txt           what happened, with the traceback of a failure
        order_salt.txt    of a sealed run: the order of its test images depends on it
        domain-<t>/       result.json, predictions.npz, state.safetensors of each finished domain
        predictions.npz, record.json   at the end

Every file or folder is written under a temporary name and renamed. The state after a domain is
removed when the next domain is finished, unless all checkpoints are to be kept.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fsdil_bench.errors import HeldError
from fsdil_bench.records.record import PREDICTIONS_FILE, RECORD_FILE, Record
from fsdil_bench.system.atomic_files import drafted, write_atomically
from fsdil_bench.system.locks import is_locked, locked

if TYPE_CHECKING:
    from fsdil_bench.plugins.method import State


SPEC_FILE, LOG_FILE = "spec.json", "log.txt"
DOMAIN_PREFIX = "domain-"  # of the folders of finished domains


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def complete(self) -> bool:
        """Whether the run is done: its record is there. Only `fresh` runs it again."""
        return (self.path / RECORD_FILE).is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process; the lock ends with the process that holds it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path / ".lock") as ours:
            if not ours:
                raise HeldError(
                    f"another process is at work on {self.path}", "Wait for it, or stop it."
                )
            yield

    def held(self) -> bool:
        """Whether a process is at work on the run."""
        return is_locked(self.path / ".lock")

    def begin(self, spec: dict[str, Any], *, fresh: bool) -> None:
        """Write the spec; with `fresh`, drop what an earlier try left."""
        if fresh:
            for path in self.path.iterdir():
                if path.name != ".lock":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        for leftover in self.path.glob("*.tmp"):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        write_atomically(self.path / SPEC_FILE, json.dumps(spec, indent=1, sort_keys=True) + "\n")

    def finished_domains(self) -> int:
        """How many domains in a row are done, the last of them with its state."""
        count = 0
        while (self._domain(count) / "result.json").is_file():
            count += 1
        while count and not (self._domain(count - 1) / "state.safetensors").is_file():
            count -= 1
        return count

    def save_domain(
        self, index: int, state: State, result: dict[str, Any], predictions: dict[str, np.ndarray]
    ) -> None:
        """Keep a finished domain, all of it or nothing."""
        final = self._domain(index)
        draft = final.with_suffix(".tmp")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            _save_state(state, draft / "state.safetensors")
            np.savez_compressed(draft / PREDICTIONS_FILE, **predictions)  # type: ignore[arg-type]
            (draft / "result.json").write_text(json.dumps(result), encoding="utf-8")
            shutil.rmtree(final, ignore_errors=True)
            draft.rename(final)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def drop_state(self, index: int) -> None:
        """Remove the checkpoint of a domain that is no longer needed after a later one."""
        (self._domain(index) / "state.safetensors").unlink(missing_ok=True)

    def load_state(self, index: int) -> State:
        """The state after a finished domain."""
        from safetensors.torch import load_file

        return load_file(self._domain(index) / "state.safetensors")

    def load_result(self, index: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Result and predictions of a finished domain."""
        place = self._domain(index)
        with np.load(place / PREDICTIONS_FILE, allow_pickle=False) as arrays:
            predictions = {name: arrays[name] for name in arrays.files}
        return json.loads((place / "result.json").read_text(encoding="utf-8")), predictions

    def save_predictions(self, predictions: dict[str, np.ndarray]) -> Path:
        """Write the predictions of the whole run."""
        path = self.path / PREDICTIONS_FILE
        with drafted(path) as draft, draft.open("wb") as file:
            np.savez_compressed(file, **predictions)  # type: ignore[arg-type]
        return path

    def finish(self, record: Record) -> None:
        """Write the record: from now on the run is complete."""
        write_atomically(self.path / RECORD_FILE, record.to_json())

    def order_salt(self, given: str = "") -> str:
        """What the order of a sealed run's test images depends on besides the run: `given`, or
        drawn at the first call. It is kept, so that a resumed run mixes the images as before."""
        path = self.path / "order_salt.txt"
        if not path.is_file():
            write_atomically(path, given or secrets.token_hex(16))
        return path.read_text(encoding="utf-8")

    def _domain(self, index: int) -> Path:
        return self.path / f"{DOMAIN_PREFIX}{index}"

    def log(self, text: str) -> None:
        """Add to the run's log."""
        with (self.path / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")


def _save_state(state: State, path: Path) -> None:
    """Write a state; a full disk is an OSError, as everywhere."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    # Contiguous copies: safetensors refuses tensors that share memory.
    copies = {k: v.detach().cpu().contiguous().clone() for k, v in state.items()}
    try:
        save_file(copies, path)
    except SafetensorError as error:  # "... No space left on device (os error 28)"
        if code := re.search(r"\(os error (\d+)\)", str(error)):
            number = int(code[1])
            raise OSError(number, os.strerror(number), str(path)) from error
        raise
