"""Makers of small, deterministic test material: `tiny_gguf` writes files, `tiny_llama` a whole model."""
