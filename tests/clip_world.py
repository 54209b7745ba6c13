"""For the tests of open_clip backbones: a small architecture, and ways to write its weights."""

from __future__ import annotations

import warnings

import open_clip
import torch

MODEL = "test-clip"
CONFIG = {
    "embed_dim": 16,
    "quick_gelu": True,
    "vision_cfg": {"image_size": 32, "patch_size": 16, "width": 32, "layers": 2, "head_width": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
OPENAI_SIZES = {"input_resolution": 32, "context_length": 77, "vocab_size": 49408}


def random_model(seed):
    torch.manual_seed(seed)
    model = open_clip.CLIP(**CONFIG).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # open_clip starts some at zero, where errors hide
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model


def save_archive(state, path, sizes=OPENAI_SIZES):
    """As OpenAI published CLIP: a TorchScript module with half-precision weights and its sizes."""
    root = torch.nn.Module()
    for name, value in state.items():
        *parents, leaf = name.split(".")
        module = root
        for parent in parents:
            if parent not in module._modules:
                module.add_module(parent, torch.nn.Module())
            module = module._modules[parent]
        module.register_parameter(leaf, torch.nn.Parameter(value.half()))
    for name, size in sizes.items():
        root.register_buffer(name, torch.tensor(size))
    save_script_module(root, path)


def save_script_module(module, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch would rather have it exported
        torch.jit.save(torch.jit.script(module), path)
