// The browser of the tests: Debian's chromium, and pages that count what must not happen.
//
// `ISLES_UI` with the address that `isles run .. --ui` printed lets the tests that need no invented run look at a real
// one instead.

import { execFileSync } from "node:child_process";
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ARGUMENTS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE *.localhost",
];

export function executable() {
    for (const name of ["chromium-headless-shell", "chromium"]) {
        try {
            return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
        } catch { /* the next one */ }
    }
    throw new Error("no chromium-headless-shell is here: apt-get install chromium-headless-shell");
}

export const launch = () => chromium.launch({ executablePath: executable(), args: ARGUMENTS });

/** A page of its own context at an address, with the list of what it did wrong. */
export async function open(browser, address, options = {}) {
    const { theme = "light", width = 1280, height = 800, reduced = true, wait = true, touch = false } = options;
    const context = await browser.newContext({
        viewport: { width, height }, colorScheme: theme, reducedMotion: reduced ? "reduce" : "no-preference",
        hasTouch: touch,
    });
    const faults = [];
    await watch(context, address, faults);
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    await page.goto(address);
    if (wait) await picture(page);
    return { context, page, faults };
}

/** Notes foreign requests, violations of the policy, errors of the console and of scripts. */
async function watch(context, address, faults) {
    const origin = new URL(address).origin;
    context.on("request", (request) => {
        if (!request.url().startsWith(`${origin}/`)) faults.push(`foreign request ${request.url()}`);
    });
    context.on("page", (page) => {
        page.on("pageerror", (error) => faults.push(`script error ${error.message}`));
        page.on("console", (message) => {
            const text = message.text();
            const network = /Failed to load resource|ERR_/.test(text);
            if (message.type() === "error" && !network) faults.push(`console ${text}`);
            if (/violates/.test(text)) faults.push(`policy ${text}`);
        });
    });
    await context.addInitScript(() => {
        window.violations = [];
        document.addEventListener("securitypolicyviolation", (event) =>
            window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
    });
}

/** Waits until the page has drawn its first picture. */
export async function picture(page) {
    await page.waitForFunction(() => performance.getEntriesByName("picture").length > 0, null, { timeout: 20_000 });
}

/** Takes the picture of a page, which must be small; writes it into the folder that `PICTURES` names, if it does. */
export async function keep(page, name) {
    const taken = await page.screenshot();
    assert.ok(taken.length > 10_000 && taken.length < 200_000, `${name}: ${taken.length} bytes`);
    const folder = process.env.PICTURES;
    if (!folder) return;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${name}.png`), taken);
}

/** What axe finds, as lines; empty is right. */
export async function axe(page) {
    if (!await page.evaluate(() => "axe" in window)) await page.evaluate(AXE);
    const found = await page.evaluate(async () => {
        const result = await window.axe.run(document, { resultTypes: ["violations"] });
        return result.violations.map((violation) => `${violation.id}: ${violation.help}; ` + violation.nodes.slice(0, 3)
            .map((node) => `${node.target.join(" ")} (${node.failureSummary})`).join(" | "));
    });
    return found;
}

/** The violations of the policy that the page itself has seen. */
export const violations = (page) => page.evaluate(() => window.violations);

/** The address of a real run to look at instead of invented ones, or null. */
export const REAL = process.env.ISLES_UI ?? null;

/** The tasks of the main threads of pages during `body`: how many, and their time of the processor in ms. */
export async function tasksOf(page, body) {
    const browser = page.context().browser();
    const categories = ["disabled-by-default-devtools.timeline", "toplevel", "__metadata"];
    await browser.startTracing(page, { categories });
    await body();
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
    const mains = new Set(traceEvents.filter((event) => event.name === "thread_name"
        && event.args.name === "CrRendererMain").map((event) => `${event.pid}/${event.tid}`));
    const times = traceEvents.filter((event) => /RunTask$/.test(event.name) && event.tdur !== undefined
        && mains.has(`${event.pid}/${event.tid}`)).map((event) => event.tdur / 1000);
    return {
        events: times.length, longest: Math.max(0, ...times), total: times.reduce((sum, time) => sum + time, 0),
    };
}

/** The proportional memory of the largest process of a page, in MB. */
export async function rendererOf(browser) {
    const session = await browser.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    const sizes = processInfo.filter((one) => one.type === "renderer").map((one) => {
        const text = readFileSync(`/proc/${one.id}/smaps_rollup`, "utf8");
        return Number(/^Pss:\s+(\d+) kB/m.exec(text)[1]) / 1000;
    });
    return Math.max(...sizes);
}
