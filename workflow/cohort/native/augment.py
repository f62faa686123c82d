"""Code that augments the images of a batch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from cohort.data import augmentations
from cohort.native.emitter import ZERO, Arena, Emitter, Index, reversed_lanes
from cohort.native.layers import Shape

BYTES = "i8"  # LLVM's type of stored bytes
COLORS = 5  # changes of color, at most
COLUMNS = COLORS + 3  # of instructions: colors, top, left, flip
LUMA = 0.2989, 0.587, 0.114
SIXTHS = 3, 1, -1  # where on the color circle the channels are darkest
ARRAYS = "memory", "samples", "indices", "rows", "instructions", "factors"


@dataclass(frozen=True)
class AugmentPlan:
    """What code that augments must do: the width of the border with which images are padded,
    whether the border reflects the image, and whether colors change."""

    border: int
    reflects: bool
    has_colors: bool

    @classmethod
    def of(cls, augmentation: augmentations.Augmentation, shape: Shape, lanes: int) -> Self | None:
        """The plan for an augmentation of images of this shape; None if it has no native code."""
        changes = augmentation.parameters(np.zeros((1, augmentation.numbers)))
        if changes is None or shape[2] < lanes or shape[1] * shape[2] % lanes:
            return None
        has_colors = changes.colors.shape[1] > 0
        if has_colors and augmentation.border:  # the contrast's mean would include the border
            return None
        return cls(augmentation.border, augmentation.reflects, has_colors)


def to_instructions(
    changes: augmentations.AugmentationParameters, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Turn parameters of an augmentation into the two arrays that native code reads, instructions
    and factors, with a row per image."""
    instructions = np.zeros((len(changes.flip), COLUMNS), dtype=np.int32)
    instructions[:, : changes.colors.shape[1]] = changes.colors
    for column, values in enumerate((changes.top, changes.left, changes.flip), COLORS):
        instructions[:, column] = values
    factors = np.zeros((len(changes.flip), COLORS), dtype=dtype)
    factors[:, : changes.factors.shape[1]] = changes.factors
    return instructions, factors


def load_numbers(emit: Emitter, address: str, kind: str) -> str:
    """Emit a load of as many numbers, of type `kind`, as a vector has lanes, from any address."""
    if kind != BYTES:
        return emit.load_anywhere(address)
    loaded = emit.value(f"load <{emit.lanes} x i8>, ptr {address}, align 1")
    return emit.value(f"uitofp <{emit.lanes} x i8> {loaded} to {emit.vector}")


class AugmentCode:
    """Emits `augment`, which fetches images (sample, channel, row, column) and writes the changed
    ones, with numbers in [0, 1], to `images` (position in the batch, channel, row, column). In
    between, each image lies with its border in `work` (channel, row, column). `kind` is the type of
    the stored numbers, which `factor` scales."""

    def __init__(
        self, emit: Emitter, arena: Arena, augment: AugmentPlan, shape: Shape, kind: str, batch: int
    ):
        self.emit, self.augment, self.shape, self.kind = emit, augment, shape, kind
        channels, height, width = shape
        self.row = width + 2 * augment.border
        self.channel = (height + 2 * augment.border) * self.row
        self.size = channels * height * width
        self.work = arena.allocate(channels * self.channel)
        self.images = arena.allocate(batch * self.size)

    def emit_function(self) -> None:
        """Emit the function `augment`, which augments the images of a batch."""
        emit = self.emit
        # the factor scales what is stored
        parameters = *Emitter.noalias(*ARRAYS), "i64 %count", f"{emit.scalar} %factor"
        with emit.function("augment", *parameters), emit.loop("%count") as image:
            number, row = (emit.load_int(name, image) for name in ("%indices", "%rows"))
            self._emit_fetch(emit.pointer("%samples", (number, self.size), kind=self.kind))
            if self.augment.reflects:
                self._emit_reflection()
            instruction = emit.pointer("%instructions", (row, COLUMNS), kind="i32")
            if self.augment.has_colors:
                factors = emit.pointer("%factors", (row, COLORS))
                with emit.loop(COLORS) as index:
                    factor = emit.broadcast(emit.load_number(factors, index))
                    self._emit_color_change(emit.load_int(instruction, index), factor)
            top, left, flip = (emit.load_int(instruction, COLORS + column) for column in range(3))
            for comparison, is_flipped in (("eq", False), ("ne", True)):
                with emit.when(emit.value(f"icmp {comparison} i64 {flip}, 0")):
                    self._emit_crop(top, left, image, is_flipped)

    def emit_call(self, indices: str, rows: str, count: str) -> None:
        """Emit a call of `augment` for a batch."""
        pointers = ["%memory", "%samples", indices, rows, "%instructions", "%factors"]
        arguments = [f"ptr {pointer}" for pointer in pointers]
        self.emit.call("augment", *arguments, f"i64 {count}", f"{self.emit.scalar} %factor")

    def _pixel_pointer(self, channel: Index, row: Index, column: Index) -> str:
        """A pointer into the bordered image, from the corner of its border on."""
        offsets = (channel, self.channel), (row, self.row), column
        return self.emit.pointer("%memory", *offsets, self.work)

    def _columns(self) -> list[int]:
        """The columns at which the vectors of a row begin; the last two may overlap."""
        width, lanes = self.shape[2], self.emit.lanes
        return [min(start, width - lanes) for start in range(0, width, lanes)]

    def _emit_fetch(self, sample: str) -> None:
        emit, (channels, height, width), border = self.emit, self.shape, self.augment.border
        scale = emit.broadcast("%factor")
        with emit.loops(channels, height) as (channel, row):
            offsets = (channel, height * width), (row, width)
            goal = self._pixel_pointer(channel, emit.add(row, border), border)
            for column in self._columns():
                source = emit.pointer(sample, *offsets, column, kind=self.kind)
                value = emit.op("fmul", load_numbers(emit, source, self.kind), scale)
                emit.store_first(value, emit.lanes, goal, column)

    def _emit_reflection(self) -> None:
        """Emit code that fills the border: in each row first, then with whole rows."""
        emit, (channels, height, width), border = self.emit, self.shape, self.augment.border

        def mirrored(size: int) -> list[tuple[int, int]]:
            pairs = []
            for step in range(1, border + 1):
                last = border + size - 1
                pairs += [(border - step, border + step), (last + step, last - step)]
            return pairs

        with emit.loop(channels) as channel:
            with emit.loop(height) as row:
                line = self._pixel_pointer(channel, emit.add(row, border), 0)
                for goal, source in mirrored(width):
                    emit.store_number(emit.load_number(line, source), line, goal)
            for goal, source in mirrored(height):
                with emit.loop(self.row) as column:
                    pixel = emit.load_number(self._pixel_pointer(channel, source, column))
                    emit.store_number(pixel, self._pixel_pointer(channel, goal, column))

    def _emit_crop(self, top: str, left: str, image: Index, is_flipped: bool) -> None:
        """Emit a copy of an image's crop, mirrored if `is_flipped`."""
        emit, (channels, height, width) = self.emit, self.shape
        with emit.loops(channels, height) as (channel, row):
            source = self._pixel_pointer(channel, emit.add(row, top), left)
            offsets = (image, self.size), (channel, height * width), (row, width)
            goal = emit.pointer("%memory", *offsets, self.images)
            for column in self._columns():
                value = emit.load_anywhere(source, column)
                if is_flipped:
                    value, column = reversed_lanes(emit, value), width - emit.lanes - column
                emit.store_first(value, emit.lanes, goal, column)

    # changes of color

    def _emit_color_change(self, code: str, factor: str) -> None:
        """Emit the change of color of this code; hue shifts by a factor of the whole circle."""
        emit, blend, luma, loop = self.emit, self._blend, self._luma, self._emit_pixel_loop
        changes = {
            augmentations.BRIGHTNESS: lambda: loop(lambda rgb: blend(ZERO, rgb, factor)),
            augmentations.CONTRAST: lambda: self._emit_contrast(factor),
            augmentations.SATURATION: lambda: loop(lambda rgb: blend(luma(rgb), rgb, factor)),
            augmentations.HUE: lambda: loop(lambda rgb: self._rotate_hue(rgb, factor)),
            augmentations.GRAY: lambda: loop(lambda rgb: [luma(rgb)] * 3),
        }
        for number, emit_change in changes.items():
            with emit.when(emit.value(f"icmp eq i64 {code}, {number}")):
                emit_change()

    def _emit_pixel_loop(self, change: Callable[[list[str]], list[str]]) -> None:
        """Emit a loop that replaces vectors of pixels, one for each channel, by their `change`."""
        emit = self.emit
        with emit.loop(self.channel // emit.lanes) as number:
            pointers = [self._pixel_pointer(channel, 0, 0) for channel in range(3)]
            offset = number, emit.lanes
            pixels = [emit.load(pointer, offset) for pointer in pointers]
            for pointer, value in zip(pointers, change(pixels), strict=True):
                emit.store(value, pointer, offset)

    def _luma(self, pixels: list[str]) -> str:
        emit, total = self.emit, ZERO
        for pixel, share in zip(pixels, LUMA, strict=True):
            total = emit.fma(pixel, emit.constant(share), total)
        return total

    def _blend(self, partner: str, pixels: list[str], factor: str) -> list[str]:
        """Emit partner + factor * (pixel - partner), within [0, 1], for each pixel."""
        emit, white = self.emit, self.emit.constant(1)
        blended = []
        for pixel in pixels:
            value = emit.fma(factor, emit.op("fsub", pixel, partner), partner)
            blended.append(emit.minimum(emit.maximum(value, ZERO), white))
        return blended

    def _emit_contrast(self, factor: str) -> None:
        emit = self.emit
        total = emit.variables([ZERO])

        def add(pixels: list[str]) -> list[str]:
            total.store([emit.op("fadd", total.load()[0], self._luma(pixels))])
            return pixels

        self._emit_pixel_loop(add)
        scale = emit.literal(1 / self.channel)
        mean = emit.value(f"fmul {emit.scalar} {emit.lane_sum(total.load()[0])}, {scale}")
        shade = emit.broadcast(mean)
        self._emit_pixel_loop(lambda pixels: self._blend(shade, pixels, factor))

    def _rotate_hue(self, pixels: list[str], shift: str) -> list[str]:
        """Emit pixels with their hue rotated by a share of the color circle."""
        emit, (red, green, blue) = self.emit, pixels
        brightest = emit.maximum(emit.maximum(red, green), blue)
        spread = emit.op("fsub", brightest, emit.minimum(emit.minimum(red, green), blue))
        is_red = emit.op("fcmp oeq", brightest, red)
        is_green = emit.op("fcmp oeq", brightest, green)

        def by_brightest(of_red: str, of_green: str, of_blue: str) -> str:
            return emit.select(is_red, of_red, emit.select(is_green, of_green, of_blue))

        pairs = (green, blue), (blue, red), (red, green)
        differences = [emit.op("fsub", *pair) for pair in pairs]
        is_gray = emit.op("fcmp oeq", spread, ZERO)
        divisor = emit.select(is_gray, emit.constant(1), spread)
        hue = emit.op("fdiv", by_brightest(*differences), divisor)
        start = by_brightest(ZERO, emit.constant(2), emit.constant(4))
        sixths = emit.op("fmul", shift, emit.constant(6))
        hue = emit.op("fadd", emit.op("fadd", hue, start), sixths)
        rotated = []
        for offset in SIXTHS:
            turns = emit.op("fadd", hue, emit.constant(offset))
            turns = emit.op("fmul", turns, emit.constant(1 / 6))
            distance = emit.unary("fabs", emit.op("fsub", turns, emit.unary("roundeven", turns)))
            darkness = emit.fma(distance, emit.constant(-6), emit.constant(2))
            darkness = emit.minimum(emit.maximum(darkness, ZERO), emit.constant(1))
            rotated.append(emit.fma(emit.op("fsub", ZERO, darkness), spread, brightest))
        return rotated
