// The report in one file: opened from the disk, without a server, under a policy of hashes.

import { test } from "node:test";
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { axe, picture, violations } from "./browser.mjs";
import { HOSTILE, scenarioOf } from "./data.mjs";
import { invented, shown, theBrowser, withBrowser } from "./run.mjs";
import { dataOf, reportOf } from "./report.mjs";

withBrowser();

async function onReport(data, body) {
    const folder = mkdtempSync(join(tmpdir(), "isles-report-"));
    const file = join(folder, "report.html");
    const text = reportOf(data);
    writeFileSync(file, text);
    const context = await theBrowser().newContext({ viewport: { width: 1280, height: 800 }, offline: true });
    const faults = [];
    try {
        const page = await context.newPage();
        page.setDefaultTimeout(10_000);
        page.on("pageerror", (error) => faults.push(error.message));
        page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
        context.on("request", (request) => request.url() === pathToFileURL(file).href || faults.push(request.url()));
        await page.addInitScript(() => {
            window.violations = [];
            document.addEventListener("securitypolicyviolation", (event) =>
                window.violations.push(event.violatedDirective));
        });
        await page.goto(pathToFileURL(file).href);
        await picture(page);
        await body(page, text);
        assert.deepEqual(faults, []);
        assert.deepEqual(await violations(page), []);
    } finally {
        await context.close();
        rmSync(folder, { recursive: true });
    }
}

test("a report is one file that replays the run without a server", invented, async () => {
    const data = dataOf(scenarioOf("replay"));
    await onReport(data, async (page) => {
        assert.equal(await page.locator(".cell[data-place]").count(), 48);
        await page.focus(".replay input");
        await page.keyboard.press("End");
        await page.waitForSelector('.banner:has-text("The run has ended")');
        await page.keyboard.press("Home");
        await page.waitForFunction(() => window.isles.store.shown.time_ms === 0);
        await page.click('.cell[data-place="5"]');
        await page.waitForSelector(".chart canvas");
        await page.waitForFunction(() => document.querySelector("isles-chart").curve.x.length === 91);
        await page.focus(".replay input");
        await page.keyboard.press("End");
        await page.waitForFunction((lines) => document.querySelectorAll(".output p").length === lines,
            data.outputs[5].lines.length);
        assert.match(await page.textContent(".pane[data-view=core]"), /3 lines dropped/);
        // A counter without a history of its own is drawn from the pictures.
        await page.selectOption(".pane[data-view=core] .tools select", "queue");
        await page.waitForFunction(() => document.querySelector("isles-chart").curve.x.length === 46);
        assert.deepEqual(await axe(page), []);
    });
});

test("a report with hostile names runs nothing of them", invented, async () => {
    const scenario = scenarioOf("hostile");
    scenario.replay = { length_ms: 10_000, cut: false };
    const data = dataOf(scenario);
    data.run.program = `</script>${HOSTILE.markup}<!--`;
    await onReport(data, async (page, text) => {
        assert.equal(await page.evaluate(() => window.hostile), undefined);
        assert.equal(await page.textContent("h1"), "script><!--", "the file of the path");
        const carried = /id="isles-report">([^]*?)<\/script>/.exec(text)[1];
        assert.ok(!carried.includes("<"), "the data cannot end its element");
        assert.deepEqual(JSON.parse(carried), JSON.parse(JSON.stringify(data)));
        assert.equal(await shown(page, "run.places"), 4);
    });
});
