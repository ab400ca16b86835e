"""When an invoice is due."""

import datetime


def due(issued, days):
    """Return the day an invoice is due; a weekend moves it to Monday."""
    day = issued + datetime.timedelta(days=days)
    while day.weekday() >= 5:
        day += datetime.timedelta(days=1)
    return day


def days_late(due_on, paid_on):
    return max((paid_on - due_on).days, 0)
