"""Event files, which TensorBoard shows: the format of TensorFlow's records with protocol buffers,
of which scalars need a handful of fields."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cohort.core.files import atomic_write

POLYNOMIAL, MASK, BITS = 0x82F63B78, 0xA282EAD8, 0xFFFFFFFF
VERSION = "brain.Event:2"
FILE = "events.out.tfevents.0.cohort"


def write_events(folder: Path, scalars: Iterable[tuple[int, Mapping[str, float]]]) -> None:
    """Write the scalars of a run, by step, to an event file in this folder."""
    with atomic_write(folder / FILE) as temporary, open(temporary, "wb") as file:
        file.write(_record(_text(3, VERSION)))
        for step, values in scalars:
            summary = b"".join(_bytes(1, _value(tag, value)) for tag, value in values.items())
            file.write(_record(_key(2, 0) + _varint(step) + _bytes(5, summary)))


def crc32c(data: bytes) -> int:
    """The CRC-32C (Castagnoli) of some bytes."""
    crc = BITS
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ BITS


def _entries() -> Iterator[int]:
    for entry in range(256):
        for _ in range(8):
            entry = (entry >> 1) ^ (POLYNOMIAL if entry & 1 else 0)
        yield entry


TABLE = tuple(_entries())


def _record(event: bytes) -> bytes:
    """An event with its length, and the masked checksums of both."""
    length = struct.pack("<Q", len(event))
    return length + _masked(length) + event + _masked(event)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + MASK) & BITS)


def _value(tag: str, value: float) -> bytes:
    return _text(1, tag) + _key(2, 5) + struct.pack("<f", value)


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, content: bytes) -> bytes:
    return _key(field, 2) + _varint(len(content)) + content


def _key(field: int, kind: int) -> bytes:
    """The number of a field, and how it is written: 0 varint, 2 bytes, 5 four bytes."""
    return _varint(field << 3 | kind)


def _varint(number: int) -> bytes:
    """A whole number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])
