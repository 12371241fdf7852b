"""Text to token ids and back. Open `tokenizer.py` first. Knows nothing of models."""

from tokenglass.tokens.chat import ChatTemplate, RenderedChat, Span
from tokenglass.tokens.stream import TextStream
from tokenglass.tokens.tokenizer import Tokenizer
from tokenglass.tokens.vocabulary import TokenKind, Vocabulary

__all__ = ["ChatTemplate", "RenderedChat", "Span", "TextStream", "TokenKind", "Tokenizer", "Vocabulary"]
