// Names the engine has not seen, compared here and computed elsewhere: the code under test runs in a process
// of its own for each name, in a directory that holds nothing else. This file is gone before it starts.
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const CASES = [
  ["ada lovelace", "AL"],
  ["  Edsger   W. Dijkstra ", "EWD"],
  ["plato", "P"],
  ["", ""],
];
const ASK = `
import { initials } from "./initials.mjs";
process.stdout.write(JSON.stringify(initials(process.argv[2])));
`;

fs.rmSync(__filename);
const place = fs.mkdtempSync(path.join(os.tmpdir(), "check-"));
fs.copyFileSync("initials.mjs", path.join(place, "initials.mjs"));
fs.writeFileSync(path.join(place, "ask.mjs"), ASK);
let wrong = 0;
for (const [name, want] of CASES) {
  const asked = spawnSync(process.execPath, ["ask.mjs", name], { cwd: place, encoding: "utf8", timeout: 30000 });
  if (asked.status !== 0 || asked.stdout !== JSON.stringify(want)) {
    wrong += 1;
    console.log(`initials(${JSON.stringify(name)}): wanted ${want}, got ${asked.stdout || asked.stderr.slice(-200)}`);
  }
}
console.log(`${CASES.length - wrong} of ${CASES.length} right`);
process.exit(wrong ? 1 : 0);
