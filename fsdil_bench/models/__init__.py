"""Vision-language models: what a backbone is, its batches and frozen embeddings, the device it runs
on, and CLIP through open_clip.

Folders from `records` to `cli` may import it. It imports `data` (for transforms), `cache`,
`plugins` and `errors`.
"""
