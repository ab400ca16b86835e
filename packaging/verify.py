#!/usr/bin/env python3
"""Checks a CTO Harness bundle with nothing but Python 3 and this file.

    python3 verify.py --key PUBLIC_KEY [--signers FILE] BUNDLE        a directory, a .tar, or a .tar.zst

It answers one question: are these the very files that the holder of PUBLIC_KEY signed?

    GOOD      exit 0   every file is there, none is added or changed, and the signature is that key's
    BAD       exit 1   something is missing, added, changed, or signed by another key
    UNKNOWN   exit 3   whole, but no key was given: it says which key signed
              exit 2   wrong arguments, or a file this Python cannot read

PUBLIC_KEY is what `cto keys show --public` prints (PEM), or an `ssh-ed25519` line. Get it from someone you
trust, not together with the bundle. What this script does not do is judge the run again from its
events; `cto verify` does.

--signers FILE names who may approve, in the form of OpenSSH's allowed_signers. A bundle that relies on an approval is
then GOOD only if one of them signed it (`ssh-keygen` checks that), for this very contract and request, and it was used
before it ended. Without --signers an approval is told and not checked.

Formats: docs/bundle-format.md, DSSE v1, in-toto Statement v1, Ed25519 (RFC 8032), tar (ustar).
"""

import base64
import hashlib
import io
import json
import os
import re
import stat
import subprocess
import sys
import tempfile

SUMS, ATTESTATION, REPORT, LOCK = "SHA256SUMS", "attestation.json", "report.json", "run.lock"
EVENTS, APPROVAL, OUTCOME = "events.normalized.jsonl", "approval@cto-harness", "outcome@cto-harness"
CONTRACT, INSTRUCTIONS, REVERIFY = "contract.json", "instructions.md", "reverify"
COMPANIONS = {
    "attestations/provenance.json": "https://slsa.dev/provenance/v1",
    "attestations/test-result.json": "https://in-toto.io/attestation/test-result/v0.1",
}
ALWAYS = [REPORT, "report.md", "contract.json", "gates.json", "eligibility.json", "events.normalized.jsonl", "trace.jsonl",
          "containment.json", "patch.diff", "test.log", SUMS, ATTESTATION, *COMPANIONS]
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
VERDICT_TYPE = "urn:cto-harness:verdict:v1"
RUN_ID = re.compile(r"\d{8}T\d{6}Z-[a-z0-9](?:-?[a-z0-9])*-[a-z0-9]{4,32}", re.ASCII)
SPKI = bytes.fromhex("302a300506032b6570032100")  # DER of an Ed25519 public key, up to its 32 bytes
MAX_DOCUMENT, MAX_FILES, MAX_BYTES = 64 << 20, 10_000, 16 << 30


class Bad(Exception):
    """The bundle is not what it says it is."""


class Unreadable(Exception):
    """Not this script's to read."""


# ---- Ed25519, RFC 8032 -------------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(a, b):
    """Sum of two points in extended coordinates."""
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, point):
    out = (0, 1, 1, 0)
    while n:
        if n & 1:
            out = add(out, point)
        point, n = add(point, point), n >> 1
    return out


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def point(data):
    """A point from its 32 bytes, or None. One spelling only, and none of the eight weak points."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    found = (x, y, 1, x * y % P)
    return None if same(times(8, found), (0, 1, 1, 0)) else found


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signed(public, message, signature):
    """Is this the signature of that key over these bytes?"""
    if len(signature) != 64 or len(public) != 32:
        return False
    key, r, s = point(public), point(signature[:32]), int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    return same(times(s, BASE), add(r, times(k, key)))


def key_id(public):
    return hashlib.sha256(SPKI + public).hexdigest()


def read_key(path):
    """The 32 bytes of a public key in PEM or OpenSSH form."""
    with open(path, encoding="ascii") as file:
        text = file.read().strip()
    if text.startswith("ssh-ed25519 "):
        wire = base64.b64decode(text.split()[1], validate=True)
        head = b"\0\0\0\x0bssh-ed25519\0\0\0\x20"
        if wire.startswith(head) and len(wire) == len(head) + 32:
            return wire[len(head):]
    body = re.fullmatch(r"-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----", text)
    if body:
        der = base64.b64decode("".join(body[1].split()), validate=True)
        if der.startswith(SPKI) and len(der) == 44:
            return der[12:]
    raise ValueError("not an Ed25519 public key in PEM or OpenSSH form")


# ---- strict JSON ---------------------------------------------------------------------------------


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key comes twice")
    return dict(pairs)


def no_float(text):
    raise ValueError(f"{text[:20]} is not an integer")


def integer(text):
    if len(text) > 17 or abs(int(text)) > 2**53:
        raise ValueError("an integer is above 2^53")
    return int(text)


def read_json(name, data):
    """One reading only: no duplicate keys, no floats, no huge numbers, no byte order mark, UTF-8."""
    try:
        if data.startswith(b"\xef\xbb\xbf"):
            raise ValueError("it begins with a byte order mark")
        return json.loads(data.decode("utf-8"), object_pairs_hook=no_duplicates, parse_float=no_float, parse_int=integer,
                          parse_constant=no_float)
    except (ValueError, RecursionError) as error:
        raise Bad(f"{name}: is not acceptable JSON: {error}") from None


def canonical(value):
    """RFC 8785 for documents without floats: sorted keys, no space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


# ---- the files -----------------------------------------------------------------------------------


def is_safe(name):
    """Relative, no `.`, `..`, empty parts, backslashes or control characters."""
    parts = all(part not in ("", ".", "..") for part in name.split("/"))
    return parts and len(name.encode()) <= 255 and "\\" not in name and not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name)


class Files:
    """Digests of all files, and the bytes of the few that are read."""

    def __init__(self):
        self.digests, self.bytes, self.run, self.listed = {}, {}, None, {}

    def expect(self, name):
        """Refuses a file that nothing lists before a byte of it is read. The list itself comes first."""
        if name != SUMS and name != ATTESTATION and name not in COMPANIONS and name not in self.listed:
            raise Bad(f"{name}: is not listed in {SUMS}")

    def take(self, name, length, source):
        kept = (SUMS, ATTESTATION, REPORT, EVENTS, CONTRACT)
        keep = name in kept or name in COMPANIONS or name.startswith(("relied/approval-", "relied/outcome.json"))
        if keep and length > MAX_DOCUMENT:
            raise Bad(f"{name}: is too large")
        hasher, parts = hashlib.sha256(), []
        while length:
            chunk = source.read(min(length, 1 << 20))
            if not chunk:
                raise Bad(f"{name}: ends too early")
            length -= len(chunk)
            hasher.update(chunk)
            if keep:
                parts.append(chunk)
        self.digests[name] = hasher.hexdigest()
        if keep:
            self.bytes[name] = b"".join(parts)
        if name == SUMS:
            self.listed = read_sums(self.bytes[SUMS])


def from_directory(root):
    """Names first, then the list of files, then the bytes of what it names: nothing else is opened."""
    files, found = Files(), []
    name = os.path.basename(os.path.abspath(root))
    files.run = name if RUN_ID.fullmatch(name) else None
    for folder, below, names in os.walk(os.fsencode(root), onerror=raise_error):
        for entry in [*names, *below]:
            path = os.path.join(folder, entry)
            kind = os.lstat(path).st_mode
            try:
                relative = os.path.relpath(path, os.fsencode(root)).decode("utf-8")
            except UnicodeDecodeError:
                raise Bad(f"{path!r}: has a name that is not UTF-8") from None
            if stat.S_ISDIR(kind):
                continue
            if not stat.S_ISREG(kind):
                raise Bad(f"{relative!r}: is not a regular file")
            if relative != LOCK:
                found.append((relative != SUMS, relative, path))
    for _, relative, path in sorted(found):
        files.expect(relative)
        with open(path, "rb") as source:
            files.take(relative, os.fstat(source.fileno()).st_size, source)
    return files


def raise_error(error):
    raise error


def header(run, name, length):
    """The one tar header of a file in a packed bundle."""
    block = bytearray(512)
    for at, field in ((0, name.encode()), (100, b"0000644\0"), (108, b"0000000\0"), (116, b"0000000\0"),
                      (124, b"%011o\0" % length), (136, b"00000000000\0"), (148, b"        "), (156, b"0"),
                      (257, b"ustar\x0000"), (329, b"0000000\0"), (337, b"0000000\0"), (345, run.encode())):
        block[at:at + len(field)] = field
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def from_archive(source):
    """A tar of one shape: regular files `<run id>/<name>` in order of names. Everything else is refused."""
    files, last, total = Files(), "", 0
    while True:
        block = read_block(source)
        if not any(block):
            break
        try:
            name, run = (block[at:end].split(b"\0")[0].decode("utf-8") for at, end in ((0, 100), (345, 500)))
            length = int(block[124:135], 8)
        except ValueError:
            raise Bad("the archive has an entry that cannot be in a packed bundle") from None
        if not is_safe(name) or name == LOCK or not RUN_ID.fullmatch(run) or length < 0 or header(run, name, length) != block:
            raise Bad(f"the archive has an entry that cannot be in a packed bundle: {run!r} {name!r}")
        total += length
        if files.run not in (None, run) or name.encode() <= last.encode() or len(files.digests) >= MAX_FILES or total > MAX_BYTES:
            raise Bad(f"the archive has an entry twice, out of order, of another run, or too many: {name!r}")
        files.run, last = run, name
        files.expect(name)
        files.take(name, length, source)
        if any(source.read(-length % 512)):
            raise Bad("the archive has bytes between its entries")
    if any(read_block(source)) or source.read(1) or files.run is None:
        raise Bad("the archive does not end where it should")
    return files


def read_block(source):
    block = b""
    while len(block) < 512:
        more = source.read(512 - len(block))
        if not more:
            raise Bad("the archive ends too early")
        block += more
    return block


def open_archive(path):
    source = open(path, "rb")
    if source.read(4) != b"\x28\xb5\x2f\xfd":
        source.seek(0)
        return source
    source.seek(0)
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        raise Unreadable("this Python cannot read Zstandard; `zstd -d FILE.tar.zst`, then give FILE.tar") from None
    return io.BufferedReader(zstd.ZstdFile(source))


# ---- the checks ----------------------------------------------------------------------------------


def read_sums(data):
    """The files SHA256SUMS lists, each with its digest, in the one spelling there is."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Bad(f"{SUMS}: is not UTF-8") from None
    listed = {}
    for number, line in enumerate(text.split("\n")[:-1], 1):
        match = re.fullmatch(r"([0-9a-f]{64})  ([^\n]+)", line)
        if not match or not is_safe(match[2]) or (listed and match[2].encode() <= list(listed)[-1].encode()):
            raise Bad(f"{SUMS}: line {number} is not a digest and a name, in order")
        listed[match[2]] = match[1]
    if not text.endswith("\n"):
        raise Bad(f"{SUMS}: the last line has no end")
    return listed


def check_sums(files):
    """SHA256SUMS lists exactly the files, each with its digest."""
    for name in ALWAYS:
        if name not in files.digests:
            raise Bad(f"{name}: is missing")
    listed = files.listed
    found = {name: digest for name, digest in files.digests.items() if name not in (SUMS, ATTESTATION) and not name.startswith("attestations/")}
    for name in sorted(listed.keys() | found.keys()):
        if name not in found:
            raise Bad(f"{name}: is listed but missing")
        if name not in listed:
            raise Bad(f"{name}: is not listed")
        if listed[name] != found[name]:
            raise Bad(f"{name}: does not have the digest it is listed with")
    return listed


def open_envelope(files, name):
    """Payload, key id, signed bytes and signature of an envelope in its one spelling."""
    envelope = read_json(name, files.bytes[name])
    try:
        (one,) = envelope["signatures"]
        payload, kind, signature, keyid = envelope["payload"], envelope["payloadType"], one["sig"], one["keyid"]
        rebuilt = {"payload": payload, "payloadType": kind, "signatures": [{"keyid": keyid, "sig": signature}]}
        payload, signature = (base64.b64decode(text, validate=True) for text in (payload, signature))
        again = {**rebuilt, "payload": base64.b64encode(payload).decode(),
                 "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}]}
    except (KeyError, TypeError, ValueError):
        raise Bad(f"{name}: is not an envelope with one signature") from None
    if kind != PAYLOAD_TYPE:
        raise Bad(f"{name}: the payload type is not {PAYLOAD_TYPE}")
    if canonical(again) != files.bytes[name]:
        raise Bad(f"{name}: is not in canonical form")
    message = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
    return payload, keyid, message, signature


def check_envelope(files, name, public, predicate_type):
    payload, keyid, message, signature = open_envelope(files, name)
    if public is None:  # The key the statement itself names: enough to see that it is whole, not whose it is.
        try:
            public = base64.b64decode(read_json(name, payload)["predicate"]["signer"]["public_key"], validate=True)
        except (KeyError, TypeError, ValueError):
            raise Bad(f"{name}: names no key") from None
    if keyid != key_id(public) or not signed(public, message, signature):
        raise Bad(f"{name}: is not signed by key {key_id(public)[:12]}")
    statement = read_json(name, payload)
    if not isinstance(statement, dict) or statement.get("_type") != STATEMENT_TYPE or statement.get("predicateType") != predicate_type:
        raise Bad(f"{name}: is not an in-toto statement of the kind it must be ({predicate_type})")
    return statement, public


def git_subjects(report):
    result = report.get("result") or {}
    pairs = (("result.tree", "gitTree", result.get("tree")), ("result.commit", "gitCommit", result.get("commit")))
    return [{"name": name, "digest": {kind: value}} for name, kind, value in pairs if value is not None]


def file_subject(name, digest):
    return {"name": name, "digest": {"sha256": digest}}


def check(files, public):
    """All of it. Returns the signed predicate and the key that signed it."""
    listed = check_sums(files)
    report = read_json(REPORT, files.bytes[REPORT])
    statement, public = check_envelope(files, ATTESTATION, public, VERDICT_TYPE)
    predicate = statement.get("predicate")
    if not isinstance(report, dict) or not isinstance(predicate, dict):
        raise Bad(f"{ATTESTATION}: the predicate or the report is not an object")
    artifacts = sorted({**listed, SUMS: files.digests[SUMS]}.items(), key=lambda pair: pair[0].encode())
    if statement.get("subject") != [file_subject(*pair) for pair in artifacts] + git_subjects(report):
        raise Bad(f"{ATTESTATION}: was signed for other files than these")
    if predicate.get("sums_sha256") != files.digests[SUMS]:
        raise Bad(f"{ATTESTATION}: was signed for another {SUMS}")
    for field in ("run_id", "status", "kind", "origin", "case_id", "stage", "contract_digest", "task_digest", "events", "result",
                  "relies_on", "continues", "reverifies", "run_started_at", "run_finished_at", "runtime_default_activation", "core_promotion_status"):
        if predicate.get(field) != report.get(field):
            raise Bad(f"{ATTESTATION}: {field} was signed with another value than the report has")
    blockers = [blocker.get("code") for blocker in report.get("blockers", [])]
    if (predicate.get("bundle_format"), predicate.get("engine"), predicate.get("blockers")) != (1, report.get("backend"), blockers) or report.get("schema_version") != 1:
        raise Bad(f"{ATTESTATION}: format, engine or blockers are not those of the report")
    if files.run is not None and files.run != report.get("run_id"):
        raise Bad(f"{REPORT}: lies under the name of another run")
    if report.get("runtime_default_activation") is not False or report.get("core_promotion_status") != "not-promoted":
        raise Bad(f"{REPORT}: claims an activation or promotion")
    bound = {name: files.digests[name] for name in files.digests if name.startswith("attestations/")}
    if predicate.get("companions") != bound or set(bound) != set(COMPANIONS):
        raise Bad("attestations/: holds something else than what was signed")
    change = [file_subject("patch.diff", listed["patch.diff"])] + git_subjects(report)
    for name, kind in COMPANIONS.items():
        if check_envelope(files, name, public, kind)[0].get("subject") != change:
            raise Bad(f"{name}: was signed for another change")
    check_report(files, report, listed)
    return predicate, public


def check_report(files, report, listed):
    """The report's own digests: of every other file plain, of itself without that one entry."""
    digests = report.get("artifact_digests")
    if not isinstance(digests, dict):
        raise Bad(f"{REPORT}: has no digests")
    own = digests.pop(REPORT, None)
    if hashlib.sha256(canonical(report)).hexdigest() != own or digests != {n: d for n, d in listed.items() if n != REPORT}:
        raise Bad(f"{REPORT}: its digests are not those of the files")
    if report.get("contract_digest") != listed[CONTRACT]:
        raise Bad(f"{CONTRACT}: the report names another contract")
    check_instructions(files, report, read_json(CONTRACT, files.bytes[CONTRACT]))


def check_instructions(files, report, contract):
    """What the engine was told beside its task: the bytes that the contract names, and none where it names none. Where none
    was started nobody was told anything."""
    contract = contract if isinstance(contract, dict) else {}
    named, found = contract.get("instructions_sha256"), files.digests.get(INSTRUCTIONS)
    if named == found:
        return
    if named is None:
        raise Bad(f"{INSTRUCTIONS}: is there although the contract names none")
    if found is not None:
        raise Bad(f"{INSTRUCTIONS}: is not what the contract names")
    # A patch judged again: nobody was told anything, and the bundle of the run before holds the bytes.
    lane = contract.get("lane")
    again = isinstance(lane, dict) and lane.get("engine") == REVERIFY
    lines = [read_json(EVENTS, line) for line in files.bytes[EVENTS].splitlines()]
    started = any(not isinstance(line, dict) or line.get("type") == "engine.started" for line in lines)
    if (started or report.get("kind") == "settlement") and not again:
        raise Bad(f"{INSTRUCTIONS}: is missing although the contract names it")


def check_approvals(files, report, signers):
    """Who approved it, by name. OpenSSH checks the signature; what was signed is compared here."""
    found = []
    for reliance in report.get("relies_on", []):
        if reliance.get("kind") != "approval":
            continue
        record = f"relied/approval-{reliance['id']}.json"
        request, signature = f"relied/request-{reliance['id']}.json", record + ".sig"
        if record not in files.bytes or signature not in files.bytes or request not in files.digests:
            raise Bad(f"{record}: the approval, its request or its signature is missing")
        said = read_json(record, files.bytes[record])
        if canonical(said) != files.bytes[record] or files.digests[record] != reliance.get("sha256"):
            raise Bad(f"{record}: is not the approval that was relied on")
        if said.get("approval_granted") is not True or said.get("contract_digest") != report.get("contract_digest"):
            raise Bad(f"{record}: does not approve this contract")
        if said.get("request_id") != reliance["id"]:
            raise Bad(f"{record}: answers another request than the one it is named after")
        if said.get("request_sha256") != files.digests[request]:
            raise Bad(f"{record}: answers another request")
        lines = [json.loads(line) for line in files.bytes[EVENTS].splitlines()]
        used = [line["data"]["timestamp"] for line in lines if line.get("type") == "approval.granted"]
        if len(used) != 1 or not said["timestamp"] <= used[0] < said["expiry"]:
            raise Bad(f"{record}: did not count when it was used")
        if signers is not None and not ssh_signed(signers, said["actor"], files.bytes[record], files.bytes[signature], APPROVAL):
            raise Bad(f"{record}: was not signed by {said['actor']!r}, or they may not approve")
        found.append(said["actor"])
    return found


def check_outcome(files, report, signers):
    """What the operator said of the run that is settled, and who. None where nothing is settled."""
    record, signature = "relied/outcome.json", "relied/outcome.json.sig"
    settles = report.get("kind") == "settlement"
    if settles and record not in files.bytes and report.get("status") == "blocked":
        return None  # Cut short before anything was said.
    if settles != (record in files.bytes) or settles != (signature in files.bytes) or settles != isinstance(report.get("continues"), dict):
        raise Bad(f"{record}: a settlement has a signed outcome and the run it goes on from, and nothing else has")
    if not settles:
        return None
    said = read_json(record, files.bytes[record])
    if canonical(said) != files.bytes[record]:
        raise Bad(f"{record}: is not written as it was signed")
    run = {"run_id": said.get("run_id"), "sums_sha256": said.get("sums_sha256")}
    if run != report["continues"] or said.get("contract_digest") != report.get("contract_digest"):
        raise Bad(f"{record}: was said of another run or contract")
    first = json.loads(files.bytes[EVENTS].splitlines()[0])
    told, data = report.get("settlement"), first.get("data", {})
    fits = first.get("type") == "operator.outcome.recorded" and data.get("record_sha256") == files.digests[record]
    words = (said.get("outcome"), said.get("actor"), said.get("given") == "ahead", said.get("land"))
    for other in (data, told if isinstance(told, dict) else {}):
        fits = fits and words == (other.get("outcome"), other.get("actor"), other.get("given_ahead"), other.get("land"))
    accepted = said.get("outcome") == "accepted"
    landed = isinstance(told, dict) and (told.get("landing") or {}).get("step") == "landed"
    if not fits or said.get("outcome") not in ("accepted", "rejected") or (report.get("status") == "pass" and not (accepted and landed)):
        raise Bad(f"{record}: is not the outcome that the settlement tells of")
    if signers is not None and not ssh_signed(signers, said["actor"], files.bytes[record], files.bytes[signature], OUTCOME):
        raise Bad(f"{record}: was not signed by {said['actor']!r}, or they may not say what becomes of a result")
    return said


def ssh_signed(signers, actor, record, signature, namespace):
    if not isinstance(actor, str) or not re.fullmatch(r"[A-Za-z0-9._@+-]+", actor) or actor.startswith("-"):
        return False
    with tempfile.NamedTemporaryFile() as file:
        file.write(signature)
        file.flush()
        words = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", actor, "-n", namespace, "-s", file.name]
        return subprocess.run(words, input=record, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def printable(text):
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def main(arguments):
    key = None
    if len(arguments) >= 2 and arguments[0] == "--key":
        try:
            key = read_key(arguments[1])
        except (OSError, ValueError) as error:
            print(f"verify.py: {printable(arguments[1])}: {printable(error)}", file=sys.stderr)
            return 2
        arguments = arguments[2:]
    signers = None
    if len(arguments) >= 2 and arguments[0] == "--signers":
        signers, arguments = arguments[1], arguments[2:]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: verify.py [--key PUBLIC_KEY] [--signers FILE] BUNDLE", file=sys.stderr)
        return 2
    place = arguments[0]
    try:
        files = from_directory(place) if os.path.isdir(place) else from_archive(open_archive(place))
        predicate, signer = check(files, key)
        report = read_json(REPORT, files.bytes[REPORT])
        approvers = check_approvals(files, report, signers)
        outcome = check_outcome(files, report, signers)
    except Bad as error:
        print(f"BAD  {printable(place)}\n  {printable(error)}")
        return 1
    except Unreadable as error:
        print(f"verify.py: {printable(place)}: {error}", file=sys.stderr)
        return 2
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError) as error:
        print(f"BAD  {printable(place)}\n  cannot be read: {printable(error)}")
        return 1
    name, status = printable(predicate["run_id"]), printable(predicate["status"])
    if key is None:
        print(f"UNKNOWN  {name}  {status}\n  whole, and signed by key {key_id(signer)}\n  no key was given (--key): anyone can sign with a key of their own")
        return 3
    print(f"GOOD  {name}  {status}\n  {len(files.digests)} files, all as signed by key {key_id(signer)}")
    for approver in approvers:
        checked = "and signed it" if signers is not None else "by its own word: --signers was not given"
        print(f"  {printable(approver)} approved it, {checked}")
    if outcome is not None:
        checked = "and signed it" if signers is not None else "by their own word: --signers was not given"
        print(f"  {printable(outcome['actor'])} {printable(outcome['outcome'])} the result of {printable(outcome['run_id'])}, {checked}")
    print("  The signature proves who vouches for these files: what they say is as good as that machine, its user and its root.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
