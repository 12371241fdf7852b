"""Chinese for `convert`."""

# ruff: noqa: E501 - one entry is one line where it can be

from __future__ import annotations

ZH = {
    "a model into a GGUF file or a folder, its weights as they are or quantised": "把模型写成 GGUF 文件或文件夹，权重保持原样或量化",
    "Write a model as a GGUF file or a folder, or its weights as a safetensors file.": "把模型写成 GGUF 文件或文件夹，或者把它的权重写成 safetensors 文件。",
    "path of a .gguf file or of a model's folder, or a name": ".gguf 文件或模型文件夹的路径，或者名字",
    "what to write: .gguf, .safetensors, or a folder": "要写什么：.gguf、.safetensors 或文件夹",
    "write the matrices in this form (default: as they are)": "把矩阵写成这种形式（默认：保持原样）",
    "the weights alone: an OUTPUT without .safetensors becomes a whole folder": "只有权重：OUTPUT 不以 .safetensors 结尾时会写成完整的文件夹",
    "{percent}% of {total:.0f} MB written": "已写 {total:.0f} MB 的 {percent}%",
    "{file}: {size:.1f} MB": "{file}：{size:.1f} MB",
    "must end in .gguf or .safetensors, or be the name of a folder": "要以 .gguf 或 .safetensors 结尾，或者是文件夹的名字",
    "Name another, or remove it": "请写别的名字，或者先删除它",
    "q8 and q4 are blocks, and a safetensors file has none": "q8 和 q4 是分块的，safetensors 文件里没有",
}
