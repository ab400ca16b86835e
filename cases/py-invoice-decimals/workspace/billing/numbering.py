"""Invoice numbers: a year, a running number, and a digit that catches typing errors."""


def check_digit(digits):
    """Return the Luhn digit of a string of digits."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def number(year, running):
    digits = f"{year:04d}{running:05d}"
    return f"{year:04d}-{running:05d}-{check_digit(digits)}"


def is_valid(text):
    year, _, rest = text.partition("-")
    running, _, digit = rest.partition("-")
    return (year + running).isdigit() and len(year) == 4 and len(running) == 5 and digit == check_digit(year + running)
