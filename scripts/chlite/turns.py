"""Variants by turns in rounds, and what is reckoned from the rounds."""
import statistics


def rotated(items, by):
    """Every round begins with another one, so that nobody is always first."""
    if not items:
        return []
    first = by % len(items)
    return items[first:] + items[:first]


def middle(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def ratio_of_rounds(values, references):
    """The median of the ratios of the same round: what the machine did meanwhile is in both."""
    return statistics.median(value / reference for value, reference in zip(values, references))
