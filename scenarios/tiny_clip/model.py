"""The tiny-clip model: built from `model.json`, loaded from `weights.safetensors`.

`model.json` has the layout of open_clip's own hub configurations: `model_cfg` for the two towers
and `preprocess_cfg` for what their pictures must look like.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from open_clip.model import CLIP
from safetensors.torch import load_file, save_file

CONFIG = json.loads(Path(__file__).with_name("model.json").read_text(encoding="utf-8"))
IMAGE_SIZE: int = CONFIG["model_cfg"]["vision_cfg"]["image_size"]
WEIGHTS_FILE = Path(__file__).with_name("weights.safetensors")
_MEAN = torch.tensor(CONFIG["preprocess_cfg"]["mean"]).view(3, 1, 1) * 255
_STD = torch.tensor(CONFIG["preprocess_cfg"]["std"]).view(3, 1, 1) * 255


def build_model() -> CLIP:
    """A model with random weights."""
    return CLIP(**CONFIG["model_cfg"])


def load_model(path: Path = WEIGHTS_FILE) -> CLIP:
    """A pre-trained model in float32, ready to embed."""
    model = build_model()
    model.load_state_dict({name: value.float() for name, value in load_file(path).items()})
    return model.eval()


def save_weights(model: CLIP, path: Path) -> None:
    """Half precision: half the size, and no difference in what the model predicts."""
    save_file({name: value.half().contiguous() for name, value in model.state_dict().items()}, path)


def to_pixels(pictures: np.ndarray) -> torch.Tensor:
    """Pictures (uint8 NxHxWx3) in the model's size as normalised pixels (float Nx3xHxW)."""
    pixels = torch.tensor(pictures).permute(0, 3, 1, 2).float()
    return (pixels - _MEAN) / _STD


@torch.inference_mode()
def embed_pictures(model: CLIP, pictures: np.ndarray, batch_size: int = 256) -> torch.Tensor:
    """Unit embeddings of pictures in the model's size."""
    batches = np.array_split(pictures, max(1, len(pictures) // batch_size))
    return torch.cat([model.encode_image(to_pixels(batch), normalize=True) for batch in batches])
