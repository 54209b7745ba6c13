"""What the plugins of an Avalanche strategy remember, as named tensors, and back again.

Importances, earlier weights, earlier models, counters and buffers are ordinary attributes of
plugins. `remember` walks over them: tensors and weights become entries of a state, everything else
a description in JSON, which is one more entry. `recall` puts them into newly built plugins.
Of images only their places are remembered, so that whoever recalls them needs the images.
Something that cannot be kept this way is an error: a strategy that lost part of its memory would
continue as if nothing were missing.
"""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fsdil_bench.errors import PluginError
from fsdil_bench.plugins.method import State

#: The attribute of an Avalanche data set that tells the place of each of its images.
PLACES = "fsdil_places"

#: Gives the images at some places as an Avalanche data set.
Images = Callable[[Sequence[int]], Any]

_PLAN = "plan"
_COLLECTIONS: dict[str, type] = {"list": list, "tuple": tuple, "set": set}


def remember(plugins: Sequence[Any]) -> State:
    """All that the plugins know."""
    state: State = {}
    plans = [_keep(vars(plugin), str(i), state) for i, plugin in enumerate(plugins)]
    text = json.dumps(plans).encode()
    return {_PLAN: torch.frombuffer(bytearray(text), dtype=torch.uint8), **state}


def recall(plugins: Sequence[Any], state: State, model: torch.nn.Module, images: Images) -> None:
    """Make new plugins know what others of their kind knew, about `model` or an earlier one."""
    if _PLAN not in state:  # nothing was learned yet
        return
    plans = json.loads(bytes(state[_PLAN].tolist()))
    reader = _Reader(state, images, model)
    for i, (plugin, plan) in enumerate(zip(plugins, plans, strict=True)):
        reader.value(plan, vars(plugin), str(i))


def _keep(value: Any, path: str, state: State) -> list[Any]:
    """The plan of a value: its kind, and what is needed to make it again; tensors go to `state`."""
    from avalanche.benchmarks.utils import AvalancheDataset
    from avalanche.training.utils import ParamData

    if value is None or isinstance(value, bool | int | float | str):
        return ["plain", value]
    if isinstance(value, torch.Tensor):
        state[path] = value.detach().clone()
        return ["tensor"]
    if isinstance(value, ParamData):
        state[path] = value.data.detach().clone()
        return ["parameter", value.name]
    if isinstance(value, torch.nn.Module):
        state.update({f"{path}.{k}": v.detach().clone() for k, v in value.state_dict().items()})
        return ["module"]
    if isinstance(value, AvalancheDataset):
        places = getattr(value, PLACES, () if not len(value) else None)
        if places is not None:
            state[path] = torch.tensor(list(places), dtype=torch.int64)
            return ["images"]
    elif isinstance(value, dict) and all(isinstance(key, int | str) for key in value):
        pairs = enumerate(value.items())
        return ["dict", [[k, _keep(v, f"{path}.{i}", state)] for i, (k, v) in pairs]]
    elif isinstance(value, list | tuple | set):
        kind = next(kind for kind, made_by in _COLLECTIONS.items() if isinstance(value, made_by))
        return [kind, [_keep(v, f"{path}.{i}", state) for i, v in enumerate(value)]]
    made_by = type(value)
    if made_by.__module__.startswith("avalanche.training."):
        return ["object", made_by.__module__, made_by.__name__, _keep(vars(value), path, state)]
    raise PluginError(
        f"an Avalanche plugin remembers a {made_by.__name__}, which cannot be kept between domains",
        "Tensors, weights, models, numbers, texts, collections of these and buffers of training "
        "images can.",
    )


class _Reader:
    """Makes values from their plans."""

    def __init__(self, state: State, images: Images, model: torch.nn.Module) -> None:
        self.state = state
        self.images = images
        self.model = model

    def value(self, plan: list[Any], now: Any, path: str) -> Any:
        """The value of a plan; `now` is what the new plugin has in its place."""
        kind, *rest = plan
        if kind == "plain":
            return rest[0]
        if kind == "tensor":
            return self.state[path].clone()
        if kind == "parameter":
            return self._parameter(rest[0], self.state[path].clone())
        if kind == "module":
            return self._module(now, path)
        if kind == "images":
            places = self.state[path].tolist()
            return self.images(places) if places or now is None else now
        if kind == "dict":
            return self._dict(rest[0], now, path)
        if kind == "object":
            module, name, inner = rest
            return self._object(module, name, inner, now, path)
        return _COLLECTIONS[kind](
            self.value(plan, None, f"{path}.{i}") for i, plan in enumerate(rest[0])
        )

    def _parameter(self, name: str, data: torch.Tensor) -> Any:
        from avalanche.training.utils import ParamData

        return ParamData(name, data.shape, init_tensor=data, device=data.device)

    def _module(self, now: Any, path: str) -> torch.nn.Module:
        """An earlier version of the model, unless the new plugin brings a module of its own."""
        module = now if isinstance(now, torch.nn.Module) else copy.deepcopy(self.model)
        start = f"{path}."
        weights = {k.removeprefix(start): v for k, v in self.state.items() if k.startswith(start)}
        module.load_state_dict(weights)
        return module

    def _dict(self, items: list[Any], now: Any, path: str) -> dict[Any, Any]:
        """In place where there is a dict, whose kind may matter (`defaultdict`)."""
        known = now if isinstance(now, dict) else {}
        new = {k: self.value(p, known.get(k), f"{path}.{i}") for i, (k, p) in enumerate(items)}
        known.clear()
        known.update(new)
        return known

    def _object(self, module: str, name: str, plan: list[Any], now: Any, path: str) -> Any:
        if now is None:
            if not module.startswith("avalanche.training."):
                raise PluginError(f"'{module}.{name}' in a state is not a class of Avalanche")
            made_by = getattr(importlib.import_module(module), name)
            now = made_by.__new__(made_by)
        self.value(plan, vars(now), path)
        return now
