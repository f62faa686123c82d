"""Numbers and durations in sentences."""


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 run`, `2,661 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """A duration as text for people: `7 s`, `5 min 07 s`, `1 h 05 min` or `2,160 h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 100:  # minutes are no longer of interest
        return f"{round(seconds / 3600):,} h"
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
