from __future__ import annotations

from dataclasses import replace

import numpy as np
import open_clip
import pytest
import torch
from open_clip.model import CLIP, CustomTextCLIP
from torch.utils.flop_counter import FlopCounterMode

from fsdil_bench import RequestError
from fsdil_bench.adapters import (
    BlockAdapter,
    TowerShape,
    adapter_tensors,
    attention,
    count_parameters,
    encode_embeddings,
    encode_image,
    encode_rest,
    encode_text,
    encode_tree,
    fold,
    identity_projection,
    image_tokens,
    run_blocks,
    text_tree,
    tower_blocks,
    tower_shape,
)

WIDTH, HEADS, DEPTH = 64, 2, 3
HEAD = WIDTH // HEADS
VISION = {"image_size": 16, "patch_size": 8, "width": WIDTH, "layers": DEPTH, "head_width": HEAD}
TEXT = {"context_length": 12, "vocab_size": 40, "width": WIDTH, "heads": HEADS, "layers": DEPTH}
END = 39


def build(kind=CLIP, vision=(), text=()):
    """A small model whose attention is sharp and whose biases are not zero."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = kind(embed_dim=32, vision_cfg=VISION | dict(vision), text_cfg=TEXT | dict(text))
        with torch.no_grad():
            for weight in model.parameters():
                weight += 0.15 * torch.randn_like(weight)
    return model.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def model():
    return build()


@pytest.fixture(scope="module")
def pixels():
    return torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def tokens():
    """Four texts of 2 to 5 words, with padding behind the end token."""
    texts = torch.zeros(4, 12, dtype=torch.long)
    words = torch.randint(2, END, (4, 5), generator=torch.Generator().manual_seed(2))
    for row, length in zip(range(4), (3, 5, 2, 3), strict=True):
        texts[row, 0] = 1
        texts[row, 1 : length + 1] = words[row, :length]
        texts[row, length + 1] = END
    return texts


@pytest.fixture(params=["image", "text"])
def tower(request, model, pixels, tokens):
    """A tower: the module, how to run it with adapters, and what the plain model gives."""
    if request.param == "image":
        run = lambda adapters, **more: encode_image(model.visual, pixels, adapters, **more)  # noqa: E731
        return model.visual, run, model.encode_image(pixels)
    run = lambda adapters, **more: encode_text(model, tokens, adapters, **more)  # noqa: E731
    return model, run, model.encode_text(tokens)


def noise(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def close(one, other, tolerance=1e-5):
    return torch.allclose(
        one, other, rtol=tolerance, atol=tolerance * float(other.detach().abs().max())
    )


def linear_adapters(per_head=False, out=True):
    """Random C1, C2 and LoRA everywhere, different in every block."""
    shape = (HEADS, HEAD, HEAD) if per_head else (HEAD, HEAD)
    names = ("q", "k", "v", "out") if out else ("q", "v")
    return [
        BlockAdapter(
            query=torch.eye(HEAD) + noise(*shape, seed=10 * i, scale=0.2),
            value=torch.eye(HEAD) + noise(*shape, seed=10 * i + 1, scale=0.2),
            lora={
                name: (noise(3, WIDTH, seed=50 * i + j), noise(WIDTH, 3, seed=99 * i + j) / WIDTH)
                for j, name in enumerate(names)
            },
        )
        for i in range(DEPTH)
    ]


def all_slots(batch=None):
    """Every slot in use; tokens of each sample's own if there is a batch."""
    lead = () if batch is None else (batch,)
    with torch.random.fork_rng():
        torch.manual_seed(4)
        branches = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(2)]
    return [
        replace(
            adapter,
            tokens=noise(*lead, 2, WIDTH, seed=i),
            prefix=(noise(*lead, 3, WIDTH, seed=i + 5), noise(*lead, 3, WIDTH, seed=i + 6)),
            kv_tokens=noise(*lead, 4, WIDTH, seed=i + 9),
            attention_branch=branches[0],
            mlp_branch=branches[1],
        )
        for i, adapter in enumerate(linear_adapters())
    ]


# Settings that change nothing, and one that seems to.


@pytest.mark.parametrize("kind", [CLIP, CustomTextCLIP])
def test_without_adapters_it_is_the_model(kind, pixels, tokens):
    model = build(kind)
    for adapters in ([], [BlockAdapter()] * DEPTH):
        assert close(encode_image(model.visual, pixels, adapters), model.encode_image(pixels))
        assert close(encode_text(model, tokens, adapters), model.encode_text(tokens))


NEUTRAL = {
    "query": BlockAdapter(query=torch.eye(HEAD)),
    "query per head": BlockAdapter(query=torch.eye(HEAD).expand(HEADS, -1, -1)),
    "value": BlockAdapter(value=torch.eye(HEAD)),
    "value per head": BlockAdapter(value=torch.eye(HEAD).expand(HEADS, -1, -1)),
    "lora": BlockAdapter(
        lora={name: (noise(3, WIDTH), torch.zeros(WIDTH, 3)) for name in ("q", "k", "v", "out")}
    ),
    "tokens": BlockAdapter(tokens=torch.zeros(0, WIDTH)),
    "prefix": BlockAdapter(prefix=(torch.zeros(0, WIDTH), torch.zeros(0, WIDTH))),
    "kv_tokens": BlockAdapter(kv_tokens=torch.zeros(0, WIDTH)),
    "attention_branch": BlockAdapter(attention_branch=torch.zeros_like),
    "mlp_branch": BlockAdapter(mlp_branch=torch.zeros_like),
}


@pytest.mark.parametrize("slot", NEUTRAL)
def test_neutral_settings(tower, slot):
    _, run, plain = tower
    assert close(run([NEUTRAL[slot]] * DEPTH), plain)


def test_every_slot_matters(tower):
    _, run, plain = tower
    for slot in ("query", "value", "lora", "tokens", "kv_tokens", "attention_branch", "mlp_branch"):
        adapters = [BlockAdapter(**{slot: getattr(a, slot)}) for a in all_slots()]
        assert not close(run(adapters), plain, 1e-2), slot


def test_zero_prefix_takes_attention(tower):
    _, run, plain = tower
    zero = torch.zeros(2, WIDTH)
    assert not close(run([BlockAdapter(prefix=(zero, zero))] * DEPTH), plain, 1e-2)


# Attention against its formula.


def numpy_attention(layer, x, adapter, causal=False, extra=None):
    """One head, one sample and one query at a time."""
    array = lambda tensor: tensor.double().numpy()  # noqa: E731
    w, width, d = array(layer.in_proj_weight), layer.embed_dim, layer.head_dim
    b, out = array(layer.in_proj_bias), np.zeros(x.shape)
    maps = {name: w[i * width : (i + 1) * width] for i, name in enumerate("qkv")}
    bias = {name: b[i * width : (i + 1) * width] for i, name in enumerate("qkv")}
    maps["out"] = array(layer.out_proj.weight)
    for name, (down, up) in adapter.lora.items():
        maps[name] = maps[name] + array(up) @ array(down)
    for s, own in enumerate(array(x)):
        source = own if extra is None else np.concatenate([array(extra)[s], own])
        more = len(source) - len(own)
        q, k, v = (source @ maps[name].T + bias[name] for name in "qkv")
        heads = []
        for h in range(layer.num_heads):
            part = slice(h * d, (h + 1) * d)
            matrices = [adapter.query, adapter.value]
            c1, c2 = (
                np.eye(d) if c is None else array(c if c.ndim == 2 else c[h]) for c in matrices
            )
            keys, values = k[:, part], v[:, part] @ c2
            free = more
            if adapter.prefix is not None:
                free += len(adapter.prefix[0])
                keys = np.concatenate([array(adapter.prefix[0])[:, part], keys])
                values = np.concatenate([array(adapter.prefix[1])[:, part], values])
            rows = []
            for i in range(len(own)):
                seen = free + i + 1 if causal else len(keys)
                logits = keys[:seen] @ (q[more + i, part] @ c1) / np.sqrt(d)
                weights = np.exp(logits - logits.max())
                rows.append(weights / weights.sum() @ values[:seen])
            heads.append(np.stack(rows))
        out[s] = np.concatenate(heads, 1) @ maps["out"].T + array(layer.out_proj.bias)
    return torch.from_numpy(out).float()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("per_head", [False, True])
def test_attention_is_the_formula(model, per_head, causal):
    layer = model.transformer.resblocks[1].attn
    x, extra = noise(3, 5, WIDTH), noise(3, 2, WIDTH, seed=1)
    adapter = linear_adapters(per_head)[1]
    prefix = noise(4, WIDTH, seed=2), noise(4, WIDTH, seed=3)
    mask = torch.ones(5, 5, dtype=torch.bool).tril() if causal else None
    for one in (BlockAdapter(), adapter, replace(adapter, prefix=prefix)):
        assert close(attention(layer, x, one, mask), numpy_attention(layer, x, one, causal))
    with_all = replace(adapter, prefix=prefix)
    expected = numpy_attention(layer, x, with_all, causal, extra)
    assert close(attention(layer, x, with_all, mask, extra), expected)


def test_authors_values(reference):
    stored = {name: torch.as_tensor(value) for name, value in reference("a_attention").items()}
    x = stored["x"].transpose(0, 1)
    layer = torch.nn.MultiheadAttention(x.shape[2], int(stored["num_heads"]))
    own = ("in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias")
    layer.load_state_dict(
        {name.replace("proj_", "proj.") if "out" in name else name: stored[name] for name in own}
    )
    c1, c2 = stored["C1"], stored["C2"]
    causal = stored["causal_mask"] == 0
    cases = {
        "out_plain": (BlockAdapter(), None),
        "out_dcp": (BlockAdapter(query=c1, value=c2), None),
        "out_c1_only": (BlockAdapter(query=c1), None),
        "out_c2_only": (BlockAdapter(value=c2), None),
        "out_dcp_causal": (BlockAdapter(query=c1, value=c2), causal),
        "out_dcp_per_head": (
            BlockAdapter(query=stored["C1_per_head"], value=stored["C2_per_head"]),
            None,
        ),
        "out_lora": (
            BlockAdapter(
                lora={n: (stored[f"lora_{n}_down"], stored[f"lora_{n}_up"]) for n in ("q", "v")}
            ),
            None,
        ),
    }
    with torch.no_grad():
        for name, (adapter, mask) in cases.items():
            assert close(attention(layer, x, adapter, mask).transpose(0, 1), stored[name]), name


# Tokens, against open_clip's own blocks called by hand.


def image_input(visual, pixels):
    patches = visual.conv1(pixels).reshape(len(pixels), WIDTH, -1).permute(0, 2, 1)
    first = visual.class_embedding.repeat(len(pixels), 1, 1)
    return torch.cat([first, patches], 1) + visual.positional_embedding


def test_image_prompts_are_replaced_at_every_block(model, pixels):
    """Here they stand behind the class token, or at the end: the place does not matter."""
    visual = model.visual
    deep = [noise(2, WIDTH, seed=i) for i in range(DEPTH)]
    embedded = encode_image(visual, pixels, [BlockAdapter(tokens=p) for p in deep])
    behind = at_end = visual.ln_pre(image_input(visual, pixels))
    for block, prompt in zip(visual.transformer.resblocks, deep, strict=True):
        prompt = prompt.expand(len(pixels), -1, -1)
        x = block(torch.cat([behind[:, :1], prompt, behind[:, 1:]], 1))
        behind = torch.cat([x[:, :1], x[:, 3:]], 1)
        at_end = block(torch.cat([at_end, prompt], 1))[:, :-2]
    for x in (behind, at_end):
        assert close(embedded, visual.ln_post(x[:, 0]) @ visual.proj)


def test_shallow_prompts_go_on(model, pixels):
    """Inserted behind the class token, before the first norm."""
    visual, prompt = model.visual, noise(4, WIDTH)
    adapters = [BlockAdapter(tokens=visual.ln_pre(prompt)), *[BlockAdapter()] * (DEPTH - 1)]
    outputs = image_tokens(visual, pixels, adapters)
    x = image_input(visual, pixels)
    x = torch.cat([x[:, :1], prompt.expand(len(x), -1, -1), x[:, 1:]], 1)
    x = visual.transformer(visual.ln_pre(x))
    assert close(encode_image(visual, pixels, adapters), visual.ln_post(x[:, 0]) @ visual.proj)
    assert close(outputs.prompts, x[:, 1:5])
    assert close(outputs.tokens, torch.cat([x[:, :1], x[:, 5:]], 1))


def test_empty_tokens_end_prompts(model, pixels):
    visual = model.visual
    first, ended = BlockAdapter(tokens=noise(4, WIDTH)), BlockAdapter(tokens=torch.zeros(0, WIDTH))
    outputs = image_tokens(visual, pixels, [first, ended, BlockAdapter()])
    x = image_tokens(visual, pixels, [first, BlockAdapter(), BlockAdapter()], depth=1).tokens
    for block in visual.transformer.resblocks[1:]:
        x = block(x)
    assert outputs.prompts.shape == (len(pixels), 0, WIDTH)
    assert close(outputs.tokens, x)


@pytest.mark.parametrize("deep", [True, False])
def test_text_prompts_and_what_they_see(model, tokens, deep):
    """Whether prompts see each other shows only where their outputs are kept."""
    count, length = 3, tokens.shape[1]
    prompts = [noise(count, WIDTH, seed=i) if deep or i == 0 else None for i in range(DEPTH)]
    mask = torch.full((count + length, count + length), float("-inf"))
    for i in range(count + length):
        for j in range(count + length):
            if j < count or (i >= count and j <= i):
                mask[i, j] = 0.0
    x = model.token_embedding(tokens) + model.positional_embedding
    x = torch.cat([torch.zeros(len(x), count, WIDTH), x], 1)
    for block, prompt in zip(model.transformer.resblocks, prompts, strict=True):
        if prompt is not None:
            x = torch.cat([prompt.expand(len(x), -1, -1), x[:, count:]], 1)
        x = block(x, attn_mask=mask)
    last = x[torch.arange(len(x)), count + tokens.argmax(-1)]
    expected = model.ln_final(last) @ model.text_projection
    assert close(encode_text(model, tokens, [BlockAdapter(tokens=p) for p in prompts]), expected)


def test_text_prompts_do_not_see_words(model):
    blocks, adapters = tower_blocks(model), [BlockAdapter(tokens=noise(3, WIDTH))]
    adapters += [BlockAdapter()] * (DEPTH - 1)
    one, other = (
        run_blocks(blocks, noise(2, 5, WIDTH, seed=s), adapters, causal=True) for s in (1, 2)
    )
    assert torch.equal(one.prompts, other.prompts)
    assert not close(one.tokens, other.tokens, 1e-2)


def test_kv_tokens_are_prefixes_before_projection(tower):
    module, run, _ = tower
    given, projected = [], []
    for i, block in enumerate(tower_blocks(module)):
        extra = noise(4, WIDTH, seed=i)
        w, b = block.attn.in_proj_weight, block.attn.in_proj_bias
        _, keys, values = (block.ln_1(extra) @ w.T + b).chunk(3, -1)
        given.append(BlockAdapter(kv_tokens=extra))
        projected.append(BlockAdapter(prefix=(keys, values)))
    assert close(run(given), run(projected))


def test_branches_run_beside_the_block(model, pixels):
    visual = model.visual
    beside, below = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
    adapters = [BlockAdapter(attention_branch=beside, mlp_branch=below)] * DEPTH
    x = visual.ln_pre(image_input(visual, pixels))
    for block in visual.transformer.resblocks:
        normed = block.ln_1(x)
        x = x + block.attention(normed) + beside(normed)
        x = x + block.mlp(block.ln_2(x)) + below(block.ln_2(x))
    assert close(image_tokens(visual, pixels, adapters).tokens, x)


def test_tokens_of_each_sample(model, pixels, tokens):
    for batch, run in (
        (len(pixels), lambda a, i: encode_image(model.visual, pixels[i], a)),
        (len(tokens), lambda a, i: encode_text(model, tokens[i], a)),
    ):
        adapters = all_slots(batch)
        alone = [
            run(
                [
                    replace(
                        a,
                        tokens=a.tokens[i],
                        prefix=(a.prefix[0][i], a.prefix[1][i]),
                        kv_tokens=a.kv_tokens[i],
                    )
                    for a in adapters
                ],
                slice(i, i + 1),
            )
            for i in range(batch)
        ]
        assert close(run(adapters, slice(None)), torch.cat(alone))


# Parts of the towers.


def test_depth_and_features(model, pixels):
    visual = model.visual
    outputs = [image_tokens(visual, pixels, depth=depth) for depth in (*range(DEPTH + 1), None)]
    x = visual.ln_pre(image_input(visual, pixels))
    assert close(outputs[0].tokens, x)
    for block, output in zip(visual.transformer.resblocks, outputs[1:], strict=False):
        x = block(x)
        assert close(output.tokens, x)
    assert torch.equal(outputs[-1].tokens, outputs[-2].tokens)
    feature = visual.ln_post(outputs[-1].tokens[:, 0])
    assert close(feature @ visual.proj, model.encode_image(pixels))


def test_texts_are_cut_and_nothing_is_lost(model, tokens):
    lengths = []

    def watch(x):
        lengths.append(x.shape[:2])
        return torch.zeros_like(x)

    watched = [BlockAdapter(), BlockAdapter(attention_branch=watch), BlockAdapter()]
    plain = model.encode_text(tokens)
    assert close(encode_text(model, tokens, watched), plain)
    assert lengths == [(4, 7)]


def test_a_tree_gives_what_single_texts_give(tower_slots, model, tokens):
    """Texts in any order, some of them twice, some of them beginning alike."""
    alike = torch.cat([tokens[:, :1], torch.tensor([7, 3]).expand(4, 2), tokens[:, 1:-2]], 1)
    texts = torch.cat([tokens, alike, tokens[2:3], alike[:1]])
    tree = text_tree(texts)
    distinct = {tuple(t[: i + 1]) for t in texts.tolist() for i in range(t.index(END) + 1)}
    assert len(tree.tokens) == len(distinct)
    single = [encode_text(model, text[None], tower_slots) for text in texts]
    assert close(encode_tree(model, tree, tower_slots), torch.cat(single))


def test_a_tree_with_context(tower_slots, model, tokens):
    """The context stands behind the start of every text, and is laid out once."""
    context = noise(3, WIDTH, seed=4).requires_grad_()
    tree = text_tree(tokens, context=3)
    assert len(tree.tokens) == len(text_tree(tokens).tokens) + 3
    grads = []
    for out in (
        encode_tree(model, tree, tower_slots, context=context),
        encode_text(model, tokens, tower_slots, context=context),
    ):
        grads.append((out, torch.autograd.grad(out.sin().sum(), context)[0]))
    assert close(grads[0][0], grads[1][0])
    assert close(grads[0][1], grads[1][1], 1e-4)


@pytest.fixture(params=["none", "all", "folded"])
def tower_slots(request, model):
    slots = [replace(adapter, tokens=None) for adapter in all_slots()]
    return {"none": [], "all": slots, "folded": fold(model, slots)}[request.param]


def test_gradients_through_a_tree(model, tokens):
    texts = torch.cat([tokens, tokens])
    grads = []
    for encode in (lambda a: encode_tree(model, text_tree(texts), a),
                   lambda a: encode_text(model, texts, a)):  # fmt: skip
        leaves = [noise(HEAD, HEAD, seed=i).requires_grad_() for i in range(DEPTH)]
        prompts = noise(2, WIDTH, seed=9).requires_grad_()
        out = encode([BlockAdapter(query=leaf, kv_tokens=prompts) for leaf in leaves])
        grads.append(torch.autograd.grad(out.sin().sum(), [prompts, *leaves]))
    for one, other in zip(*grads, strict=True):
        assert close(one, other, 1e-4)


# Only what is read.


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_lean_is_the_same_function(model, pixels, tokens, branches, checkpoint):
    slots = all_slots()
    if not branches:
        slots = [replace(each, attention_branch=None, mlp_branch=None) for each in slots]
    deep = [replace(each, tokens=None) for each in slots]
    tree = text_tree(torch.cat([tokens, tokens[1:3]]))
    towers = [
        (slots, lambda lean: encode_image(
            model.visual, pixels, slots, lean=lean, checkpoint=checkpoint)),
        (deep, lambda lean: encode_tree(model, tree, deep, lean=lean, checkpoint=checkpoint)),
    ]  # fmt: skip
    for adapters, run in towers:
        trained = [tensor.requires_grad_() for tensor in adapter_tensors(adapters)]
        results = []
        for lean in (False, True):
            out = run(lean)
            results.append((out, torch.autograd.grad(out.sin().sum(), trained, allow_unused=True)))
        (one, grads), (other, others) = results
        assert close(one, other)
        assert all((a is b) or close(a, b, 1e-4) for a, b in zip(grads, others, strict=True))


def test_lean_leaves_work_out(model, pixels, tokens):
    def flops(run):
        with FlopCounterMode(display=False) as counter:
            run()
        return counter.get_total_flops()

    tree = text_tree(tokens)
    for run in (
        lambda lean: encode_image(model.visual, pixels, lean=lean),
        lambda lean: encode_tree(model, tree, lean=lean),
    ):
        assert flops(lambda run=run: run(True)) < 0.9 * flops(lambda run=run: run(False))


def test_the_rest_of_the_blocks(model, pixels):
    """Towers that have their first blocks in common differ from there on."""
    adapters = [replace(each, tokens=None) for each in all_slots()]
    tokens = image_tokens(model.visual, pixels, adapters, depth=2).tokens
    assert close(
        encode_rest(model.visual, tokens, adapters[2:]),
        encode_image(model.visual, pixels, adapters),
    )
    other = [*adapters[:2], BlockAdapter()]
    assert close(
        encode_rest(model.visual, tokens, other[2:]), encode_image(model.visual, pixels, other)
    )


def test_prompts_of_every_block_only_give_keys_and_values(tower):
    _, run, _ = tower
    prompts = [noise(2, WIDTH, seed=i) for i in range(DEPTH)]
    as_tokens = run([BlockAdapter(tokens=p) for p in prompts])
    assert close(run([BlockAdapter(kv_tokens=p) for p in prompts]), as_tokens)


def test_context_stands_behind_the_start_token(model, tokens):
    words = torch.tensor([7, 3, 9])
    longer = torch.cat([tokens[:, :1], words.expand(len(tokens), -1), tokens[:, 1:-3]], 1)
    context, expected = model.token_embedding(words), model.encode_text(longer)
    assert close(encode_text(model, tokens, context=context), expected)
    own = noise(len(tokens), 3, WIDTH)
    together = encode_text(model, tokens, context=own)
    assert close(encode_text(model, tokens[1:2], context=own[1]), together[1:2])
    with pytest.raises(ValueError, match="13 tokens do not fit"):
        encode_text(model, tokens, context=noise(6, WIDTH))


def test_texts_as_embeddings(model, tokens):
    words = model.token_embedding(tokens)
    embedded = encode_embeddings(model, words, tokens.argmax(-1))
    assert close(embedded, model.encode_text(tokens))


def test_reduced_precision_is_that_of_the_model(model, pixels, tokens):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert close(encode_image(model.visual, pixels), model.encode_image(pixels), 3e-2)
        assert close(encode_text(model, tokens), model.encode_text(tokens), 3e-2)
        adapted = encode_image(model.visual, pixels, all_slots())
    assert close(adapted.float(), encode_image(model.visual, pixels, all_slots()), 5e-2)


# Training.


def test_gradients_reach_the_adapters_only(tower):
    module, run, _ = tower
    adapters = all_slots()
    trained = [tensor.requires_grad_() for tensor in adapter_tensors(adapters)]
    assert len(trained) == DEPTH * (2 + 8 + 1 + 2 + 1) + 2 * 2
    run(adapters).square().sum().backward()
    assert all(tensor.grad is not None and tensor.grad.abs().max() > 0 for tensor in trained)
    assert all(weight.grad is None for weight in module.parameters())


def test_checkpointing_changes_memory_only(tower):
    _, run, _ = tower
    adapters = all_slots()
    trained = [tensor.requires_grad_() for tensor in adapter_tensors(adapters)]
    results = []
    for checkpoint in (False, True):
        out = run(adapters, checkpoint=checkpoint)
        results.append((out, torch.autograd.grad(out.square().sum(), trained)))
    (one, grads), (other, others) = results
    assert close(one, other)
    assert all(close(a, b) for a, b in zip(grads, others, strict=True))


# Folding.


@pytest.mark.parametrize("per_head", [False, True])
def test_folded_is_the_same_function(tower, per_head):
    module, run, plain = tower
    before = {name: value.clone() for name, value in module.state_dict().items()}
    adapters = linear_adapters(per_head)
    folded = fold(module, adapters)
    assert all(a.query is None and a.value is None and not a.lora for a in folded)
    assert close(run(folded), run(adapters))
    assert not close(run(folded), plain, 1e-2)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize("slot", ["query", "value", "lora"])
def test_each_linear_slot_folds_alone(tower, slot):
    module, run, _ = tower
    adapters = [BlockAdapter(**{slot: getattr(a, slot)}) for a in linear_adapters()]
    assert close(run(fold(module, adapters)), run(adapters))


def test_folding_leaves_the_other_slots(tower):
    module, run, _ = tower
    adapters = all_slots()
    folded = fold(module, adapters)
    assert close(run(folded), run(adapters))
    again = fold(module, folded)
    assert all(a is b for a, b in zip(again, folded, strict=True))
    # What was folded can be adapted, and folded, once more.
    twice = [replace(a, value=b.value) for a, b in zip(folded, adapters, strict=True)]
    assert close(run(fold(module, twice)), run(twice))


def test_folding_copies_only_what_changes(model):
    blocks = tower_blocks(model)
    untouched, changed, _ = fold(
        model, [BlockAdapter(), linear_adapters(out=False)[0], BlockAdapter()]
    )
    assert untouched.projections is None
    assert changed.projections.out is blocks[1].attn.out_proj.weight


# Numbers.


def test_a_projection_starts_near_the_identity():
    matrices = [identity_projection(64, torch.Generator().manual_seed(s)) for s in range(8)]
    assert all(torch.equal(matrix.diagonal(), torch.ones(64)) for matrix in matrices)
    off = torch.stack([matrix[~torch.eye(64, dtype=torch.bool)] for matrix in matrices])
    assert abs(float(off.mean())) < 5e-4
    assert float(off.std()) == pytest.approx(0.02, rel=0.02)
    assert torch.equal(matrices[3], identity_projection(64, torch.Generator().manual_seed(3)))


def empty(*shape):
    return torch.empty(*shape, device="meta")


@pytest.mark.parametrize(
    ("make", "shared", "specific"),
    [
        (lambda: {"query": empty(64, 64), "value": empty(64, 64)}, 65_536, 32_768),
        (lambda: {"lora": {n: (empty(3, 768), empty(768, 3)) for n in "qv"}}, 73_728, 36_864),
        (lambda: {"lora": {n: (empty(4, 512), empty(512, 4)) for n in "qv"}}, 65_536, 32_768),
        (lambda: {"tokens": empty(8, 768)}, 49_152, 24_576),
        (lambda: {"tokens": empty(8, 512)}, 32_768, 16_384),
    ],
    ids=["dcp", "lora-image", "lora-text", "prompts-image", "prompts-text"],
)
def test_parameter_counts_of_vit_b_16(make, shared, specific):
    for blocks, expected in ((8, shared), (4, specific)):
        adapters = [BlockAdapter(**make()) for _ in range(blocks)]
        assert count_parameters(adapters) == expected
        assert count_parameters(adapters + adapters) == expected


def test_branches_and_prefixes_are_counted_and_folded_weights_not(model):
    branch = torch.nn.Sequential(torch.nn.Linear(WIDTH, 5), torch.nn.Linear(5, WIDTH))
    adapter = BlockAdapter(
        attention_branch=branch,
        mlp_branch=torch.zeros_like,
        prefix=(empty(5, WIDTH), empty(5, WIDTH)),
    )
    assert count_parameters([adapter]) == (2 * 5 * WIDTH + 5 + WIDTH) + 2 * 5 * WIDTH
    assert count_parameters(fold(model, linear_adapters())) == 0


def test_shapes(model):
    shape = tower_shape(build(vision={"head_width": 16, "layers": 2}).visual)
    assert (shape.blocks, shape.width, shape.heads, shape.head_width) == (2, WIDTH, 4, 16)
    assert tower_shape(model) == tower_shape(build(CustomTextCLIP))


# Requests that cannot be met.


@pytest.mark.parametrize(
    ("vision", "why"),
    [
        ({"layers": (1, 1, 1, 1), "image_size": 32}, "ModifiedResNet: it has no transformer"),
        ({"qk_norm": True}, "pre-norm blocks"),
        ({"pool_type": "avg"}, "class token"),
        ({"attentional_pool": True}, "class token"),
    ],
)
def test_other_image_towers_are_refused(vision, why, pixels):
    visual = build(vision=vision).visual
    with pytest.raises(RequestError, match=why):
        encode_image(visual, pixels)


@pytest.mark.parametrize("text", [{"no_causal_mask": True}, {"pool_type": "last"}])
def test_other_text_towers_are_refused(text, tokens):
    with pytest.raises(RequestError, match="not causal, or not read at the end token"):
        encode_text(build(text=text), tokens)


def test_anything_else_is_refused(model, pixels, tokens):
    with pytest.raises(RequestError, match="a Linear: it has no transformer"):
        tower_shape(torch.nn.Linear(2, 2))
    with pytest.raises(RequestError, match="a CLIP: it has no conv1"):
        encode_image(model, pixels)
    with pytest.raises(RequestError, match="a VisionTransformer: it has no token_embedding"):
        encode_text(model.visual, tokens)


def test_adapters_that_do_not_fit(model, pixels, tokens):
    with pytest.raises(ValueError, match="2 adapters for 3 blocks"):
        encode_image(model.visual, pixels, [BlockAdapter()] * 2)
    with pytest.raises(ValueError, match="'q', 'k', 'v' and 'out'"):
        BlockAdapter(lora={"query": (noise(1, WIDTH), noise(WIDTH, 1))})
    with pytest.raises(ValueError, match="must be"):
        BlockAdapter(query=noise(2, HEADS, HEAD, HEAD))
    with pytest.raises(ValueError, match="tokens for 3 samples in a batch of 1"):
        encode_text(model, tokens[:1], all_slots(batch=3))
    with pytest.raises(ValueError, match="kv_tokens are as good"):
        encode_tree(model, text_tree(tokens), all_slots())


@pytest.mark.slow
def test_vit_b_16():
    model = open_clip.create_model("ViT-B-16-quickgelu", load_weights=False).eval()
    assert tower_shape(model.visual) == TowerShape(12, 768, 12)
    assert tower_shape(model) == TowerShape(12, 512, 8)
    tokens = open_clip.get_tokenizer("ViT-B-16-quickgelu")(["a photo of a cat", "a dog"])
    pixels = noise(2, 3, 224, 224)
    with torch.no_grad():
        assert close(encode_image(model.visual, pixels), model.encode_image(pixels), 1e-4)
        assert close(encode_text(model, tokens), model.encode_text(tokens), 1e-4)
