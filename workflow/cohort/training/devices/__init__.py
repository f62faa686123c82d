"""Devices: how fast clients compute and send, which a simulation of time needs."""

import functools

from cohort.core.component_names import parse
from cohort.core.components import Catalog
from cohort.training.devices.devices import Devices

DEVICES = Catalog("cohort.training.devices", Devices)


@functools.cache
def parse_devices(text: str) -> Devices:
    """Build the devices that a name like `lognormal-1` describes."""
    return parse(text, DEVICES, "devices")


__all__ = ["DEVICES", "Devices", "parse_devices"]
