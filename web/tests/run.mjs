// What the files of tests share: one browser a file, and a page on an invented run, or on the real one of `ISLES_UI`.
//
// `onPage` is the frame of nearly every test: it opens the page, hands it to the body, and at the end demands that
// nothing forbidden has happened: no foreign request, no violation of the policy, no error of a script.

import { after, before } from "node:test";
import assert from "node:assert/strict";
import { launch, open, REAL, violations } from "./browser.mjs";
import "./end.mjs"; // a file that is told to end closes its browser
import { RealRun } from "./real.mjs";
import { TestServer } from "./server.mjs";

let browser;

/** To be called once in a file of tests. */
export function withBrowser() {
    before(async () => {
        browser = await launch();
    });
    after(async () => {
        await browser?.close();
    });
}

export const theBrowser = () => browser;

/** Runs `body` with a page on a scenario. `options` are those of the server and of the page. */
export async function onPage(options, body) {
    const server = REAL && options.real !== false ? null : await new TestServer(options).start();
    const address = server?.address ?? REAL;
    const opened = await open(browser, address, options);
    try {
        if (options.at) await go(opened.page, options.at);
        await body({ ...opened, server, address });
        assert.deepEqual(opened.faults, [], "nothing forbidden was asked or said");
        assert.deepEqual(await violations(opened.page), [], "the policy was kept");
    } finally {
        await opened.context.close();
        await server?.stop();
    }
}

/** Opens a page on a run of the program, and demands at the end that nothing forbidden has happened. */
export async function onRun(words, body, options = {}) {
    const run = new RealRun(words, options);
    try {
        const address = options.named ? (await run.addresses)[0] : await run.address();
        const opened = await open(browser, address, options);
        await body({ ...opened, run });
        assert.deepEqual(opened.faults, [], "nothing forbidden was asked or said");
        if (!opened.page.isClosed()) assert.deepEqual(await violations(opened.page), [], "the policy was kept");
        await opened.context.close();
    } finally {
        await run.stop();
    }
}

/** Opens panes by the fragment of the address, as a stored link does. */
export async function go(page, fragment) {
    await page.evaluate((to) => {
        location.hash = to;
        location.reload();
    }, fragment);
    await page.waitForFunction((to) => location.hash === `#${to}` && performance.getEntriesByName("picture").length > 0,
        fragment);
}

/** Skips a test that needs an invented run, when a real one is looked at. */
export const invented = REAL ? { skip: "needs an invented run" } : {};

export const places = (page) => page.evaluate(() => window.isles.store.run.places);
export const shown = (page, path) => page.evaluate((names) =>
    names.split(".").reduce((value, name) => value?.[name], window.isles.store), path);

/** What has the keyboard: its role or name, its label and text. */
export const focused = (page) => page.evaluate(() => {
    const element = document.activeElement;
    return {
        tag: element.tagName.toLowerCase(), role: element.getAttribute("role"),
        label: element.getAttribute("aria-label"), text: element.textContent.trim().slice(0, 80),
        place: element.dataset.place,
    };
});

/** Whether a canvas has something on it. */
export const painted = (page, selector) => page.evaluate((name) => {
    const canvas = document.querySelector(name);
    if (!canvas || canvas.width === 0) return 0;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4 * 37) {
        if (data[at + 3] > 0) colours.add(data[at] << 16 | data[at + 1] << 8);
    }
    return colours.size;
}, selector);
