"""Experts beside the MLPs of a tower, and detectors that say which of them an image is for.

FSHIL (CVPR 2026), mixture of experts: in each of the last blocks, with the normed tokens x of an
image, their mean m and the experts k that the block has,

    o = MLP(x) + sum over k of g_k U_k relu(D_k x).

What follows is a guess, since details are not public: expert k has a detector, a linear
auto-encoder of m, fitted in closed form to the images of its domain (their mean and strongest
directions). Its error on an image, measured in standard deviations from its mean error on its own
domain, is z_k(x), and g = softmax(-z). So the gate needs no training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from fsdil_bench import State

Branch = Callable[[torch.Tensor], torch.Tensor]

DETECTOR = ("centre", "basis", "error")
EXPERT = ("down", "up")


def fit_detector(means: torch.Tensor, rank: int) -> State:
    """A detector of images with mean tokens (n, w): its size does not depend on their number.

    The rank is less than half the number of images, so that something is left to be an error.
    """
    centre = means.double().mean(0)
    around = means.double() - centre
    width = means.shape[1]
    basis = torch.zeros(rank, width, dtype=torch.float64, device=means.device)
    kept = min(rank, (len(means) - 1) // 2, width)
    if kept:
        basis[:kept] = torch.linalg.svd(around, full_matrices=False).Vh[:kept]
    found = {"centre": centre.float(), "basis": basis.float()}
    errors = reconstruction_error(means, found["centre"], found["basis"])
    mean = errors.mean()
    # Never much sharper than a tenth of the error: few images may all have the same.
    spread = errors.std(correction=0).clamp(min=float(0.1 * mean) + 1e-6)
    return found | {"error": torch.stack([mean, spread])}


def reconstruction_error(
    means: torch.Tensor, centre: torch.Tensor, basis: torch.Tensor
) -> torch.Tensor:
    """How far mean tokens (n, w) are from what an auto-encoder makes of them, (n,)."""
    around = means.float() - centre
    return (around - around @ basis.T @ basis).norm(dim=1)


def z_scores(means: torch.Tensor, detectors: Sequence[State]) -> torch.Tensor:
    """Errors of all detectors in standard deviations of their own domains, (n, detectors)."""
    found = []
    for each in detectors:
        mean, spread = each["error"]
        error = reconstruction_error(means, each["centre"], each["basis"])
        found.append((error - mean) / spread)
    return torch.stack(found, 1)


def expert(weights: State, x: torch.Tensor) -> torch.Tensor:
    """U relu(D x)."""
    return F.linear(F.linear(x, weights["down"]).relu(), weights["up"])


def expert_branch(experts: Sequence[State], detectors: Sequence[State]) -> Branch:
    """What experts add beside an MLP, for tokens (n, p, w)."""

    def branch(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(x.device.type, enabled=False):
            gates = (-z_scores(x.detach().float().mean(1), detectors)).softmax(1).to(x.dtype)
        total = torch.zeros_like(x)
        for gate, each in zip(gates.T, experts, strict=True):
            total = total + gate[:, None, None] * expert(each, x)
        return total

    return branch


def watching(branch: Branch, seen: list[torch.Tensor]) -> Branch:
    """The same branch, which notes the mean tokens that it gets."""

    def watched(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.detach().float().mean(1))
        return branch(x)

    return watched
