"""Packages that planning must not wait for: a lazy module is imported when it is first used.

Planning imports every component for its fields and checks, and takes a fraction of a second because
it does not import torch, pandas or matplotlib. A component that needs one of them writes

    if TYPE_CHECKING:
        import torch
    else:
        torch = lazy("torch")
"""

import importlib
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def lazy(name: str) -> Any:
    """A stand-in for the module of this name, which imports it when an attribute is first used."""
    return _LazyModule(name)
