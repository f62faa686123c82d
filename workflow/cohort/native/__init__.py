"""Machine code for networks on a processor, by LLVM.

`native.network` is the way in: `NativeNetwork` compiles and trains a network, `predict` gives its
outputs, `Unsupported` says what has no native code. `layers` reads a network, `lanes_program` and
`single_program` emit its code by the other modules, `compiler` compiles and runs it.

Shapes in comments and docstrings name the axes of an array from the slowest to the fastest:
(block, channel, row, column, lane), where a block is as many samples as a vector has lanes.
"""
