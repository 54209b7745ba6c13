"""What crosses between the processes of a sealed run: JSON and safetensors, nothing pickled.

A message is a kind, fields of JSON types and named tensors. Tensors keep their layout in memory
too, because the last bits of a convolution may depend on it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import torch
from safetensors.torch import load, save


@dataclass(frozen=True)
class Message:
    """One message."""

    kind: str
    fields: dict[str, Any]
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)


class Channel:
    """One end of the line between the harness and the process of a method."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._lock = threading.Lock()  # a message is two writes

    def send(
        self, kind: str, tensors: Mapping[str, torch.Tensor] | None = None, **fields: Any
    ) -> None:
        """Send a message."""
        packed = {name: _packed(tensor) for name, tensor in (tensors or {}).items()}
        orders = {name: order for name, (order, _) in packed.items()}
        head = json.dumps({"kind": kind, "orders": orders, "fields": fields})
        with self._lock:
            self.connection.send_bytes(head.encode())
            self.connection.send_bytes(save({name: dense for name, (_, dense) in packed.items()}))

    def receive(self) -> Message:
        """Wait for a message; EOFError or OSError if the other side is gone."""
        head = json.loads(self.connection.recv_bytes())
        dense = load(self.connection.recv_bytes())
        tensors = {
            name: tensor.permute([head["orders"][name].index(i) for i in range(tensor.dim())])
            for name, tensor in dense.items()
        }
        return Message(head["kind"], head["fields"], tensors)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()


def _packed(tensor: torch.Tensor) -> tuple[list[int], torch.Tensor]:
    """The tensor with its dimensions in the order of memory, and that order.

    A copy, because safetensors refuses tensors that share memory.
    """
    plain = tensor.detach().cpu()
    order = sorted(range(plain.dim()), key=plain.stride, reverse=True)
    return order, plain.permute(order).clone(memory_format=torch.contiguous_format)
