"""Files, errors, HDF5, logs, random draws, components: nothing about federated learning."""

from cohort.core.errors import FileAccessError, UserError, errors_at, explain_errors, suggest
from cohort.core.lazy import lazy
from cohort.core.text import counted, duration_text

__all__ = ["FileAccessError", "UserError", "counted", "duration_text", "errors_at"]
__all__ += ["explain_errors", "lazy", "suggest"]
