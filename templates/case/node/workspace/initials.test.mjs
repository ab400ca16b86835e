import assert from "node:assert";
import test from "node:test";

import { initials } from "./initials.mjs";

test("first letters", () => assert.strictEqual(initials("grace hopper"), "GH"));
test("upper case stays", () => assert.strictEqual(initials("Alan Mathison Turing"), "AMT"));
test("no name", () => assert.strictEqual(initials("  "), ""));
