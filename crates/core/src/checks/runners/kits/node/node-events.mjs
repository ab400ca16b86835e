// Written by CTO Harness beside a check: the outcomes of `node --test`, one JSON value a line, the last of them `end`.
const said = (value) => value !== undefined && value !== false;

export default async function* (source) {
  const around = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      around[data.nesting] = data.name;
    } else if (type === 'test:pass' || type === 'test:fail') {
      const { name, nesting, skip, todo, details } = data;
      const ran = type === 'test:pass' ? 'passed' : 'failed';
      const outcome = said(skip) || said(todo) ? 'skipped' : ran;
      const names = [...around.slice(0, nesting), name];
      yield JSON.stringify({ file: data.file, names, kind: details?.type, outcome }) + '\n';
    }
  }
  yield '{"end":true}\n';
}
