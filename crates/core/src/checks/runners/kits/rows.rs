//! Kinds of failing tests: every assertion a test is likely to use, on types it is likely to use it on.
//!
//! If one of them is silenced, its row is not red. `A` stands for node's `assert`, `$1` and `$2` for
//! two different words.

use crate::task::runner::Runner;

/// Bodies that need nothing but the runner, and node's `assert`.
const FUNCTIONS: &[&str] = &[
    "() => { throw new Error('$1'); }",
    "async () => { throw new Error('$1'); }",
    "() => Promise.reject(new Error('$1'))",
    "() => { A.ok(false); }",
    "() => { A.equal('$1', '$2'); }",
    "() => { A.strictEqual(1, 2); }",
    "() => { A.strictEqual('$1', '$2'); }",
    "() => { A.notStrictEqual('$1', '$1'); }",
    "() => { A.deepEqual({ $1: 1 }, { $1: 2 }); }",
    "() => { A.deepStrictEqual(['$1'], ['$2']); }",
    "() => { A.throws(() => {}); }",
    "() => { A.fail('$1'); }",
    "() => { A.match('$1', /$2/); }",
    "() => A.rejects(Promise.resolve(1))",
    "() => { A.doesNotThrow(() => { throw new Error('$1'); }); }",
    "() => { A.notDeepStrictEqual(['$1'], ['$1']); }",
];
const CALLBACKS: &[&str] = &["(done) => { done(new Error('$1')); }"];
const NODE_ONLY: &[&str] = &[
    "(t, done) => { done(new Error('$1')); }",
    "async (t) => { await t.test('$1', () => { throw new Error('$2'); }); }",
];
const EXPECT: &[&str] = &[
    "() => { E(1).toBe(2); }",
    "() => { E('$1').toBe('$2'); }",
    "() => { E(['$1']).toEqual(['$2']); }",
    "() => { E({ $1: 1 }).toEqual({ $1: 2 }); }",
    "() => { E({ $1: 1 }).toStrictEqual({ $1: 2 }); }",
    "() => { E('$1').not.toBe('$1'); }",
    "() => { E(0).toBeTruthy(); }",
    "() => { E(1).toBeNull(); }",
    "() => { E(1).toBeUndefined(); }",
    "() => { E(['$1']).toContain('$2'); }",
    "() => { E('$1').toMatch('$2'); }",
    "() => { E(1).toBeGreaterThan(2); }",
    "() => { E(1).toBeLessThan(0); }",
    "() => { E(1).toBeCloseTo(2); }",
    "() => { E(['$1']).toHaveLength(2); }",
    "() => { E({ $1: 1 }).toMatchObject({ $1: 2 }); }",
    "() => { E({ $1: 1 }).toHaveProperty('$2'); }",
    "() => { E({}).toBeInstanceOf(Error); }",
    "() => { E(undefined).toBeDefined(); }",
    "() => { E('$1').toBeFalsy(); }",
    "() => { E(() => {}).toHaveBeenCalled(); }",
    "() => { E(() => {}).toThrow(); }",
    "() => E(Promise.resolve(1)).rejects.toThrow()",
    "() => E(Promise.resolve(1)).resolves.toBe(2)",
];
const AVA: &[&str] = &[
    "t => { t.is(1, 2); }",
    "t => { t.is('$1', '$2'); }",
    "t => { t.not('$1', '$1'); }",
    "t => { t.deepEqual(['$1'], ['$2']); }",
    "t => { t.deepEqual({ $1: 1 }, { $1: 2 }); }",
    "t => { t.true(false); }",
    "t => { t.false(true); }",
    "t => { t.truthy(0); }",
    "t => { t.falsy(1); }",
    "t => { t.regex('$1', /$2/); }",
    "t => { t.throws(() => {}); }",
    "t => { t.fail(); }",
    "() => { throw new Error('$1'); }",
    "async () => { throw new Error('$1'); }",
];
const TAP: &[&str] = &[
    "t => { t.equal(1, 2); t.end(); }",
    "t => { t.equal('$1', '$2'); t.end(); }",
    "t => { t.same(['$1'], ['$2']); t.end(); }",
    "t => { t.ok(false); t.end(); }",
    "t => { t.notOk(true); t.end(); }",
    "t => { t.match('$1', /$2/); t.end(); }",
    "t => { t.throws(() => {}); t.end(); }",
    "t => { t.fail('$1'); t.end(); }",
    "async () => { throw new Error('$1'); }",
];
const TAPE: &[&str] = &[
    "t => { t.equal(1, 2); t.end(); }",
    "t => { t.equal('$1', '$2'); t.end(); }",
    "t => { t.deepEqual(['$1'], ['$2']); t.end(); }",
    "t => { t.ok(false); t.end(); }",
    "t => { t.notOk(true); t.end(); }",
    "t => { t.throws(() => {}); t.end(); }",
    "t => { t.fail('$1'); t.end(); }",
    "t => { t.error(new Error('$1')); t.end(); }",
];
/// Bodies of functions that get `t *testing.T`.
const GO: &[&str] = &[
    "t.Error(\"$1\")",
    "t.Errorf(\"%s\", \"$1\")",
    "t.Fatal(\"$1\")",
    "t.Fatalf(\"%s\", \"$1\")",
    "t.Fail()",
    "t.FailNow()",
    "t.Run(\"$1\", func(t *testing.T) { t.Error(\"$2\") })",
    "defer t.Fail()",
    "t.Cleanup(t.Fail)",
];
/// Kinds of failing tests a runner gets.
pub(super) fn rows(runner: Runner) -> Vec<&'static str> {
    let lists: &[&[&str]] = match runner {
        Runner::Mocha => &[FUNCTIONS, CALLBACKS],
        Runner::Jest => &[FUNCTIONS, CALLBACKS, EXPECT],
        Runner::Vitest => &[FUNCTIONS, EXPECT],
        Runner::Node => &[FUNCTIONS, NODE_ONLY],
        Runner::Ava => &[AVA],
        Runner::Tap => &[TAP],
        Runner::Tape => &[TAPE],
        Runner::Go => &[GO],
        Runner::Unittest | Runner::Pytest | Runner::Cargo => &[],
    };
    lists.iter().flat_map(|list| list.iter().copied()).collect()
}
