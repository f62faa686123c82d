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
    """Write the scalars of a run, by step and tag, to a TensorBoard event file in this folder."""
    with atomic_write(folder / FILE) as temporary, open(temporary, "wb") as file:
        file.write(_encode_record(_encode_text(3, VERSION)))
        for step, values in scalars:
            summary = b"".join(
                _encode_bytes(1, _encode_value(tag, value)) for tag, value in values.items()
            )
            file.write(
                _encode_record(_encode_key(2, 0) + _encode_varint(step) + _encode_bytes(5, summary))
            )


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


def _encode_record(event: bytes) -> bytes:
    """Frame an event with its length, and the masked checksums of both."""
    length = struct.pack("<Q", len(event))
    return length + _masked_checksum(length) + event + _masked_checksum(event)


def _masked_checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + MASK) & BITS)


def _encode_value(tag: str, value: float) -> bytes:
    return _encode_text(1, tag) + _encode_key(2, 5) + struct.pack("<f", value)


def _encode_text(field: int, text: str) -> bytes:
    return _encode_bytes(field, text.encode())


def _encode_bytes(field: int, content: bytes) -> bytes:
    return _encode_key(field, 2) + _encode_varint(len(content)) + content


def _encode_key(field: int, kind: int) -> bytes:
    """Encode the number of a field with its wire type: 0 varint, 2 bytes, 5 four bytes."""
    return _encode_varint(field << 3 | kind)


def _encode_varint(number: int) -> bytes:
    """Encode a whole number as a varint: groups of seven bits, the lowest first, with the high bit
    set in all but the last byte."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])
