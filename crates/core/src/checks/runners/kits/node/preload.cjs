// Written by CTO Harness beside a check: has each known test runner leave a start mark and its own report, and
// leaves everything else as it is. It is loaded into every node process by NODE_OPTIONS. A runner is known by the
// `bin` of its package, however it was started.
'use strict';
const fs = require('fs');
const path = require('path');

const PLACE = process.env.CTO_TEST_REPORTS;
// In the control: options a runner is freed of, and packages whose programs are passed over. There and on the
// baseline: no early stop, wherever it is asked for.
const ORDERS = { drop: [], passOver: [], goOn: false };
// `PID|ID|ROOT` of the runner around this process: what a test starts itself is no test of the project.
const RUNNING = 'CTO_TEST_RUNNING';

const KNOWN = {
  mocha: watchMocha,
  jest: watchJest,
  vitest: watchVitest,
  ava: watchAva,
  tap: watchTap,
  tape: watchTape,
};
// Packages whose program is that of another.
const SAME = { 'jest-cli': 'jest', '@tapjs/run': 'tap' };

function json(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

// The package whose `bin` this program is.
function programOf(file) {
  let real;
  try {
    real = fs.realpathSync(file);
  } catch {
    return undefined;
  }
  for (let dir = path.dirname(real); ; dir = path.dirname(dir)) {
    const pack = json(path.join(dir, 'package.json'));
    if (pack && typeof pack.name === 'string') {
      const bins = typeof pack.bin === 'string' ? [pack.bin] : Object.values(pack.bin || {});
      const is = bins.some((bin) => path.resolve(dir, bin) === real);
      return is ? { name: pack.name, version: String(pack.version), root: dir } : undefined;
    }
    if (dir === path.dirname(dir)) {
      return undefined;
    }
  }
}

function write(name, text) {
  try {
    fs.writeFileSync(path.join(PLACE, name + '.part'), text, { mode: 0o600 });
    fs.renameSync(path.join(PLACE, name + '.part'), path.join(PLACE, name));
  } catch {}
}

// Begins the mark of this process, or goes on with that of a launcher of the same package.
function begin(program, runner) {
  const [pid, id, root] = (process.env[RUNNING] || '').split('|');
  if (id !== undefined && !(Number(pid) === process.ppid && root === program.root)) {
    return undefined;
  }
  const own = id || process.pid + '-' + process.hrtime.bigint().toString(36);
  process.env[RUNNING] = [process.pid, own, program.root].join('|');
  if (id === undefined) {
    write(own + '.start', JSON.stringify({
      runner, version: program.version, argv: process.argv.slice(2), cwd: process.cwd(),
    }));
  }
  return own;
}

// In the control, options of the runner that would stop it early or select by name: `-g=` takes a value.
function dropOptions() {
  for (const row of ORDERS.drop) {
    const option = row.replace(/=$/, '');
    while (row.endsWith('=') ? take(option) !== undefined : takeSwitch(option));
  }
}

// Early stops of each runner, and the word that lifts those of its configuration; jest goes by the last.
const STOPS = {
  mocha: { switches: ['-b', '--bail'], lifted: '--no-bail' },
  jest: { lifted: '--bail=0' },
  vitest: { valued: ['--bail'], lifted: '--bail=0' },
  ava: { switches: ['--fail-fast'] },
  tap: { switches: ['-b', '--bail'] },
};

function goOn(runner) {
  const { switches = [], valued = [], lifted } = (ORDERS.goOn && STOPS[runner]) || {};
  switches.forEach((option) => { while (takeSwitch(option)); });
  valued.forEach((option) => { while (take(option) !== undefined); });
  if (lifted !== undefined) {
    addArguments(lifted);
  }
}

function takeSwitch(option) {
  const end = process.argv.indexOf('--', 2);
  const at = process.argv.indexOf(option, 2);
  return at >= 0 && (end < 0 || at < end) && process.argv.splice(at, 1).length > 0;
}

// Options go before the first `--`, behind all others: the last one counts.
function addArguments(...words) {
  const at = process.argv.indexOf('--', 2);
  process.argv.splice(at < 0 ? process.argv.length : at, 0, ...words);
}

// What this process writes to standard output, also into a file.
function copyOutput(file) {
  const out = fs.openSync(file, 'a', 0o600);
  const original = process.stdout.write;
  process.stdout.write = function (chunk, encoding, done) {
    try {
      const coded = typeof encoding === 'string' ? encoding : 'utf8';
      fs.writeSync(out, typeof chunk === 'string' ? Buffer.from(chunk, coded) : chunk);
    } catch {}
    return original.call(this, chunk, encoding, done);
  };
}

// Mocha has one reporter, the project's own; it gets a listener beside it that says what `json` says.
function watchMocha(id, program) {
  const Module = require('module');
  const homes = ['mocha.js', 'mocha.cjs'].map((name) => path.join(program.root, 'lib', name));
  const load = Module.prototype.load;
  Module.prototype.load = function (file) {
    const result = load.apply(this, arguments);
    if (homes.includes(file)) {
      listen(this.exports, id);
    }
    return result;
  };
}

function listen(Mocha, id) {
  const run = Mocha.prototype.run;
  Mocha.prototype.run = function () {
    const Reporter = this._reporter;
    if (typeof Reporter === 'function') {
      const both = function (runner, options) {
        hear(runner, id);
        return new Reporter(runner, options);
      };
      Object.setPrototypeOf(both, Reporter);
      both.prototype = Reporter.prototype;
      this._reporter = both;
    }
    return run.apply(this, arguments);
  };
}

function hear(runner, id) {
  const found = { tests: [], pending: [], failures: [], passes: [] };
  const clean = (test) => ({ title: String(test.title), fullTitle: test.fullTitle(), file: test.file });
  const on = (event, list) => runner.on(event, (test) => {
    try {
      list.push(clean(test));
    } catch {}
  });
  on('test end', found.tests);
  on('pass', found.passes);
  on('fail', found.failures);
  on('pending', found.pending);
  runner.once('end', () => {
    const stats = Object.fromEntries(Object.entries(found).map(([name, list]) => [name, list.length]));
    write(id + '.report', JSON.stringify({ stats, ...found }));
  });
}

function watchJest(id) {
  const own = path.join(PLACE, id + '.report');
  const asked = take('--outputFile');
  const printed = asked === undefined && (takeSwitch('--json') || takeSwitch('--json=true'));
  addArguments('--json', '--outputFile=' + own);
  process.on('exit', () => {
    try {
      if (asked !== undefined) {
        fs.copyFileSync(own, path.resolve(asked));
      } else if (printed) {
        print(fs.readFileSync(own));
      }
    } catch {}
  });
}

// To standard output, all of it: a pipe may be full for a while.
function print(bytes) {
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') {
        throw error;
      }
    }
  }
}

// Takes an option with its value out of the arguments.
function take(option) {
  for (let at = 2; at < process.argv.length && process.argv[at] !== '--'; at += 1) {
    const word = process.argv[at];
    if (word === option) {
      return process.argv.splice(at, 2)[1];
    }
    if (word.startsWith(option + '=')) {
      return process.argv.splice(at, 1)[0].slice(option.length + 1);
    }
  }
  return undefined;
}

function watchVitest(id, program) {
  const named = process.argv.some((word) => word === '--reporter' || word.startsWith('--reporter='));
  const own = path.join(PLACE, id + '.report');
  if (Number(program.version.split('.')[0]) >= 4) {
    globalThis[Symbol.for('cto.vitest')] = { own, root: program.root, named };
    addArguments('--reporter=' + path.join(__dirname, 'vitest-report.mjs'));
  } else {
    addArguments(...(named ? [] : ['--reporter=default']), '--reporter=json', '--outputFile.json=' + own);
  }
}

function watchAva(id) {
  addArguments('--tap');
  copyOutput(path.join(PLACE, id + '.report'));
}

function watchTap(id) {
  addArguments('--output-file=' + path.join(PLACE, id + '.report'));
}

function watchTape(id) {
  copyOutput(path.join(PLACE, id + '.report'));
}

// `node --test` says by its own options where it reports to, and they are read before anything of ours is loaded:
// it is started once more.
function watchNode() {
  const flags = process.execArgv;
  if (!flags.includes('--test') || process.env.NODE_TEST_CONTEXT) {
    return;
  }
  const id = begin({ name: 'node', version: process.version, root: process.execPath }, 'node');
  if (id === undefined || process.env.CTO_TEST_AGAIN === id) {
    return;
  }
  process.env.CTO_TEST_AGAIN = id;
  // Those of NODE_OPTIONS count too, and come first.
  const all = [...(process.env.NODE_OPTIONS || '').split(/\s+/), ...flags];
  const count = (option) => all.filter((word) => word === option || word.startsWith(option + '=')).length;
  const more = [];
  const [reporters, places] = [count('--test-reporter'), count('--test-reporter-destination')];
  if (reporters === 0) {
    const spec = process.stdout.isTTY || Number(process.versions.node.split('.')[0]) >= 23;
    more.push('--test-reporter=' + (spec ? 'spec' : 'tap'), '--test-reporter-destination=stdout');
  } else if (places === 0) {
    more.push('--test-reporter-destination=stdout');
  }
  more.push('--test-reporter=' + path.join(__dirname, 'node-events.mjs'));
  more.push('--test-reporter-destination=' + path.join(PLACE, id + '.report'));
  const { spawnSync } = require('child_process');
  const words = [...flags, ...more, ...process.argv.slice(1)];
  const again = spawnSync(process.execPath, words, { stdio: 'inherit', argv0: process.argv0 });
  if (again.signal) {
    process.kill(process.pid, again.signal);
  }
  process.exit(again.status === null ? 1 : again.status);
}

function main() {
  const { isMainThread } = require('worker_threads');
  if (!PLACE || !isMainThread) {
    return;
  }
  const file = process.argv[1];
  const program = file && programOf(file);
  const runner = program && (SAME[program.name] || program.name);
  const watch = program && Object.prototype.hasOwnProperty.call(KNOWN, runner) && KNOWN[runner];
  if (watch) {
    const id = begin(program, runner);
    if (id !== undefined) {
      dropOptions();
      goOn(runner);
      watch(id, program);
    }
  } else if (program && ORDERS.passOver.includes(program.name)) {
    process.exit(0);
  } else {
    watchNode();
  }
}

main();
