"""Text and chats to token ids, ids to text: the tokenizer of a GGUF file. Open this file first.

Control tokens (`<|im_end|>`, …) are cut out here, and only where the caller asks for it or a chat template
wrote them. The text between goes to Hugging Face's `tokenizers` in one piece; it is built at the first use
(`bpe.py`). Decoding needs only the vocabulary (`stream.py`). Ids equal those of a model's own tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenglass.errors import ModelFileError, ParameterError
from tokenglass.formats import ModelSource, StringArray
from tokenglass.tokens import stream
from tokenglass.tokens.bpe import build_byte_level, build_sentencepiece
from tokenglass.tokens.chat import ChatTemplate, RenderedChat, check_text
from tokenglass.tokens.origin import ControlTexts
from tokenglass.tokens.pretokenizers import PRE_TOKENIZERS
from tokenglass.tokens.vocabulary import Style, Vocabulary

if TYPE_CHECKING:
    import tokenizers


class Tokenizer:
    """A model's tokenizer.

    tokenizer = Tokenizer.from_gguf(gguf)
    tokenizer.encode("Hello world")                             # [19556, 905]
    tokenizer.decode([19556, 905])                              # 'Hello world'
    tokenizer.encode_chat([{"role": "user", "content": "hi"}])  # [..., 1, 4093, 198, 6004, 2, 198, ...]
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        build: Callable[[], tokenizers.Tokenizer],
        *,
        chat_template: str | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        special = {
            "bos_token": vocabulary.bos_id,
            "eos_token": vocabulary.eos_id,
            "unk_token": vocabulary.unknown_id,
            "pad_token": vocabulary.pad_id,
        }
        self.chat = ChatTemplate(
            chat_template,
            control=vocabulary.control,
            special_tokens={name: vocabulary.token_text(i) for name, i in special.items() if i is not None},
        )
        self._build = build
        self._control = ControlTexts(vocabulary.control)

    @classmethod
    def from_gguf(cls, gguf: ModelSource) -> Tokenizer:
        """The tokenizer in the file's metadata; the file may be closed afterwards.

        ModelFileError: a key is missing or wrong, or the pre-tokenizer is one we do not know.
        """
        vocabulary = Vocabulary.from_gguf(gguf)
        template = gguf.get("tokenizer.chat_template", str, None)
        path = gguf.path
        if vocabulary.style is Style.SENTENCEPIECE:
            scores = gguf.get("tokenizer.ggml.scores", np.float32)
            return cls(
                vocabulary, lambda: build_sentencepiece(path, vocabulary, scores), chat_template=template
            )
        merges = gguf.get("tokenizer.ggml.merges", StringArray)
        name = gguf.get("tokenizer.ggml.pre", str, "default")
        pre_tokenizer = PRE_TOKENIZERS.get(name)
        if pre_tokenizer is None:
            raise ModelFileError(
                path,
                "tokenizer.ggml.pre",
                f"the pre-tokenizer {name!r} is not known",
                remedy=f"Known are: {', '.join(sorted(PRE_TOKENIZERS))}",
            )
        return cls(
            vocabulary,
            lambda: build_byte_level(path, vocabulary, merges, pre_tokenizer),
            chat_template=template,
        )

    def encode(self, text: str, *, bos: bool | None = None, control: bool = False) -> list[int]:
        """The ids of `text`.

        `bos`: begin with the model's BOS token; None does what the model file says. Never twice.
        `control`: control tokens written in the text become control tokens; otherwise they are plain text.
        ParameterError: half a surrogate pair in the text; BOS wanted from a model that has none.
        """
        if bos and self.vocabulary.bos_id is None:
            raise ParameterError("bos", "cannot be true: the model has no BOS token")
        check_text(text, "text")
        parts = self._control.split(text) if control else [(0, len(text), None)]
        return self._joined([(text[start:end], token_id) for start, end, token_id in parts], bos)

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """The ids of a chat by the model's template; errors as in `ChatTemplate.render`.

        Control tokens are exactly those the template wrote: in a message they are plain text.
        """
        return self.encode_rendered(
            self.chat.render(
                messages, tools=tools, add_generation_prompt=add_generation_prompt, variables=variables
            )
        )

    def encode_rendered(self, chat: RenderedChat) -> list[int]:
        """The ids of a chat that `self.chat.render` gave, with one BOS if the model file wants one."""
        return self._joined(chat.segments, None)

    def decode(self, ids: Iterable[int], *, show_control: bool = False, at_start: bool = True) -> str:
        """The text of `ids`; arguments and errors as for `TextStream`, whose pieces join to this."""
        return stream.decode(self.vocabulary, ids, show_control=show_control, at_start=at_start)

    @cached_property
    def _plain(self) -> tokenizers.Tokenizer:
        """Encodes text without control tokens."""
        return self._build()

    def _joined(self, segments: Sequence[tuple[str, int | None]], bos: bool | None) -> list[int]:
        ids: list[int] = []
        for text, token_id in segments:
            if token_id is not None:
                ids.append(token_id)
            elif text:
                ids += self._plain.encode(text, add_special_tokens=False).ids
        bos_id = self.vocabulary.bos_id
        if bos_id is None:
            return ids
        num_bos = next((i for i, token_id in enumerate(ids) if token_id != bos_id), len(ids))
        wanted = self.vocabulary.add_bos if bos is None else bos
        return [bos_id] * min(1, num_bos + wanted) + ids[num_bos:]
