// Runs all tests: first what runs side by side, then what measures, alone. Ends with the code of what failed.

import { spawnSync } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const TOGETHER = ["axe", "views", "life", "report", "pictures", "units"];
const ALONE = ["load"];

const here = dirname(fileURLToPath(import.meta.url));
const run = (names, together) => spawnSync(process.execPath,
    ["--test", `--test-concurrency=${together}`, "--test-reporter=spec", ...names.map((name) => `${name}.test.mjs`)],
    { cwd: here, stdio: "inherit" }).status ?? 1;

const started = performance.now();
const failed = run(TOGETHER, 2) || run(ALONE, 1);
console.log(`${((performance.now() - started) / 1000).toFixed(0)} s in all`);
process.exit(failed);
