// What happens to a page during a run: pause, lost connections, deaths, ends, replay, many tabs, hostile text, tokens.

import { test } from "node:test";
import assert from "node:assert/strict";
import { open, picture, violations } from "./browser.mjs";
import { HOSTILE } from "./data.mjs";
import { go, invented, onPage, shown, theBrowser, withBrowser } from "./run.mjs";
import { TestServer } from "./server.mjs";

withBrowser();

test("a paused picture stands still while snapshots go on being collected, and resuming shows the latest", invented,
    async () => {
        await onPage({ scenario: "scc", auto: false, at: "chip*,core:3*" }, async ({ page, server }) => {
            await page.keyboard.press("p");
            await page.waitForSelector('.banner:has-text("Paused")');
            const before = await page.textContent(".map-cells");
            const time = await page.textContent(".clock");
            const rows = await page.evaluate(() => window.isles.store.totals.until(Infinity).length);
            for (let step = 0; step < 10; step++) server.next();
            await page.waitForFunction(() => window.isles.store.collected === 10);
            assert.equal(await page.textContent(".map-cells"), before, "the picture stands");
            assert.equal(await page.textContent(".clock"), time);
            await page.waitForSelector('.collected:text-is("10 snapshots")');
            assert.equal(await page.evaluate(() => window.isles.store.totals.until(Infinity).length), rows + 10);
            await page.click('header button:has-text("Resume")');
            await page.waitForFunction((was) => document.querySelector(".clock").textContent !== was, time);
            assert.notEqual(await page.textContent(".map-cells"), before);
            // The curve has no hole where the picture stood.
            const curve = await page.evaluate(() => document.querySelector("isles-chart").curve.x);
            const hole = curve.find((time, at) => at > 0 && time - curve[at - 1] > 1.01);
            assert.equal(hole, undefined, "no second is missing");
            assert.equal(curve.at(-1), await shown(page, "shown.time_ms") / 1000);
        });
    });

test("a lost connection is said, with the time of the picture, and the page goes on when the server is back", invented,
    async () => {
        await onPage({ scenario: "host" }, async ({ page, server }) => {
            await server.stop();
            await page.waitForSelector('[role="alert"] .banner:has-text("Connection lost")');
            assert.match(await page.textContent('[role="alert"]'), /The picture is of \d+:\d\d/);
            assert.ok(await page.locator(".cell").count() > 0, "the last picture stays");
            const seq = await shown(page, "shown.seq");
            await server.start();
            server.next();
            await page.waitForFunction((was) => window.isles.store.shown.seq > was, seq);
            await page.waitForSelector('[role="alert"] .banner', { state: "detached" });
        });
    });

test("a run that ends is said, its picture stays, and a server that goes then is no loss", invented, async () => {
    await onPage({ scenario: "ended", first: 1, auto: false }, async ({ page, server }) => {
        server.next();
        server.next();
        await page.waitForSelector('.banner:has-text("The run has ended")');
        assert.equal(await page.textContent(".state"), "ended");
        await server.stop();
        await page.waitForSelector('.banner:has-text("The server has ended with its run")');
        assert.equal(await page.locator('.banner:has-text("Connection lost")').count(), 0);
        assert.equal(await page.locator(".cell").count(), 4);
        await server.start();
    });
});

test("a run that fails says why", invented, async () => {
    await onPage({ scenario: "failed", first: 3, auto: false }, async ({ page }) => {
        await page.waitForSelector('.banner.is-bad:has-text("The run has failed: place 1 panicked at hf.rs:77")');
    });
});

test("a server without room for another reader, and one that forgot the session, are told from one that is gone",
    invented, async () => {
        await onPage({ scenario: "host", streamsMax: 0, wait: false }, async ({ page }) => {
            await page.waitForSelector('[role="alert"] .banner:has-text("Refused.")');
        });
        await onPage({ scenario: "host" }, async ({ page, server }) => {
            await server.stop();
            await page.waitForSelector('.banner:has-text("Connection lost")');
            server.session = "another";
            await server.start();
            await page.waitForSelector('[role="alert"] .banner:has-text("Refused.")');
        });
    });

test("a stream that falls silent is said too", invented, async () => {
    await onPage({ scenario: "host", auto: false }, async ({ page }) => {
        await page.waitForSelector('.banner:has-text("No news")', { timeout: 10_000 });
    });
});

test("a dead place is shown with its cause: above, on the map, in its view, among the warnings", invented, async () => {
    const first = 1;
    await onPage({ scenario: "dead", first, auto: false }, async ({ page, server }) => {
        assert.equal(await page.locator('.cell[data-state="dead"]').count(), 0);
        for (let step = 0; step < 3; step++) server.next();
        const cell = page.locator('.cell[data-state="dead"]');
        await cell.waitFor();
        assert.match(await cell.locator(".unseen").textContent(), /place 2.*dead: killed by signal 9 \(SIGKILL\)/);
        assert.equal(await cell.locator(".cell-value").textContent(), "✕");
        assert.match(await page.textContent('.banners [role="status"]'), /1 place dead.*place 2.*SIGKILL/s);
        await page.click('.banners button:text-is("Show")');
        await page.waitForSelector('.pane[data-view="core"] .banner.is-bad:has-text("killed by signal 9")');
        await page.keyboard.press("g");
        await page.keyboard.press("w");
        await page.waitForSelector('.warnings .is-bad:has-text("SIGKILL")');
    });
});

test("a replay opens on its summary and the picture in which it last worked, goes where the slider says, plays, pauses",
    invented, async () => {
    await onPage({ scenario: "replay" }, async ({ page, server }) => {
        assert.equal(await page.textContent(".state"), "replay");
        assert.equal(server.streams.size, 0, "a replay has no stream");
        await page.waitForSelector(`.pane[data-view="summary"] .result:has-text("4130071")`);
        assert.equal(await shown(page, "shown.time_ms"), 4000);
        await page.focus(".replay input");
        await page.keyboard.press("Home");
        await page.waitForFunction(() => window.isles.store.shown.time_ms === 0);
        await page.focus(".replay input");
        await page.keyboard.press("ArrowRight");
        await page.waitForFunction(() => window.isles.store.shown.time_ms === 1000);
        await page.waitForSelector('.replay input[aria-valuetext="0:01 of 1:30"]');
        const box = await page.locator(".replay input").boundingBox();
        await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
        await page.waitForFunction(() => Math.abs(window.isles.store.shown.time_ms - 45_000) < 3000);
        const from = await shown(page, "shown.time_ms");
        await page.click('.replay button:text-is("Play")');
        await page.waitForFunction((was) => window.isles.store.shown.time_ms > was, from);
        await page.keyboard.press("p");
        await page.waitForSelector('.replay button:text-is("Play")');
        await page.focus(".replay input");
        await page.keyboard.press("End");
        await page.waitForSelector('.banner:has-text("The run has ended")');
        await go(page, "core:5");
        await page.waitForSelector(".chart canvas");
        await page.waitForFunction(() => document.querySelector("isles-chart").curve.x.length >= 90);
    });
});

test("a log that is cut off is said so, and what came after is unknown", invented, async () => {
    await onPage({ scenario: "cut" }, async ({ page }) => {
        await page.waitForSelector('.banner:has-text("The log is cut off at 1:30")');
        await page.focus(".replay input");
        await page.keyboard.press("End");
        await page.waitForSelector('.cell[data-state="silent"]');
        assert.match(await page.textContent(".banners"), /State unknown: the log ends here/);
        assert.equal(await page.textContent(".cell-value"), "?");
        assert.match(await page.textContent(".replay-time"), /cut off/);
    });
});

test("nine tabs are one stream, and when the leader closes the next one takes over", invented, async () => {
    const server = await new TestServer({ scenario: "host" }).start();
    const { context, page } = await open(theBrowser(), server.address);
    const address = `http://127.0.0.1:${server.port}/`;
    const tabs = [page];
    try {
        for (let more = 0; more < 8; more++) {
            const tab = await context.newPage();
            await tab.goto(address);
            tabs.push(tab);
        }
        for (const tab of tabs) await picture(tab);
        assert.equal(server.streams.size, 1);
        const seq = await shown(page, "shown.seq");
        await Promise.all(tabs.map((tab) => tab.waitForFunction((was) => window.isles.store.latest.seq > was, seq)));
        const leaders = async (some) => (await Promise.all(some.map((tab) =>
            tab.evaluate(() => window.isles.leading.here)))).filter(Boolean).length;
        assert.equal(await leaders(tabs), 1);
        await page.close();
        const rest = tabs.slice(1);
        const later = await shown(rest[0], "latest.seq");
        await Promise.all(rest.map((tab) =>
            tab.waitForFunction((was) => window.isles.store.latest.seq > was + 1, later)));
        assert.equal(await leaders(rest), 1);
        assert.equal(server.streams.size, 1);
    } finally {
        await context.close();
        await server.stop();
    }
});

test("hostile names, causes and output are text: nothing runs, nothing is hidden, no policy is broken", invented,
    async () => {
        await onPage({ scenario: "hostile", at: "chip*,core:1*,finishes*,warnings*" }, async ({ page }) => {
            await page.waitForSelector('.output p:has-text("onerror")');
            const text = await page.textContent("isles-app");
            assert.ok(text.includes(HOSTILE.markup), "markup is shown as it was written");
            assert.ok(text.includes("<U+202E>txet desrever"), "a change of direction is seen");
            assert.ok(!/[\u001b\u0007\u202e]/.test(text), "no control character is left");
            assert.ok(!text.includes("[31m"), "sequences for terminals are taken out");
            assert.equal(await page.evaluate(() => window.hostile), undefined);
            assert.equal(await page.locator("isles-app img, isles-app script").count(), 0);
            assert.match(await page.title(), /^<img/);
        });
    });

test("the token leaves the address at once, and a reload needs none", invented, async () => {
    await onPage({ scenario: "host" }, async ({ page, server }) => {
        assert.ok(!page.url().includes("token"), page.url());
        assert.ok(!(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie])))
            .includes(server.token));
        assert.ok(!server.requests.some((request) => request.includes(server.token)));
        await page.reload();
        await picture(page);
    });
});

test("a page without its token says how to get in, and asks for nothing more", invented, async () => {
    const server = await new TestServer({ scenario: "host" }).start();
    for (const path of ["", "#token=wrong"]) {
        const opened = await open(theBrowser(), `http://127.0.0.1:${server.port}/${path}`, { wait: false });
        await opened.page.waitForSelector('h1:text-is("This page needs its token")');
        assert.match(await opened.page.textContent("main"), /the whole address that the program printed/);
        assert.deepEqual(opened.faults, []);
        assert.deepEqual(await violations(opened.page), []);
        await opened.context.close();
    }
    assert.equal(server.streamsOpened, 0);
    await server.stop();
});

test("the theme follows the system until the reader chooses, and the choice is kept", invented, async () => {
    await onPage({ scenario: "host", theme: "dark" }, async ({ page }) => {
        const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const dark = await background();
        await page.emulateMedia({ colorScheme: "light" });
        await page.waitForSelector(':root[data-theme="light"]');
        assert.notEqual(await background(), dark);
        await page.click('button:has-text("Theme: auto")');
        await page.click('button:has-text("Theme: light")');
        await page.waitForSelector(':root[data-theme="dark"]');
        await page.reload();
        await page.waitForSelector(':root[data-theme="dark"]');
    });
});

test("nothing moves for a reader who wants less motion", invented, async () => {
    for (const [reduced, moves] of [[true, false], [false, true]]) {
        await onPage({ scenario: "host", reduced }, async ({ page }) => {
            const duration = await page.evaluate(() =>
                getComputedStyle(document.querySelector(".cell-fill")).transitionDuration);
            assert.equal(parseFloat(duration) > 0, moves, duration);
        });
    }
});
