"""Where the members of a zip archive lie in the file, for archives that store and do not compress.

PyTorch writes such archives, so a tensor can be read where it lies. Read here instead of with `zipfile`: the
archive is hostile until proven otherwise, and its own counts decide how many objects that library makes.
Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT (4.3: records, 4.5.3: zip64).
"""

from __future__ import annotations

import struct

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import TRUNCATED, Cursor, shown
from tokenglass.formats.mapped import MappedFile

MAX_MEMBERS = 1 << 17
_END = struct.Struct(
    "<4s4H2LH"
)  # signature, disks, directory's disk, members here, members, bytes, offset, …
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MAX_COMMENT = 1 << 16
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF  # "see the zip64 record"


def zip_members(mapped: MappedFile) -> dict[str, tuple[int, int]]:
    """Name -> (offset of its bytes in the file, how many). ModelFileError: cut, compressed, inconsistent."""
    cursor = Cursor(mapped.data, mapped.path)
    num_members, cursor.at = _directory(cursor)
    members: dict[str, tuple[int, int]] = {}
    for index in range(num_members):
        name, place = _member(cursor, f"zip member {index}")
        if name in members:
            cursor.fail(f"zip member {shown(name)}", "appears twice")
        members[name] = place
    return members


def _directory(cursor: Cursor) -> tuple[int, int]:
    """How many members there are, and where the directory begins."""
    data, path = cursor.data, cursor.path
    at = data.rfind(b"PK\5\6", max(0, len(data) - _MAX_COMMENT - _END.size))
    if at < 0 or at + _END.size > len(data):
        raise ModelFileError(path, "zip directory", "is missing", remedy=TRUNCATED)
    _, _, _, _, count, num_bytes, offset, _ = _END.unpack_from(data, at)
    locator = data[max(0, at - 20) : at]
    if locator[:4] == b"PK\6\7" and (count == _FULL16 or _FULL32 in (num_bytes, offset)):
        cursor.at = int.from_bytes(locator[8:16], "little")
        signature, *_, count, num_bytes, offset = _END64.unpack(_take(cursor, _END64.size, "zip64 directory"))
        if signature != b"PK\6\6":
            cursor.fail("zip64 directory", "is missing", TRUNCATED)
    if offset + num_bytes > len(data) or count * _ENTRY.size > num_bytes:
        problem = f"{count} items of at least {_ENTRY.size} bytes do not fit in the {num_bytes} bytes left"
        cursor.fail("zip directory", problem, TRUNCATED)
    if count > MAX_MEMBERS:
        cursor.fail("zip directory", f"{count} items, and at most {MAX_MEMBERS} are read")
    return count, offset


def _member(cursor: Cursor, field: str) -> tuple[str, tuple[int, int]]:
    entry = _ENTRY.unpack(_take(cursor, _ENTRY.size, field))
    signature, flags, method, packed, length = entry[0], entry[3], entry[4], entry[8], entry[9]
    name_len, extra_len, comment_len, offset = *entry[10:13], entry[16]
    if signature != b"PK\1\2":
        cursor.fail(field, "has no directory entry")
    try:
        name = cursor.take(name_len, field).decode()
    except UnicodeDecodeError:
        cursor.fail(field, "the string is not UTF-8")
    packed, length, offset = _wide(cursor.take(extra_len, field), packed, length, offset)
    cursor.take(comment_len, field)
    field = f"zip member {shown(name)}"
    if flags & 1 or method or packed != length:
        cursor.fail(field, "is compressed or encrypted")
    here, cursor.at = cursor.at, offset
    local = _LOCAL.unpack(_take(cursor, _LOCAL.size, field))
    if local[0] != b"PK\3\4":
        cursor.fail(field, "has no local header")
    start = cursor.at + local[9] + local[10]
    if start + length > len(cursor.data):
        cursor.fail(field, f"ends at byte {start + length}, and the file has {len(cursor.data)}", TRUNCATED)
    cursor.at = here
    return name, (start, length)


def _wide(extra: bytes, packed: int, length: int, offset: int) -> tuple[int, int, int]:
    """The three numbers, those that did not fit in 32 bits out of the zip64 extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            wide = iter(struct.unpack_from(f"<{len(extra[at + 4 : at + 4 + size]) // 8}Q", extra, at + 4))
            length = next(wide, length) if length == _FULL32 else length
            packed = next(wide, packed) if packed == _FULL32 else packed
            offset = next(wide, offset) if offset == _FULL32 else offset
        at += 4 + size
    return packed, length, offset


def _take(cursor: Cursor, num_bytes: int, field: str) -> bytes:
    """`Cursor.take` from a place that the file has named: it may lie past the end."""
    if cursor.at > len(cursor.data):
        cursor.fail(field, f"begins at byte {cursor.at}, and the file has {len(cursor.data)}", TRUNCATED)
    return cursor.take(num_bytes, field)
