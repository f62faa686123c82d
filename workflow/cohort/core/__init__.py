"""Files, errors, HDF5, logs, random draws, components: nothing about federated learning."""

from cohort.core.errors import FileAccessError, UserError, check_allowed, errors_at, explain_errors
from cohort.core.lazy import lazy
from cohort.core.text import counted, duration_text

__all__ = ["FileAccessError", "UserError", "check_allowed", "counted", "duration_text"]
__all__ += ["errors_at", "explain_errors", "lazy"]
