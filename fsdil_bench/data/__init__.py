"""From a data set to a stream of domains: scenarios and their ids, the K-shot draw, the validation
split, image files and their content, transforms.

It imports `plugins`, `cache` and `system`.
"""
