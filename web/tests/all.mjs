// Runs all tests: first what runs side by side, then what measures, alone; then views and axe again on real runs of the
// program, if one is built. Ends with the code of what failed.

import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { startGroup } from "./end.mjs";
import { LASTING, program, RealRun } from "./real.mjs";

const TOGETHER = ["axe", "views", "life", "report", "pictures", "units", "end"];
const ALONE = ["load"];
const ON_REAL = ["views", "axe"];

const here = dirname(fileURLToPath(import.meta.url));
// By SIGTERM, so that each file ends what it has started.
const run = (names, together, environment = {}) => new Promise((resolve) => startGroup(process.execPath,
    ["--test", `--test-concurrency=${together}`, "--test-reporter=spec", ...names.map((name) => `${name}.test.mjs`)],
    { cwd: here, stdio: "inherit", env: { ...process.env, ...environment } }, "SIGTERM")
    .on("close", (code) => resolve(code ?? 1)));

async function onReal() {
    if (!program()) {
        console.log("no test on real runs: cargo build -p isles-cli -p isles-dashboard builds what they need");
        return process.env.CI ? 1 : 0;
    }
    let failed = await run(["real", "jobs"], 1);
    for (const [name, words] of Object.entries(LASTING)) {
        if (failed) break;
        console.log(`on a real run: ${name}`);
        const shown = new RealRun([...words, "--ui", "--keep-ui"]);
        try {
            failed = await run(ON_REAL, 2, { ISLES_UI: await shown.address() });
        } finally {
            await shown.stop();
        }
    }
    return failed;
}

const started = performance.now();
const failed = await run(TOGETHER, 2) || await run(ALONE, 1) || await onReal();
console.log(`${((performance.now() - started) / 1000).toFixed(0)} s in all`);
process.exit(failed);
