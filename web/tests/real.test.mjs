// The page, the server and the program together, as a user has them: live runs, replays, reports, deaths, hostile
// names, many tabs, other ports, 1,024 places. `all.mjs` runs the tests of views and of axe on real runs as well.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { copyFileSync, linkSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { axe, keep, open, picture, rendererOf, tasksOf, violations } from "./browser.mjs";
import { go, onRun, shown, theBrowser, withBrowser } from "./run.mjs";
import { isles, LASTING, program, RealRun, scratch } from "./real.mjs";

withBrowser();
const CHIPS = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "chips");
const THEMES = ["light", "dark"];
const HOSTILE = "<img src=x onerror=\"window.hostile=1\">\u001b[31m\u202etxt";
let recorded;

/** Runs of which everything is known: one on a chip, one on processes, each in its run directory. */
before(() => {
    recorded = scratch();
    for (const [name, words] of [
        ["chip", ["bc", "--rmat", "small", "--machine", "chip:scc"]],
        ["host", ["uts", "--tree", "T1", "--places", "4"]],
    ]) {
        const done = isles(["run", ...words, "--record", name], { cwd: recorded.folder });
        assert.equal(done.code, 0, done.error);
    }
});
after(() => recorded?.remove());

const CHIP = [...LASTING["48 cores of a modelled SCC"], "--ui"];
const HOST = [...LASTING["4 processes"], "--ui"];

test("a live chip: by the name that is its own, news twice a second, each counter has a curve, its progress is shown",
    async () => {
        await onRun(CHIP, async ({ page }) => {
            assert.match(page.url(), /^http:\/\/isles-[0-9a-f]{12}\.localhost:\d+\//);
            assert.equal(await page.textContent("h1"), "bc");
            assert.equal(await page.locator(".cell[data-place]").count(), 48);
            const news = await newsOf(page);
            assert.ok(news < 750, `a snapshot each ${news} ms`);
            await page.waitForFunction(() => window.isles.store.rates?.tasks[0] > 0);
            await page.waitForFunction(() => window.isles.store.shown.progress?.done > 0);
            assert.equal(await shown(page, "shown.progress.label"), "sources");
            assert.ok(await page.getAttribute(".progress", "max") > 1000);
            assert.equal(await page.getAttribute(".progress", "aria-label"), "sources");
            await go(page, "core:1");
            await page.waitForSelector('.output:has-text("nothing printed by isles::println!")');
            const counters = await page.$$eval(".pane .tools select option", (all) => all.map((one) => one.value));
            assert.ok(counters.includes("busy") && counters.includes("watt"), `${counters}`);
            for (const counter of counters) {
                await page.selectOption(".pane .tools select", counter);
                await page.waitForFunction((name) => {
                    const chart = document.querySelector("isles-chart");
                    return chart.label.startsWith(name) && chart.curve.x.length > 0;
                }, counter);
                assert.equal(await page.locator(".pane .note.is-bad").count(), 0, counter);
            }
            const told = await page.$$eval(".pane details dt", (all) => all.map((one) => one.textContent));
            assert.ok(["tasks", "messages sent", "joule"].every((name) => told.includes(name)), `${told}`);
        }, { named: true });
    });

/** What the curve of the power view sums up to over its time, its highest point, and the energy of the snapshot. */
const energyOf = (page) => page.evaluate(() => {
    const { x, series: [{ values }] } = document.querySelector('.pane[data-view="power"] isles-chart').curve;
    const joule = values.reduce((sum, watt, row) => sum + watt * (x[row] - (x[row - 1] ?? 0)), 0);
    const { run, shown, latest } = window.isles.store;
    const energy = (run.mode === "replay" ? shown : latest).power.joule;
    return { joule, most: Math.max(...values), energy, points: x.length };
});

test("the power of a chip sums up to its energy, live, at the end and replayed, and is never more than it can draw",
    async () => {
        // All cores at 800 MHz and 1.1625 V: 0.0871 V^2 f + 15.3 W, of ManyMan; its largest error is 2 W.
        const most = 0.0871 * 1.1625 ** 2 * 800 + 15.3 + 2;
        const holds = async (page) => {
            const { joule, energy, points, ...more } = await energyOf(page);
            assert.ok(points > 0 && Math.abs(joule / energy - 1) < 0.01, `${joule} of ${energy} J in ${points} points`);
            assert.ok(more.most < most, `${more.most} W`);
        };
        await onRun([...CHIP, "--record", "run"], async ({ page }) => {
            await go(page, "power");
            await page.waitForFunction(() => document.querySelector("isles-chart")?.curve.x.length > 5);
            await holds(page);
        });
        const small = ["run", "bc", "--rmat", "small", "--machine", "chip:scc", "--ui", "--keep-ui", "--record", "run"];
        await onRun(small, async ({ page, run }) => {
            await page.waitForFunction(() => window.isles.store.shown?.state === "ended");
            await go(page, "power");
            await page.waitForFunction(() => document.querySelector("isles-chart")?.curve.x.length > 0);
            await holds(page);
            const text = await page.textContent('.pane[data-view="power"] .figures');
            assert.match(text, /mean of the run/);
            const told = / ([0-9.]+) J by manyman/.exec(run.said);
            const { energy } = await energyOf(page);
            assert.ok(Math.abs(energy / Number(told[1]) - 1) < 0.01, `${energy} J, ${told[0]} in the terminal`);
        });
        await onRun(["replay", join(recorded.folder, "chip")], async ({ page }) => {
            await go(page, "power");
            await page.waitForFunction(() => document.querySelector("isles-chart")?.curve.x.length > 0);
            await page.focus(".replay input");
            await page.keyboard.press("End");
            await page.waitForFunction(() => window.isles.store.shown.state === "ended");
            await holds(page);
        });
    });

/** How long the page waits for a snapshot, in ms, by six of them. */
const newsOf = (page) => page.evaluate(() => new Promise((done) => {
    const { store } = window.isles;
    const from = store.latest.seq;
    const started = performance.now();
    const stop = store.subscribe(() => {
        if (store.latest.seq < from + 6) return;
        stop();
        done((performance.now() - started) / 6);
    });
}));

test("places of a chip lie on the cores where they run", async () => {
    const words = ["run", "bc", "--rmat", "large", "--machine", "chip:scc", "--places", "6", "--placement", "spread"];
    await onRun([...words, "--ui"], async ({ page }) => {
        const cores = await shown(page, "run.core_of");
        assert.ok(cores.some((core, place) => core !== place), `${cores}`);
        for (const [place, core] of cores.entries()) {
            const label = await page.textContent(`.cell[data-place="${place}"] .unseen`);
            assert.match(label, new RegExp(`^place ${place}, tile ${Math.floor(core / 2)},`));
        }
    });
});

for (const name of ["chip", "host"]) {
    test(`a replay of the ${name}: slider by mouse and by keys, views, no finding of axe in both themes`, async () => {
        for (const theme of THEMES) {
            await onRun(["replay", join(recorded.folder, name)], async ({ page }) => {
                assert.equal(await page.textContent(".state"), "replay");
                await opensOnSummary(page, name);
                await sliderWorks(page);
                for (const view of ["summary", "chip", "core:1", "messages", "finishes", "power", "warnings"]) {
                    if (view === "power" && name === "host") continue;
                    await go(page, view);
                    assert.deepEqual(await axe(page), [], `${view}, ${theme}`);
                }
            }, { theme });
        }
    });

    test(`a report of the ${name}, opened from the disk without a network: the same, and asks nobody`, async () => {
        const file = join(recorded.folder, `${name}.html`);
        assert.equal(isles(["report", join(recorded.folder, name), "--html", file]).code, 0);
        for (const theme of THEMES) {
            const address = pathToFileURL(file).href;
            const { context, page, faults } = await open(theBrowser(), address, { theme });
            await context.setOffline(true);
            await opensOnSummary(page, name);
            await sliderWorks(page);
            await page.click('.cell[data-place="1"]');
            await page.waitForSelector(".chart canvas");
            await page.waitForSelector('.output:has-text("nothing printed by isles::println!")');
            if (name === "chip") {
                await page.focus(".replay input");
                await page.keyboard.press("End");
                await page.waitForSelector('.figures.is-key:has-text("sources"):has-text("100")');
            }
            assert.deepEqual(await axe(page), [], theme);
            assert.deepEqual(faults.filter((fault) => fault !== `foreign request ${address}`), []);
            assert.deepEqual(await violations(page), []);
            await context.close();
        }
    });
}

/** What `recorded` has shown as its result, of each. */
const RESULTS = { chip: /betweenness[\s\S]*edges traversed a second/, host: /nodes +4130071[\s\S]*nodes a second/ };

/** The summary stands open beside the last picture in which the run worked. */
async function opensOnSummary(page, name) {
    await page.waitForSelector('.pane[data-view="summary"] .result');
    assert.match(await page.textContent(".result"), RESULTS[name]);
    const [busy, joule] = await page.evaluate(() => {
        const { shown, summary } = window.isles.store;
        return [Math.max(...shown.places.busy), summary.power?.joule];
    });
    assert.ok(busy > 0.1, `the busiest place has a load of ${busy}`);
    assert.equal(joule > 0, name === "chip");
    const text = await page.textContent('.pane[data-view="summary"]');
    for (const what of ["Time", "Messages", "Warnings", "Shares of the whole run"]) {
        assert.ok(text.includes(what), what);
    }
    assert.equal(await page.locator('.pane[data-view="chip"] .cell[data-place]').count(), name === "chip" ? 48 : 4);
}

test("a page whose run ends shows what it came to, beside the last picture in which it worked", async () => {
    for (const [name, words] of [
        ["chip", ["bc", "--rmat", "small", "--machine", "chip:scc"]],
        ["host", ["uts", "--tree", "T1", "--places", "4"]],
    ]) {
        await onRun(["run", ...words, "--ui", "--keep-ui"], async ({ page, run }) => {
            await page.waitForFunction(() => window.isles.store.latest?.state === "ended");
            await opensOnSummary(page, name);
            await page.waitForSelector('.banner:has-text("The run has ended")');
            assert.deepEqual(await axe(page), [], name);
            // Who comes later sees the same.
            await page.goto(await run.address());
            await opensOnSummary(page, name);
        });
    }
});

/** The slider of a replay goes to both ends by keys, and to its middle by the mouse; playing goes on by itself. */
async function sliderWorks(page) {
    const length = await shown(page, "run.length_ms");
    const slider = page.locator(".replay input");
    await slider.focus();
    await page.keyboard.press("End");
    await page.waitForSelector('.banner:has-text("The run has ended")');
    await page.keyboard.press("Home");
    await page.waitForFunction(() => window.isles.store.sought === 0 && window.isles.store.shown.state === "running");
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => window.isles.store.sought > 0);
    const box = await slider.boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await page.waitForFunction((all) => Math.abs(window.isles.store.sought - all / 2) <= all / 10 + 100, length);
    const at = await shown(page, "sought");
    await page.click('.replay button:text-is("Play")');
    // Beyond a sample of the log, which are up to a second apart.
    await page.waitForFunction((to) => window.isles.store.sought >= to, Math.min(length, at + 1200));
}

/** The pictures of the documentation, each of a run that the README names: how it looks after some seconds. */
const PICTURES = [
    {
        run: ["bc", "--rmat", "large", "--machine", "chip:scc"], name: "page-scc",
        light: "chip*", dark: "chip*,core:19",
    },
    {
        run: ["hf", "--molecule", "aspirin", "--basis", "3-21g", "--places", "4"], name: "page-host",
        light: "chip*,core:2", dark: "chip*,finishes*,messages*",
    },
];

for (const { run, name, ...views } of PICTURES) {
    test(`the pictures ${name} of a real run are taken, in both themes, and are small`, async () => {
        await onRun(["run", ...run, "--ui"], async ({ page }) => {
            const seconds = process.env.PICTURES ? 12 : 2;
            await page.waitForFunction((least) => window.isles.store.shown.time_ms > 1000 * least, seconds,
                { timeout: 30_000 });
            for (const [theme, at] of Object.entries(views)) {
                await page.emulateMedia({ colorScheme: theme });
                await go(page, at);
                // Rates need two snapshots, curves three.
                const seq = await shown(page, "latest.seq");
                await page.waitForFunction((was) => window.isles.store.shown.seq > was + 2, seq);
                await page.evaluate(() => new Promise((done) =>
                    requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
                await keep(page, `${name}-${theme}`);
            }
        });
    });
}

test("a log that is cut off in the middle is replayed as far as it goes, and then nothing is said to run", async () => {
    const folder = join(recorded.folder, "cut");
    mkdirSync(folder);
    copyFileSync(join(recorded.folder, "host", "events.log"), join(folder, "events.log"));
    truncateSync(join(folder, "events.log"), Math.floor(statSync(join(folder, "events.log")).size / 2));
    await onRun(["replay", folder], async ({ page, run }) => {
        assert.match(run.said, /^the log ends at \d+\.\d s, .*; what came after is unknown\n/);
        await page.waitForSelector('.banner:has-text("The log is cut off at")');
        await page.focus(".replay input");
        await page.keyboard.press("End");
        await page.waitForSelector('.banner:has-text("State unknown")');
        await page.waitForSelector('.cell[data-state="silent"]');
        assert.equal(await page.locator('.cell:is([data-state="busy"], [data-state="idle"])').count(), 0);
        assert.match(await page.textContent(".banners"), /State unknown: the log ends at \d+\.\d s/);
    });
});

test("kill -9 of the server: the page says that the connection is lost, and the run goes on to its end", async () => {
    const words = ["run", "uts", "--tree", "T1", "--places", "2", "--ui"];
    await onRun(words, async ({ page, run }) => {
        const [server] = run.below("isles-dashboard");
        assert.ok(server > 0, "the server is a process below the run");
        process.kill(server, "SIGKILL");
        await page.waitForSelector('[role="alert"] .banner:has-text("Connection lost")');
        assert.ok(await page.locator(".cell").count() === 2, "the last picture stays");
        assert.deepEqual(await run.ended, { code: 0, signal: null }, run.said);
    });
});

test("kill -9 of a place: the page shows which is dead and why, and the run says so too", async () => {
    await onRun([...HOST, "--keep-ui"], async ({ page, run }) => {
        await page.waitForFunction(() => window.isles.store.shown.places.memory_bytes[2] > 0);
        const place = run.below("isles-bc").at(-1);
        process.kill(place, "SIGKILL");
        const cell = page.locator('.cell[data-state="dead"]');
        await cell.first().waitFor({ timeout: 20_000 });
        assert.match(await cell.first().locator(".unseen").textContent(), /dead: its process was ended by signal 9/);
        assert.match(await page.textContent('.banners [role="status"]'), /1 place dead.*ended by signal 9/s);
        await page.keyboard.press("g");
        await page.keyboard.press("w");
        await page.waitForSelector('.warnings .is-bad:has-text("signal 9")');
        await page.waitForSelector('.banner.is-bad:has-text("The run has failed")');
        assert.match(run.said, /signal 9/);
    });
});

test("hostile names of the program and of its arguments are text: nothing runs, nothing is hidden", async () => {
    const own = scratch();
    try {
        const path = join(own.folder, "<img src=x onerror=\"window.hostile=1\">");
        const server = join(own.folder, "isles-dashboard");
        for (const [from, to] of [[`${program()}-bc`, path], [`${program()}-dashboard`, server]]) {
            try {
                linkSync(from, to);
            } catch {
                copyFileSync(from, to); // on another file system
            }
        }
        await onRun(["--rmat", "large", "--places", "2", "--csv", HOSTILE, "--ui"], async ({ page }) => {
            assert.equal(await page.textContent("h1"), "<img src=x onerror=\"window.hostile=1\">");
            const said = await page.textContent(".head-command");
            assert.ok(said.includes("<img src=x onerror=") && said.includes("<U+202E>txt"), said);
            assert.ok(!/[\u001b\u202e]/.test(await page.textContent("body")), "no control character is left");
            assert.equal(await page.evaluate(() => window.hostile), undefined);
            assert.equal(await page.locator("isles-app img").count(), 0);
        }, { path, folder: own.folder });
    } finally {
        own.remove();
    }
});

test("nine tabs are one stream of the server, and when the first closes another takes over", async () => {
    await onRun(HOST, async ({ page, context, run }) => {
        const streams = [];
        context.on("request", (request) => request.url().endsWith("/stream") && streams.push(request.url()));
        const address = (await run.address()).replace(/#.*/, "");
        const tabs = [page];
        for (let more = 0; more < 8; more++) {
            const tab = await context.newPage();
            await tab.goto(address);
            tabs.push(tab);
        }
        for (const tab of tabs) await picture(tab);
        const seq = await shown(page, "latest.seq");
        await Promise.all(tabs.map((tab) => tab.waitForFunction((was) => window.isles.store.latest.seq > was, seq)));
        assert.deepEqual(streams, [], "the stream of the first tab serves all");
        await page.close();
        await Promise.all(tabs.slice(1).map((tab) =>
            tab.waitForFunction((was) => window.isles.store.latest.seq > was + 2, seq)));
        assert.equal(streams.length, 1, "the next tab has taken over");
    });
});

test("a page on another port of the same address has the cookie of the session and gets nothing by it", async () => {
    await onRun(HOST, async ({ context, run, faults }) => {
        const address = (await run.address()).replace(/#.*/, "");
        assert.ok((await context.cookies(address)).some((cookie) => cookie.name.startsWith("isles-")));
        await isRefused(context, address);
        // What that page was refused stands in its console.
        faults.length = 0;
    });
});

/** Opens a page on another port, with the session's cookie at hand, that asks the server in four ways. */
async function isRefused(context, address) {
    const other = createServer((_, response) => {
        response.writeHead(200, { "Content-Type": "text/html" });
        response.end("<!doctype html><title>another port</title>");
    });
    await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
    try {
        const page = await context.newPage();
        await page.goto(`http://127.0.0.1:${other.address().port}/`);
        // What the server has answered, also where the browser keeps it from the page.
        const statuses = [];
        const session = await context.newCDPSession(page);
        await session.send("Network.enable");
        session.on("Network.responseReceivedExtraInfo", ({ statusCode }) => statuses.push(statusCode));
        const read = await page.evaluate(async (to) => {
            const got = [];
            const text = (answer) => answer.text();
            got.push(await fetch(`${to}api/v1/run`, { credentials: "include" }).then(text).catch(() => ""));
            got.push(await fetch(`${to}api/v1/session`, { method: "POST", mode: "no-cors", credentials: "include" })
                .then(text).catch(() => ""));
            await new Promise((done) => {
                const image = new Image();
                image.onload = image.onerror = done;
                image.src = `${to}favicon.svg`;
            });
            await new Promise((done) => {
                const source = new EventSource(`${to}api/v1/stream`, { withCredentials: true });
                source.onmessage = () => got.push("a message");
                source.onerror = () => done(source.close());
            });
            return got.join("");
        }, address);
        assert.equal(read, "", "nothing of the run is read");
        assert.ok(statuses.length === 4 && statuses.every((status) => status === 403), `${statuses}`);
        await page.close();
    } finally {
        await new Promise((resolve) => other.close(resolve));
    }
}

test("1,024 places of a modelled chip: usable within a second, no task of 50 ms, under 150 MB", async (context) => {
    const own = scratch();
    try {
        const file = join(own.folder, "many.toml");
        writeFileSync(file, manyCores());
        const words = ["run", "uts", "--tree", "T3L", "--machine", `chip:${file}`, "--places", "1024",
            "--protocol", "ring", "--ui"];
        await onRun(words, async ({ page, run }) => {
            const again = await open(theBrowser(), await run.address());
            const first = await again.page.evaluate(() => performance.getEntriesByName("picture")[0].startTime);
            await again.context.close();
            assert.equal(await page.locator(".map-canvas").count(), 1);
            await page.focus(".map-canvas");
            await page.keyboard.press("ArrowRight");
            await page.waitForFunction(() => document.querySelector(".map-line").textContent.startsWith("place 1,"));
            let news = Infinity;
            const { longest, events } = await tasksOf(page, async () => {
                news = await newsOf(page);
            });
            const memory = await rendererOf(theBrowser());
            context.diagnostic(`first picture ${first.toFixed(0)} ms, news each ${news.toFixed(0)} ms, `
                + `${events} tasks, longest ${longest.toFixed(1)} ms, `
                + `process ${memory.toFixed(0)} MB`);
            assert.ok(first < 1000, `${first} ms`);
            assert.ok(news < 750, `a snapshot each ${news} ms`);
            assert.ok(longest < 50, `${longest} ms`);
            assert.ok(memory < 150, `${memory} MB`);
            // A paused picture stands still while the page goes on collecting.
            await page.keyboard.press("p");
            await page.waitForFunction(() => window.isles.store.collected >= 2);
            await page.waitForSelector('.banner:has-text("Paused")');
        });
    } finally {
        own.remove();
    }
});

/** The mesh to copy of `chips/`, of 32 x 16 tiles with two cores each. */
function manyCores() {
    const change = (text, from, to) => {
        assert.ok(text.includes(from), `chips/mesh.toml has ${from}`);
        return text.replace(from, to);
    };
    return [
        ["tiles = [4, 4]", "tiles = [32, 16]"], ["cores_per_tile = 1", "cores_per_tile = 2"],
        ["at = [3, 3]", "at = [31, 15]"], ["serves_to = [3, 1]", "serves_to = [31, 7]"],
        ["serves_from = [0, 2]", "serves_from = [0, 8]"], ["serves_to = [3, 3]", "serves_to = [31, 15]"],
    ].reduce((text, [from, to]) => change(text, from, to), readFileSync(join(CHIPS, "mesh.toml"), "utf8"));
}

test("a host is told with the files that say it, or why nobody can read them", async () => {
    await onRun(HOST, async ({ page }) => {
        await page.waitForSelector(".host");
        const text = await page.textContent(".host");
        assert.match(text, /(Power: not readable here: \/sys\/|Power of [\w-]+.*\/sys\/class\/powercap)/);
        assert.match(text, /(Clocks: not readable here: \/sys\/|Clocks of processors.*MHz.*\/sys\/devices)/);
    });
    await onRun(CHIP, async ({ page }) => {
        await page.waitForSelector(".cell");
        assert.equal(await page.locator(".host").count(), 0, "a modelled chip is none");
    });
});
