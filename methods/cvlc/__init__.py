"""Continual Vision-Language Consolidation (CVLC), one file per mechanism of the paper."""
