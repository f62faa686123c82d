"""Encrypted whole numbers: what is exact, what is refused, and who can read what."""

from __future__ import annotations

import pytest
import tenseal

from cohort.privacy import ckks
from cohort.privacy.ckks import Calculator, KeyHolder, ProtocolError, new_key

NOT_WHOLE = "does not decrypt to a whole number"


@pytest.fixture(scope="module")
def key() -> bytes:
    return new_key()


@pytest.fixture(scope="module")
def holder(key: bytes) -> KeyHolder:
    return KeyHolder(key)


@pytest.fixture(scope="module")
def calculator(holder: KeyHolder) -> Calculator:
    return Calculator(holder.public_key())


@pytest.mark.parametrize("number", [0, 1, -1, 99, 70_000, 2**31, -(2**31)])
def test_a_number_comes_back(number: int, holder: KeyHolder):
    assert holder.decrypt(holder.encrypt(number)) == number


def test_differences_and_sums(holder: KeyHolder, calculator: Calculator):
    others = [calculator.rerandomized(holder.encrypt(number)) for number in (0, 7, 99)]
    result = calculator.differences(holder.encrypt(7), others)
    assert [holder.decrypt(one) for one in result] == [7, 0, -92]
    assert holder.decrypt(calculator.sum(map(holder.encrypt, (1, 20, 300)))) == 321
    assert holder.decrypt(calculator.sum([holder.encrypt(5)])) == 5


def test_a_thousand_large_counts_add_up_exactly(holder: KeyHolder, calculator: Calculator):
    """Each of two ciphertexts 500 times: noise adds up fastest where it is the same."""
    one, other = holder.encrypt(581_011), holder.encrypt(1)
    assert holder.decrypt(calculator.sum([one, other] * 500)) == 500 * 581_012


def test_a_ciphertext_can_be_compared_with_itself(holder: KeyHolder, calculator: Calculator):
    """SEAL refuses to subtract a ciphertext from itself; a fresh one is another ciphertext."""
    sent = holder.encrypt(3)
    (difference,) = calculator.differences(sent, [calculator.rerandomized(sent)])
    assert holder.decrypt(difference) == 0


def test_a_ciphertext_has_the_size_of_its_polynomials(holder: KeyHolder):
    """Two of 8,192 coefficients modulo primes of 60, 40 and 40 bits, which no compression makes
    shorter, in words of 64 bits at most."""
    coefficients = 2 * 8192
    assert coefficients * 140 // 8 < len(holder.encrypt(1)) < coefficients * 3 * 8 + 200


def test_the_same_number_is_never_the_same_ciphertext(holder: KeyHolder):
    assert holder.encrypt(3) != holder.encrypt(3)


def test_nobody_decrypts_with_the_public_key(holder: KeyHolder):
    public = holder.public_key()
    assert not tenseal.context_from(public).has_secret_key()
    with pytest.raises(ValueError, match="secret_key"):
        KeyHolder(public).decrypt(holder.encrypt(3))


def test_another_key_is_noticed(holder: KeyHolder, calculator: Calculator):
    other = KeyHolder(new_key())
    with pytest.raises(ProtocolError, match=NOT_WHOLE):
        other.decrypt(holder.encrypt(3))
    mixed = calculator.differences(holder.encrypt(3), [calculator.rerandomized(other.encrypt(3))])
    for reader in (holder, other):
        with pytest.raises(ProtocolError, match=NOT_WHOLE):
            reader.decrypt(mixed[0])


@pytest.mark.parametrize("number", [2.3, -0.01, 2.0**32, -1e12])
def test_what_is_no_count_is_noticed(number: float, holder: KeyHolder):
    with pytest.raises(ProtocolError, match=NOT_WHOLE):
        holder.decrypt(holder.encrypt(number))


def test_noise_that_hides_the_number_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """At a scale of 2^4 the noise of a fresh ciphertext is larger than 1: of 20, some are not
    nearly whole."""
    monkeypatch.setattr(ckks, "SCALE", 2.0**4)
    noisy = KeyHolder(new_key())
    with pytest.raises(ProtocolError, match=NOT_WHOLE):
        for _ in range(20):
            noisy.decrypt(noisy.encrypt(3))


@pytest.mark.parametrize("message", [b"", b"junk", b"\x0a\x02ab\x12\x02\x08\x01"])
def test_what_is_no_ciphertext_is_noticed(message: bytes, holder: KeyHolder):
    with pytest.raises(ProtocolError):
        holder.decrypt(message)


def test_two_numbers_in_one_ciphertext_are_noticed(key: bytes, calculator: Calculator):
    two = tenseal.ckks_vector(tenseal.context_from(key), [3, 4]).serialize()
    with pytest.raises(ProtocolError, match="of 2 numbers, not of one"):
        calculator.differences(two, [])


def test_a_truncated_ciphertext_is_noticed(holder: KeyHolder, calculator: Calculator):
    half = holder.encrypt(3)[:100_000]
    with pytest.raises(ProtocolError):
        calculator.sum([half, half])
