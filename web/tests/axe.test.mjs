// axe finds nothing: on each view, in both themes, of runs of 48, 4 and 1,024 places, in dialogues and in trouble; and
// nothing is wider than the window, down to 320 pixels (400 % of zoom).

import { test } from "node:test";
import assert from "node:assert/strict";
import { axe, REAL } from "./browser.mjs";
import { go, invented, onPage, shown, withBrowser } from "./run.mjs";

withBrowser();
const VIEWS = ["chip", "core:1", "messages", "finishes", "power", "warnings"];
const THEMES = ["light", "dark"];
const RUNS = REAL ? ["the real run"] : ["scc", "host", "many"];

const toTable = async (page) => {
    for (const button of await page.locator('button:text-is("Show as table")').all()) {
        if (await button.getAttribute("aria-pressed") === "false") await button.click();
    }
};

for (const scenario of RUNS) {
    for (const theme of THEMES) {
        test(`${scenario}, ${theme}: axe finds nothing on any view`, async () => {
            await onPage({ scenario, theme }, async ({ page }) => {
                assert.equal(await page.getAttribute("html", "data-theme"), theme);
                for (const view of VIEWS) {
                    if (view === "power" && !await shown(page, "shown.places.watt")) continue;
                    await go(page, view);
                    assert.deepEqual(await axe(page), [], view);
                    await toTable(page);
                    assert.deepEqual(await axe(page), [], `${view} as table`);
                }
                await go(page, "chip*,core:0*,core:1*,messages*,finishes*,warnings");
                assert.deepEqual(await axe(page), [], "side by side");
            });
        });
    }
}

for (const theme of THEMES) {
    test(`${theme}: axe finds nothing in dialogues, a dead place, a cut replay, a lost connection`, invented,
        async () => {
            await onPage({ scenario: "scc", theme }, async ({ page }) => {
                await page.keyboard.press("Control+k");
                await page.waitForSelector("dialog.palette[open]");
                assert.deepEqual(await axe(page), [], "palette");
                await page.keyboard.press("Escape");
                await page.waitForSelector("dialog.palette[open]", { state: "detached" });
                await page.keyboard.press("?");
                await page.waitForSelector("dialog.help[open]");
                assert.deepEqual(await axe(page), [], "help");
            });
            await onPage({ scenario: "dead", theme, at: "chip*,core:2*,warnings" }, async ({ page, server }) => {
                await page.waitForSelector('.cell[data-state="dead"]');
                assert.deepEqual(await axe(page), [], "a dead place");
                await server.stop();
                await page.waitForSelector('text="Connection lost."');
                assert.deepEqual(await axe(page), [], "a lost connection");
                await server.start();
            });
            await onPage({ scenario: "cut", theme }, async ({ page }) => {
                await page.focus(".replay input");
                await page.keyboard.press("End");
                await page.waitForSelector('.cell[data-state="silent"]');
                assert.deepEqual(await axe(page), [], "a cut replay");
            });
        });
}

for (const scenario of RUNS) {
    test(`${scenario}: nothing is wider than the window at 1280, 600 and 320 pixels`, async () => {
        for (const width of [1280, 600, 320]) {
            await onPage({ scenario, width }, async ({ page }) => {
                for (const view of [...VIEWS, "chip*,core:0*,messages*"]) {
                    if (view === "power" && !await shown(page, "shown.places.watt")) continue;
                    await go(page, view);
                    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
                        `${view} at ${width}`);
                }
            });
        }
    });
}
