"""Vision-language models: what a backbone is, the device it runs on, and CLIP through open_clip.

It imports `data` (for transforms), `plugins` and `cache`.
"""
