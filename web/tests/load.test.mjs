// A run of 1,024 places: how soon the page can be used, how long it holds the browser up, how much memory it takes.
//
// Frames are measured in time of the processor, from a trace of the browser, since the wall time of a frame says as
// much about the machine's other work. The first picture is wall time, the best of three.

import { test } from "node:test";
import assert from "node:assert/strict";
import { open, rendererOf, tasksOf } from "./browser.mjs";
import { go, invented, onPage, painted, theBrowser, withBrowser } from "./run.mjs";
import { TestServer } from "./server.mjs";

withBrowser();
const MANY = { scenario: "many", auto: false, real: false };

test("1,024 places: the page can be used within a second", invented, async (context) => {
    const server = await new TestServer(MANY).start();
    const times = [];
    for (let round = 0; round < 3; round++) {
        const { page, context: opened } = await open(theBrowser(), server.address);
        times.push(await page.evaluate(() => performance.getEntriesByName("picture")[0].startTime));
        await page.focus(".map-canvas");
        await page.keyboard.press("ArrowRight");
        assert.match(await page.textContent(".map-line"), /^place 1,/);
        await opened.close();
    }
    await server.stop();
    const best = Math.min(...times);
    context.diagnostic(`first picture ${times.map((time) => time.toFixed(0)).join(", ")} ms`);
    assert.ok(best < 1000, `${best.toFixed(0)} ms`);
});

for (const fragment of ["chip", "chip*,core:3*,messages*,finishes*"]) {
    test(`1,024 places, ${fragment}: no task of the page is longer than 50 ms at ten updates a second`, invented,
        async (context) => {
            await onPage({ ...MANY, at: fragment }, async ({ page, server }) => {
                const steps = 30;
                // What the start leaves behind is not what an update costs.
                await page.waitForTimeout(300);
                const { events, longest, total } = await tasksOf(page, async () => {
                    for (let step = 0; step < steps; step++) {
                        server.next();
                        await new Promise((resolve) => setTimeout(resolve, 100));
                    }
                    await page.waitForFunction((seq) => window.isles.store.shown.seq === seq, server.step + 1);
                });
                context.diagnostic(`${events} tasks, longest ${longest.toFixed(1)} ms, `
                    + `${(total / steps).toFixed(1)} ms of the processor an update`);
                assert.ok(events > steps, "the trace has the tasks of the page");
                assert.ok(longest < 50, `${longest.toFixed(1)} ms`);
            });
        });
}

test("1,024 places: the page's process stays under 150 MB, and its heap does not grow with time", invented,
    async (context) => {
        await onPage({ ...MANY, at: "chip*,core:3*,messages*" }, async ({ page, server }) => {
            const heap = await heapOf(page);
            await feed(page, server, 60);
            const before = await heap();
            await feed(page, server, 200);
            const growth = await heap() - before;
            const memory = await rendererOf(theBrowser());
            context.diagnostic(`process ${memory.toFixed(0)} MB, heap ${before.toFixed(1)} MB, `
                + `${growth.toFixed(2)} MB more after 200 updates`);
            assert.ok(memory > 10 && memory < 150, `${memory.toFixed(0)} MB`);
            assert.ok(growth < 3, `${growth.toFixed(2)} MB`);
        });
    });

test("up to 64 places the map is elements, above one canvas; both are filled and walked", invented, async () => {
    for (const [places, elements] of [[1, true], [7, true], [64, true], [65, false], [256, false]]) {
        await onPage({ scenario: String(places), auto: false }, async ({ page }) => {
            assert.equal(await page.locator(".cell[data-place]").count(), elements ? places : 0, `${places}`);
            assert.equal(await page.locator(".map-canvas").count(), elements ? 0 : 1, `${places}`);
            if (!elements) assert.ok(await painted(page, ".map-canvas") >= 5, `${places}`);
            await page.locator(elements ? '.cell[tabindex="0"]' : ".map-canvas").focus();
            await page.keyboard.press("End");
            const last = Math.min(places, await page.evaluate(() => Math.ceil(Math.sqrt(
                window.isles.store.run.places * 1.6)))) - 1;
            assert.match(await page.textContent(".map-line"), new RegExp(`^place ${places <= 4 ? places - 1 : last},`));
        });
    }
});

test("1,024 places: walking over the map by keyboard and opening places does not wait for the picture", invented,
    async () => {
        await onPage(MANY, async ({ page }) => {
            await page.focus(".map-canvas");
            for (const key of ["End", "ArrowUp", "ArrowUp", "ArrowLeft"]) await page.keyboard.press(key);
            await page.waitForFunction(() => document.querySelector(".map-line").textContent.startsWith("place 190,"));
            await page.keyboard.press("Enter");
            await page.waitForSelector('.pane[data-view="core"] h2:focus:text-is("Place 190")');
            await page.keyboard.press("Escape");
            assert.equal(await page.evaluate(() => document.activeElement.className), "map-canvas");
            const box = await page.locator(".map-canvas").boundingBox();
            await page.mouse.click(box.x + 8, box.y + 8);
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 960")');
            await go(page, "messages");
            await page.focus(".matrix canvas");
            await page.keyboard.press("ArrowRight");
            assert.match(await page.textContent(".matrix .map-line"), /^places 0 to 15 → places 16 to 31: /);
            assert.match(await page.textContent(".pane[data-view=messages]"), /more between other pairs/);
            await go(page, "chip");
            await page.keyboard.press("t");
            await page.waitForSelector(".table-pages");
            assert.match(await page.textContent(".table-pages"), /rows 1 to 64 of 1024/);
            await page.click('.table-pages button:text-is("Next")');
            await page.waitForSelector('tbody th:has-text("place 64")');
        });
    });

async function feed(page, server, steps) {
    for (let step = 0; step < steps; step++) {
        server.next();
        await new Promise((resolve) => setTimeout(resolve, 15));
    }
    await page.waitForFunction((seq) => window.isles.store.latest.seq === seq, server.step + 1);
}

/** Returns what measures the heap of the page in MB, after what is not used has been collected. */
async function heapOf(page) {
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.enable");
    await session.send("Performance.enable");
    return async () => {
        await session.send("HeapProfiler.collectGarbage");
        const { metrics } = await session.send("Performance.getMetrics");
        return metrics.find((metric) => metric.name === "JSHeapUsedSize").value / 1e6;
    };
}
