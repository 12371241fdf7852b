"""Text and chats to token ids, ids to text. Open this file first.

Control tokens (`<|im_end|>`, …) are cut out here, and only where the caller asks for it or a chat template
wrote them. The text between goes to an encoder in one piece; it is built at the first use, mostly as an
object of Hugging Face's `tokenizers`. Decoding needs only the vocabulary (`stream.py`).
What a GGUF file holds: `gguf.py`; files of every other kind: `files.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenglass.errors import ParameterError
from tokenglass.formats import GGUFFile, ModelSource
from tokenglass.tokens import stream
from tokenglass.tokens.chat import ChatTemplate, RenderedChat, check_text
from tokenglass.tokens.files import read_tokenizer
from tokenglass.tokens.gguf import build_encoder
from tokenglass.tokens.gguf_vocabulary import vocabulary_of
from tokenglass.tokens.origin import ControlTexts
from tokenglass.tokens.vocabulary import Encoder, Vocabulary

# Unicode's White_Space, which is what `tokenizers` strips; Python's own strip() takes four controls more.
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_TEMPLATES = {"default": "", "tool_use": ".tool_use"}  # the two that are ever chosen, and their keys' ends


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
        build: Callable[[], Encoder],
        *,
        chat_template: str | Mapping[str, str] | None = None,
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
        vocabulary = vocabulary_of(gguf)
        key = "tokenizer.chat_template"
        found = {name: gguf.get(f"{key}{end}", str, None) for name, end in _TEMPLATES.items()}
        templates = {name: source for name, source in found.items() if source is not None}
        return cls(vocabulary, build_encoder(gguf, vocabulary), chat_template=templates)

    @classmethod
    def from_path(
        cls, path: Path | str, *, vocab_size: int | None = None, encoding: str | None = None
    ) -> Tokenizer:
        """The tokenizer of a Hugging Face folder, or of one file: `tokenizer.json`, `vocab.txt`,
        SentencePiece `.model`, `.tiktoken`, `.gguf`.

        vocab_size: rows of the model's head where it has more than the files have tokens: the rest is filled
        with tokens that are never used. encoding: tiktoken's name for a rank file, whatever it is called;
        None: known by its length. ModelFileError: a file is missing or broken.
        """
        path = Path(path)
        if path.suffix == ".gguf":
            with GGUFFile.open(path) as file:
                return cls.from_gguf(file)
        parts = read_tokenizer(path, encoding)
        vocabulary = parts.vocabulary if vocab_size is None else parts.vocabulary.padded(vocab_size)
        return cls(vocabulary, parts.build, chat_template=parts.chat_template)

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
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str = False,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """The ids of a chat by the model's template; errors as in `ChatTemplate.render`.

        Control tokens are exactly those the template wrote: in a message they are plain text.
        """
        return self.encode_rendered(
            self.chat.render(
                messages,
                tools=tools,
                documents=documents,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                variables=variables,
            )
        )

    def encode_rendered(self, chat: RenderedChat) -> list[int]:
        """The ids of a chat that `self.chat.render` gave, with one BOS if the model file wants one."""
        return self._joined(chat.segments, None)

    def decode(self, ids: Iterable[int], *, show_control: bool = False, after: int | None = None) -> str:
        """The text of `ids`; arguments and errors as for `TextStream`, whose pieces join to this."""
        return stream.decode(self.vocabulary, ids, show_control=show_control, after=after)

    @cached_property
    def _plain(self) -> Encoder:
        """Encodes text without control tokens."""
        return self._build()

    def _joined(self, segments: Sequence[tuple[str, int | None]], bos: bool | None) -> list[int]:
        ids: list[int] = []
        eats_left, eats_right = self.vocabulary.eats_left, self.vocabulary.eats_right
        for i, (text, token_id) in enumerate(segments):
            if token_id is not None:
                ids.append(token_id)
                continue
            if eats_right and i and segments[i - 1][1] in eats_right:
                text = text.lstrip(_SPACES)
            if eats_left and i + 1 < len(segments) and segments[i + 1][1] in eats_left:
                text = text.rstrip(_SPACES)
            if text:
                ids += self._plain(text, i == 0)
        bos_id = self.vocabulary.bos_id
        if bos_id is None:
            return ids
        num_bos = next((i for i, token_id in enumerate(ids) if token_id != bos_id), len(ids))
        wanted = self.vocabulary.add_bos if bos is None else bos
        return [bos_id] * min(1, num_bos + wanted) + ids[num_bos:]
