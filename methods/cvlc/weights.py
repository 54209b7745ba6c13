"""All that CVLC trains and keeps: what domains share, and what belongs to each domain."""

from __future__ import annotations

import torch
from torch import nn

from fsdil_bench import Context
from fsdil_bench.adapters import BlockAdapter, TowerShape, tower_shape

from .calibration import Calibration, copy_calibration, new_shift
from .config import Config
from .tower_additions import Additions
from .visual_prototypes import INITIAL_LOG_SCALE, initial_weights


class DomainWeights(nn.Module):
    """One domain's additions to the last blocks of both towers, and its calibration."""

    def __init__(self, vision: Additions, text: Additions, calibration: Calibration) -> None:
        super().__init__()
        self.vision = vision
        self.text = text
        self.calibration = calibration


class Weights(nn.Module):
    """The trained tensors of all domains so far.

    `classifier` and `log_scale` are the temporary classifier of the base domain, kept because those
    of later domains start from it.
    """

    def __init__(self, context: Context, config: Config) -> None:
        super().__init__()
        self.context, self.config = context, config
        model = context.backbone.model
        text = tower_shape(model) if config.text else TowerShape(blocks=0, width=0, heads=0)
        self.shapes = {"vision": tower_shape(model.visual), "text": text}
        self.shared_vision = self._additions("vision", shared=True)
        self.shared_text = self._additions("text", shared=True)
        size, classes = context.backbone.embed_dim, len(context.class_names)
        start = context.generator("classifier")
        self.classifier = nn.Parameter(initial_weights(classes, size, start))
        self.log_scale = nn.Parameter(torch.tensor(INITIAL_LOG_SCALE))
        assert config.shift_std is not None
        self.text_shift = new_shift(size, config.shift_std, context.generator("text shift"))
        self.domains = nn.ModuleList()
        self.to(context.device)

    def add_domain(self) -> DomainWeights:
        """Weights for one more domain.

        Additions start as a copy of the base domain's, calibration as a copy of the previous one's.
        """
        config, size = self.config, self.context.backbone.embed_dim
        vision, text = (self._additions(tower, shared=False) for tower in ("vision", "text"))
        if not len(self.domains):
            initial = {name: getattr(config, name) for name in
                       ("vision_own", "text_common", "text_own")}  # fmt: skip
            assert config.shift_std is not None
            calibration = Calibration(
                size,
                initial,
                shift_init_std=config.shift_std,
                generator=self.context.generator("shift"),
            )
        else:
            vision.load_state_dict(self.domain(0).vision.state_dict())
            text.load_state_dict(self.domain(0).text.state_dict())
            calibration = copy_calibration(self.domain(len(self.domains) - 1).calibration)
        added = DomainWeights(vision, text, calibration).to(self.context.device)
        self.domains.append(added)
        return added

    def domain(self, t: int) -> DomainWeights:
        """The weights of domain t."""
        found = self.domains[t]
        assert isinstance(found, DomainWeights)
        return found

    def vision_adapters(self, t: int) -> list[BlockAdapter]:
        """What domain t adds to the image tower, block by block."""
        return self.shared_vision.adapters() + self.domain(t).vision.adapters()

    def text_adapters(self, t: int) -> list[BlockAdapter]:
        """What domain t adds to the text tower, block by block."""
        return self.shared_text.adapters() + self.domain(t).text.adapters()

    def base_shift(self, t: int) -> torch.Tensor | None:
        """The base domain's shift, for domains after it."""
        return self.domain(0).calibration.shift if t else None

    def _additions(self, tower: str, *, shared: bool) -> Additions:
        config, shape = self.config, self.shapes[tower]
        first = min(config.shared_blocks, shape.blocks)
        return Additions(
            config.adapter,
            first if shared else shape.blocks - first,
            shape,
            rank=config.rank_vision if tower == "vision" else config.rank_text,
            length=config.prompt_length,
            generator=self.context.generator("additions", tower, shared),
        )
