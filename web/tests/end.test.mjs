// A process of the tests that is told to end takes with it what it has started.

import { test } from "node:test";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

// Its child says its number, starts a child of its own that says the same, and both wait for ever.
const STARTED = `const { spawn } = require("node:child_process");
    spawn(process.execPath, ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"], { stdio: "inherit" });
    console.log(process.pid);
    setInterval(() => {}, 1000);`;
const program = (signal, folder) => `import { atEnd, startGroup } from "./end.mjs";
    import { rmSync } from "node:fs";
    startGroup(process.execPath, ["-e", ${JSON.stringify(STARTED)}], { stdio: "inherit" }, "${signal}");
    atEnd(() => rmSync(${JSON.stringify(folder)}, { recursive: true }));
    setInterval(() => {}, 1000);`;

for (const [signal, code] of [["SIGTERM", 143], ["SIGINT", 130], ["SIGHUP", 129]]) {
    for (const ending of ["SIGTERM", "SIGKILL"]) {
        test(`${signal} ends by ${ending} what was started`, { timeout: 60_000 }, async () => {
            const folder = mkdtempSync(join(tmpdir(), "isles-end-"));
            const child = spawn(process.execPath, ["--input-type=module", "-e", program(ending, folder)],
                { cwd: here, stdio: ["ignore", "pipe", "inherit"] });
            const ended = new Promise((resolve) => child.on("exit", resolve));
            let said = "";
            child.stdout.setEncoding("utf8");
            try {
                for await (const text of child.stdout) {
                    said += text;
                    if (said.split("\n").length === 3) break;
                }
            } finally {
                child.kill(signal);
            }
            assert.equal(await ended, code);
            for (const process of said.trim().split("\n")) await gone(Number(process));
            assert.equal(existsSync(folder), false, "what was to be done at the end was done");
            rmSync(folder, { recursive: true, force: true });
        });
    }
}

/** Returns when a process is not there any more, or nobody has asked yet how it ended. */
async function gone(number) {
    for (;;) {
        try {
            process.kill(number, 0);
        } catch {
            return;
        }
        await new Promise((resolve) => setImmediate(resolve));
    }
}
