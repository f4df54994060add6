// The pictures of the documentation that need an invented run: views in a state that a run seldom has, and many places.
// Those of real runs are taken by `real.test.mjs`.
//
// They are written when `PICTURES` names a folder (`npm run pictures` names docs/pictures); a plain test run writes
// them nowhere and checks only that they can be taken and are small enough. No picture is compared with another: fonts
// differ between machines.

import { test } from "node:test";
import { keep } from "./browser.mjs";
import { go, invented, onPage, withBrowser } from "./run.mjs";

withBrowser();

const PICTURES = [
    { name: "page-messages", scenario: "scc", theme: "light", at: "messages" },
    { name: "page-power", scenario: "scc", theme: "dark", at: "power" },
    { name: "page-many", scenario: "many", theme: "dark", at: "chip*" },
    { name: "page-dead-place", scenario: "dead", theme: "light", at: "chip*,core:2" },
    { name: "page-replay", scenario: "cut", theme: "light", at: "chip*", time_ms: 47_000 },
];

for (const { name, scenario, theme, at, time_ms } of PICTURES) {
    test(`the picture ${name} is taken and is small`, invented, async () => {
        // By hand, not by the clock, so that each picture is of the same moment of its run.
        await onPage({ scenario, theme, auto: false, first: 118 }, async ({ page, server }) => {
            await go(page, at);
            if (time_ms) {
                await page.evaluate((time) => window.isles.store.seek(time), time_ms);
            } else {
                server.next();
                server.next();
                await page.waitForFunction((seq) => window.isles.store.shown.seq === seq, server.step + 1);
            }
            if (at.includes("core")) await page.waitForSelector(".output p");
            await page.evaluate(() => new Promise((done) =>
                requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
            await keep(page, name);
        });
    });
}
