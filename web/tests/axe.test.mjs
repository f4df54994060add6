// axe finds nothing: on each view, in both themes, of runs of 48, 4 and 1,024 places, in dialogues and in trouble; and
// nothing is wider than the window, down to 320 pixels (400 % of zoom).

import { test } from "node:test";
import assert from "node:assert/strict";
import { axe, REAL } from "./browser.mjs";
import { go, invented, onPage, shown, withBrowser } from "./run.mjs";

withBrowser();
const VIEWS = ["chip", "core:1", "messages", "finishes", "stages", "power", "warnings"];
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

test("a small window shows the whole chip, leaves the head a third, and a view that was asked for is in it", invented,
    async () => {
        await onPage({ scenario: "scc" }, async ({ page }) => {
            await page.setViewportSize({ width: 400, height: 800 });
            await page.waitForSelector('.cell[data-place="47"]');
            const edges = await page.evaluate(() => {
                const box = (selector) => document.querySelector(selector).getBoundingClientRect();
                const cells = [...document.querySelectorAll(".cell[data-place]")]
                    .map((cell) => cell.getBoundingClientRect());
                const ids = [...document.querySelectorAll(".cell-id")].filter((id) => id.offsetWidth > 0);
                return {
                    left: Math.min(...cells.map(({ left }) => left)),
                    right: Math.max(...cells.map(({ right }) => right)),
                    narrowest: Math.min(...cells.map(({ width }) => width)), ids: ids.length, views: box(".panes").top,
                };
            });
            assert.ok(edges.left >= 0 && edges.right <= 400, `${JSON.stringify(edges)}`);
            assert.ok(edges.narrowest >= 24 && edges.ids === 48, `${JSON.stringify(edges)}`);
            assert.ok(edges.views <= 800 / 3, `${JSON.stringify(edges)}`);
            for (const [key, view] of [["p", "power"], ["m", "messages"], ["f", "finishes"], ["w", "warnings"]]) {
                await page.keyboard.press("g");
                await page.keyboard.press(key);
                await page.waitForFunction((name) => {
                    const pane = document.querySelector(`.pane[data-view=${name}]`);
                    if (!pane) return false;
                    const { top, bottom, height } = pane.getBoundingClientRect();
                    const seen = Math.min(bottom, innerHeight) - Math.max(top, 0);
                    return seen >= Math.min(height, innerHeight) * 0.6;
                }, view);
            }
        });
    });
