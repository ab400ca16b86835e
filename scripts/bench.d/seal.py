"""Seals many reports with one key, fast enough for a hundred thousand: Ed25519 (RFC 8032) with a table of multiples of the
base point. Standard library only; for measuring, not for secrets."""

import base64
import hashlib
import json

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    """Sum of two points in extended coordinates."""
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def base():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = P - x if x & 1 else x
    return x, y, 1, x * y % P


def table():
    """Row i holds 0 to 255 times 256**i times the base point."""
    rows, point = [], base()
    for _ in range(32):
        row = [(0, 1, 1, 0)]
        for _ in range(256):
            row.append(add(row[-1], point))
        rows.append(row[:256])
        point = row[256]
    return rows


class Key:
    """The private key of a state home."""

    def __init__(self, home):
        lines = (home / "keys" / "machine.pem").read_text().splitlines()
        seed = base64.b64decode("".join(line for line in lines if not line.startswith("-")))[-32:]
        self.table = table()
        digest = hashlib.sha512(seed).digest()
        self.scalar = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254)
        self.prefix, self.public = digest[32:], self.times(self.scalar)

    def times(self, scalar):
        out = (0, 1, 1, 0)
        for row, byte in zip(self.table, scalar.to_bytes(32, "little")):
            if byte:
                out = add(out, row[byte])
        inverse = pow(out[2], P - 2, P)
        x, y = out[0] * inverse % P, out[1] * inverse % P
        return (y | (x & 1) << 255).to_bytes(32, "little")

    def sign(self, message):
        number = lambda *parts: int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % L
        r = number(self.prefix, message)
        point = self.times(r)
        s = (r + number(point, self.public, message) * self.scalar) % L
        return point + s.to_bytes(32, "little")


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


class Sealer:
    """Makes `attestation.json` for reports that are like one that was sealed in this state home."""

    def __init__(self, home, like):
        self.key = Key(home)
        envelope = json.loads((like / "attestation.json").read_text())
        self.kind, self.keyid = envelope["payloadType"], envelope["signatures"][0]["keyid"]
        self.statement = json.loads(base64.b64decode(envelope["payload"]))

    def seal(self, report, fields):
        """`fields` are those of the statement in which the report differs from the one it is like."""
        digest = hashlib.sha256(report).hexdigest()
        subject = [{"name": "report.json", "digest": {"sha256": digest}}]
        predicate = {**self.statement["predicate"], **fields}
        payload = compact({**self.statement, "subject": subject, "predicate": predicate})
        message = b"DSSEv1 %d %s %d %s" % (len(self.kind), self.kind.encode(), len(payload), payload)
        text = lambda data: base64.b64encode(data).decode()
        signature = {"keyid": self.keyid, "sig": text(self.key.sign(message))}
        return compact({"payload": text(payload), "payloadType": self.kind, "signatures": [signature]})
