"""Reads the pickle of a PyTorch checkpoint and runs nothing of it: a small machine with inert values.

A pickle is a program for a stack. Python's own `pickle` lets it import any function by name and call it. Here
the only names are those of the table `KNOWN`, each stands for a mark that nothing can call, and three marks
have a meaning: an empty OrderedDict, a tensor out of a storage, and the type of a storage. Every other name,
call or opcode ends in an error that says which. `pickletools.genops` of the standard library cuts the bytes
into opcodes; it makes numbers and strings only.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from enum import Enum
from io import BytesIO
from pathlib import Path
from typing import Any
from warnings import catch_warnings

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import shown


class Mark(Enum):
    """What a name in a pickle stands for."""

    ORDERED_DICT = "collections.OrderedDict"
    TENSOR = "torch._utils._rebuild_tensor_v2"


@dataclass(frozen=True)
class StorageType:
    """The type of a storage's items, under safetensors' name."""

    dtype: str


@dataclass(frozen=True)
class Storage:
    """Bytes beside the pickle: `key` is the name of their member."""

    dtype: str
    key: str
    num_items: int


@dataclass(frozen=True)
class StoredTensor:
    """A view of a storage, in items: not yet held against the storage's bounds."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


KNOWN: dict[str, Mark | StorageType] = {
    **{mark.value: mark for mark in Mark},
    "torch.FloatStorage": StorageType("F32"),
    "torch.HalfStorage": StorageType("F16"),
    "torch.BFloat16Storage": StorageType("BF16"),
    "torch.DoubleStorage": StorageType("F64"),
    "torch.LongStorage": StorageType("I64"),
    "torch.IntStorage": StorageType("I32"),
    "torch.ShortStorage": StorageType("I16"),
    "torch.CharStorage": StorageType("I8"),
    "torch.ByteStorage": StorageType("U8"),
    "torch.BoolStorage": StorageType("BOOL"),
}
_MAX_OPCODES = 1 << 23
_PUSH = {  # opcodes that push what `genops` made of their argument
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES",
}  # fmt: skip
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class PickleMachine:
    """One pickle. `run` gives its value, made of dicts, lists, tuples, numbers, strings and our own marks."""

    def __init__(self, stream: BytesIO, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._stack: list[Any] = []
        self._marks: list[int] = []  # where each open MARK stands in the stack
        self._memo: dict[int, Any] = {}
        self.storages: dict[str, Storage] = {}  # those the pickle refers to, by key

    def run(self) -> Any:
        """Reads to STOP and leaves the stream behind it. ModelFileError: whatever is not a checkpoint."""
        try:
            with catch_warnings(action="ignore", category=DeprecationWarning):  # odd escapes: refused below
                return self._steps()
        except (ValueError, OverflowError) as error:
            if isinstance(error, UnicodeError):
                raise self._refused("the string is not UTF-8") from None
            raise self._refused(f"is not a sound pickle: {error}") from None

    def _steps(self) -> Any:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(self._stream)):
            if count > _MAX_OPCODES:
                raise self._refused(f"has more than {_MAX_OPCODES} opcodes")
            if opcode.name == "STOP":
                return self._pop()
            self._step(opcode.name, argument)
        raise self._refused("has no end")

    def _step(self, name: str, argument: Any) -> None:
        if name in _PUSH:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            items = [self._pop() for _ in range(_TUPLES[name])]
            self._stack.append(tuple(reversed(items)))
        else:
            self._step_by_name(name, argument)

    def _step_by_name(self, name: str, argument: Any) -> None:
        match name:
            case "PROTO" | "FRAME":
                pass
            case "MARK":
                self._marks.append(len(self._stack))
            case "EMPTY_DICT":
                self._stack.append({})
            case "EMPTY_LIST":
                self._stack.append([])
            case "TUPLE":
                self._stack.append(tuple(self._pop_mark()))
            case "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = self._top()
            case "MEMOIZE":
                self._memo[len(self._memo)] = self._top()
            case "BINGET" | "LONG_BINGET":
                if argument not in self._memo:
                    raise self._refused(f"takes value {argument}, which was never put")
                self._stack.append(self._memo[argument])
            case "APPEND":
                self._extend([self._pop()])
            case "APPENDS":
                self._extend(self._pop_mark())
            case "SETITEM":
                value = self._pop()
                self._update([self._pop(), value])
            case "SETITEMS":
                self._update(self._pop_mark())
            case "GLOBAL":
                self._stack.append(self._named(argument.replace(" ", ".", 1)))
            case "STACK_GLOBAL":
                attribute = self._pop()
                self._stack.append(self._named(f"{self._pop()}.{attribute}"))
            case "BINPERSID":
                self._stack.append(self._storage(self._pop()))
            case "REDUCE":
                arguments = self._pop()
                self._stack.append(self._made(self._pop(), arguments))
            case "BUILD":
                state = self._pop()
                if type(self._top()) is not dict or type(state) is not dict:  # an OrderedDict's attributes
                    raise self._refused("sets the state of an object")
            case _:
                raise self._refused(f"the opcode {name} is not allowed")

    def _named(self, name: str) -> Mark | StorageType:
        if name not in KNOWN:
            remedy = "No code out of a model file is run: take the safetensors file of the same model"
            raise ModelFileError(self._path, "pickle", f"asks for {shown(name)}", remedy=remedy)
        return KNOWN[name]

    def _made(self, function: Any, arguments: Any) -> Any:
        match function, arguments:
            case Mark.ORDERED_DICT, ():
                return {}
            case Mark.TENSOR, (Storage() as storage, int(offset), tuple(shape), tuple(strides), *_):
                if not all(type(item) is int for item in (*shape, *strides)):
                    raise self._refused("a tensor's shape or strides are not whole numbers")
                return StoredTensor(storage, offset, shape, strides)
        raise self._refused("makes something that is not a tensor")

    def _storage(self, reference: Any) -> Storage:
        match reference:
            case ("storage", StorageType(dtype), str(key), str(), int(num_items), *rest) if rest in (
                [],
                [None],
            ):
                storage = Storage(dtype, key, num_items)
                if self.storages.setdefault(key, storage) == storage:
                    return storage
        raise self._refused("refers to something that is not a storage")

    def _extend(self, items: list[Any]) -> None:
        if type(self._top()) is not list:
            raise self._refused("adds items to something that is not a list")
        self._top().extend(items)

    def _update(self, pairs: list[Any]) -> None:
        target, keys = self._top(), pairs[::2]
        if type(target) is not dict or len(pairs) % 2:
            raise self._refused("adds items to something that is not a dict")
        if not all(type(key) in (str, int) for key in keys):
            raise self._refused("has a key that is neither text nor a number")
        target.update(zip(keys, pairs[1::2], strict=True))

    def _top(self) -> Any:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise self._refused("takes from an empty stack")
        return self._stack[-1]

    def _pop(self) -> Any:
        self._top()
        return self._stack.pop()

    def _pop_mark(self) -> list[Any]:
        if not self._marks:
            raise self._refused("takes from an empty stack")
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _refused(self, problem: str) -> ModelFileError:
        return ModelFileError(self._path, "pickle", problem)
