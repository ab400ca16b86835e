// Written by CTO Harness beside a check: a reporter of vitest that says what its own `json` says, in a file beside
// the output. Reporters of the configuration count only where the command names none: then they are made here.
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { own, root, named } = globalThis[Symbol.for('cto.vitest')];
const { JsonReporter, ReportersMap } = await import(pathToFileURL(path.join(root, 'dist', 'node.js')).href);

async function made(entry, ctx) {
  if (typeof entry === 'object' && !Array.isArray(entry)) {
    return entry;
  }
  const [name, options] = [entry].flat();
  if (name in ReportersMap) {
    return new ReportersMap[name](options || {});
  }
  const file = name === 'html' ? '@vitest/ui/reporter' : name;
  const { default: Reporter } = await ctx.runner.import(file);
  return new Reporter(options || {});
}

export default class extends JsonReporter {
  constructor() {
    super({ outputFile: own });
  }

  async onInit(ctx) {
    await super.onInit(ctx);
    if (named) {
      return;
    }
    const asked = ctx.vite.config.test?.reporters ?? [];
    const list = (Array.isArray(asked) ? asked : [asked]).filter(Boolean);
    for (const entry of list.length > 0 ? list : ['default']) {
      const reporter = await made(entry, ctx);
      ctx.reporters.push(reporter);
      await reporter.onInit?.(ctx);
    }
  }
}
