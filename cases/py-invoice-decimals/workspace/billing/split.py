"""Sharing an amount so that nothing is lost."""

from billing.money import Money


def by_weights(amount, weights):
    """Return one share a weight. What does not come out even goes to the largest remainders, first come first."""
    if not weights or any(weight < 0 for weight in weights) or sum(weights) == 0:
        raise ValueError("weights must be positive")
    whole = sum(weights)
    shares = [amount.minor * weight // whole for weight in weights]
    left = amount.minor - sum(shares)
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(amount.minor * weights[i] % whole), i))
    for i in by_remainder[:left]:
        shares[i] += 1
    return [Money(share, amount.currency) for share in shares]


def evenly(amount, payers):
    return by_weights(amount, [1] * payers)
