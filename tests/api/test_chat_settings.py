"""Tools, documents and template variables of the Python API; Python functions as tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

import tokenglass as tg
from tests.support.tiny_llama import write_tiny_llama
from tokenglass.api.tool_schema import schema_of
from tokenglass.errors import ParameterError


def weather(city: str, days: int = 1) -> str:
    """The weather.

    Args:
        city: where
        days: how many (choices: [1, 2])
    """
    return city * days


def test_chat_settings_reach_the_template(tmp_path: Path) -> None:
    template = (
        "{{ tools | tojson }} {{ documents | tojson }} {{ x }}"
        "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
    )
    path = write_tiny_llama(tmp_path / "m.gguf", metadata={"tokenizer.chat_template": template})
    model = tg.load(path, num_threads=1)
    messages = [{"role": "user", "content": "hi "}]
    chat: dict[str, Any] = {"documents": [{"text": "d"}], "template_args": {"x": 5}}
    expected = model.engine.tokenizer.encode_chat(
        messages,
        tools=[schema_of(weather)],
        documents=[{"text": "d"}],
        continue_final_message=True,
        variables={"x": 5},
    )
    assert model.detokenize(expected).endswith(' [{"text": "d"}] 5hi ')
    asked = model.generate(messages, max_tokens=1, tools=[weather], continue_final_message=True, **chat)
    assert asked.prompt_ids == tuple(expected)
    model.next(messages, tools=[weather])
    assert model.step(messages, temperature=1.0, tools=[schema_of(weather)], **chat)
    with pytest.raises(ParameterError, match="tools is for messages"):
        model.generate("hi", tools=[weather])
    model.engine.tokenizer.chat.close()


def test_a_function_as_a_tool() -> None:
    assert schema_of(weather)["function"] == {
        "name": "weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "where"},
                "days": {"type": "integer", "enum": [1, 2], "description": "how many"},
            },
            "required": ["city"],
        },
        "return": {"type": "string"},
    }


@pytest.mark.oracle
def test_tool_schemas_equal_transformers() -> None:
    utils = pytest.importorskip("transformers.utils")

    def many(
        a: Literal["x", "y"],
        b: list[str],
        c: dict[str, float] | None = None,
        d: int | str = 1,
        e: Any = None,
    ) -> dict[str, int]:
        """Says 现在 what it does.

        In more lines.

        Args:
            a: one
            b (list): two lines
                with a colon: here (choices: ["p", "q"])
            c: three
            d: four
            e: five

        Returns:
            what it
            gives

        Raises:
            ValueError: never
        """
        return {}

    def none() -> None:
        """Nothing."""

    for function in (many, none):
        assert schema_of(function) == utils.get_json_schema(function)


def test_functions_that_make_no_tool() -> None:
    def undescribed(a: int) -> None:
        """Does.

        Args:
            b: no
        """

    def odd(a: complex) -> None:
        """Does.

        Args:
            a: odd
        """

    for function, problem in (
        (undescribed, r"undescribed\.a has no description under Args:"),
        (odd, "no counterpart in JSON"),
        (lambda: None, "has no docstring"),
    ):
        with pytest.raises(ParameterError, match=problem):
            schema_of(function)
