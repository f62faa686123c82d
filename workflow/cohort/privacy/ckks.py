"""Encrypted whole numbers: the homomorphic scheme CKKS by TenSEAL, one number per ciphertext.

Keys and ciphertexts are bytes, as they are sent.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cohort.core.errors import UserError
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import tenseal
else:
    tenseal = lazy("tenseal")  # an optional dependency

DEGREE = 8192  # of the polynomials: 128 bits of security up to a modulus of 218 bits
MODULUS_BITS = [60, 40, 40, 60]
SCALE = 2.0**40
NOISE = 1e-3  # a thousand times what sums of thousands of fresh ciphertexts have
LARGEST = 2**32  # far above any count of samples, far below what a wrong key decrypts


class ProtocolError(UserError):
    """A party received what no honest party with the right key would have sent."""


def new_key() -> bytes:
    """Generate a key pair, with which numbers are encrypted and decrypted, serialized."""
    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=MODULUS_BITS, n_threads=1
    )
    context.global_scale = SCALE
    return _serialized(context, secret=True)


class KeyHolder:
    """Encrypts and decrypts numbers with a key pair."""

    def __init__(self, key: bytes):
        self._context = tenseal.context_from(key, n_threads=1)

    def public_key(self) -> bytes:
        """The key without its secret half, which decrypts nothing."""
        return _serialized(self._context, secret=False)

    def encrypt(self, number: float) -> bytes:
        """Encrypt a number; every call returns another ciphertext."""
        return tenseal.ckks_vector(self._context, [number]).serialize()

    def decrypt(self, ciphertext: bytes) -> int:
        """Decrypt a whole number: the nearest to what the ciphertext holds, so that zero means |x|
        < 1/2.

        Raise ProtocolError for a value that is not almost whole, or huge: it was encrypted with
        another key, was no whole number, or drowned in noise.
        """
        (value,) = _loaded(self._context, ciphertext).decrypt()
        if not (abs(value) < LARGEST and abs(value - round(value)) < NOISE):
            raise ProtocolError(
                "a ciphertext does not decrypt to a whole number: it was encrypted with another "
                "key, or somebody encrypted something else"
            )
        return round(value)


class Calculator:
    """Subtracts and adds ciphertexts with the public key."""

    def __init__(self, public_key: bytes):
        self._context = tenseal.context_from(public_key, n_threads=1)

    def rerandomized(self, ciphertext: bytes) -> tenseal.CKKSVector:
        """Another ciphertext of the same number. SEAL refuses to subtract a ciphertext from itself,
        because everybody could read the result."""
        return self._load(ciphertext) + tenseal.ckks_vector(self._context, [0])

    def differences(
        self, ciphertext: bytes, subtrahends: Iterable[tenseal.CKKSVector]
    ) -> list[bytes]:
        """Encrypted differences: the ciphertext minus each subtrahend."""
        minuend = self._load(ciphertext)
        return [(minuend - other).serialize() for other in subtrahends]

    def sum(self, ciphertexts: Iterable[bytes]) -> bytes:
        """The encrypted sum of at least one ciphertext."""
        return functools.reduce(operator.iadd, map(self._load, ciphertexts)).serialize()

    def _load(self, ciphertext: bytes) -> tenseal.CKKSVector:
        return _loaded(self._context, ciphertext)


def _loaded(context: tenseal.Context, ciphertext: bytes) -> tenseal.CKKSVector:
    try:
        vector = tenseal.ckks_vector_from(context, ciphertext)
    except (ValueError, RuntimeError) as error:  # from TenSEAL and from SEAL
        raise ProtocolError(f"a message is not a ciphertext ({error})") from None
    if vector.size() != 1:
        raise ProtocolError(f"a message is a ciphertext of {vector.size()} numbers, not of one")
    return vector


def _serialized(context: tenseal.Context, secret: bool) -> bytes:
    return context.serialize(save_secret_key=secret, save_galois_keys=False, save_relin_keys=False)
