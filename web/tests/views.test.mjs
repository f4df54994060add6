// Each view, by mouse and by the keyboard alone: on a chip with 48 cores, on 4 processes, or on the run of ISLES_UI.

import { test } from "node:test";
import assert from "node:assert/strict";
import { REAL } from "./browser.mjs";
import { focused, go, invented, onPage, painted, places, shown, withBrowser } from "./run.mjs";

withBrowser();
const RUNS = REAL ? ["the real run"] : ["scc", "host"];
/** Nearly equal numbers of pixels. */
const near = (value, wanted) =>
    assert.ok(Math.abs(value - wanted) < 0.02 * Math.abs(wanted) + 1.5, `${value}, not ${wanted}`);
const settledPane = (page, view, posed) =>
    page.waitForSelector(`.pane[data-view="${view}"] .pane-body[data-posed="${posed}"]`);

/** Lays a view by two fingers, and then straight again; `part` is something on it, whose box tells how it lies. */
async function fingersLay(page, view, part) {
    const body = page.locator(`.pane[data-view="${view}"] .pane-body`);
    await body.scrollIntoViewIfNeeded();
    const seen = page.locator(`.pane[data-view="${view}"] ${part}`);
    const frame = await body.boundingBox();
    const about = { x: Math.round(frame.x + frame.width / 2), y: Math.round(Math.max(frame.y, 0) + 120) };
    const boxOf = async () => {
        const { x, y, width, height } = await seen.boundingBox();
        return { width, height, x: x + width / 2 - about.x, y: y + height / 2 - about.y };
    };
    const first = await boxOf();
    const session = await page.context().newCDPSession(page);
    const send = (type, points) => session.send("Input.dispatchTouchEvent", { type, touchPoints: points });
    const pair = (reach, angle, by = { x: 0, y: 0 }) => [1, -1].map((side) => ({
        x: about.x + by.x + side * reach * Math.cos(angle), y: about.y + by.y + side * reach * Math.sin(angle),
        id: side + 1,
    }));
    /** From two fingers on a line through the middle to two others, over one between. */
    const gesture = async (...ways) => {
        for (const [at, way] of ways.entries()) await send(at === 0 ? "touchStart" : "touchMove", pair(...way));
        await send("touchEnd", []);
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    };
    // Out: all is larger, and what is under the middle stays there.
    await gesture([40, 0], [50, 0], [60, 0]);
    await settledPane(page, view, "true");
    const large = await boxOf();
    near(large.width, 1.5 * first.width);
    near(large.x, 1.5 * first.x);
    near(large.y, 1.5 * first.y);
    // Back in, and a quarter of a turn.
    await gesture([60, 0], [50, Math.PI / 4], [40, Math.PI / 2]);
    const turned = await boxOf();
    near(turned.width, first.height);
    near(turned.height, first.width);
    near(turned.x, -first.y);
    near(turned.y, first.x);
    // Both fingers go the same way.
    await gesture([40, 0], [40, 0, { x: 20, y: 10 }], [40, 0, { x: 40, y: 20 }]);
    const moved = await boxOf();
    near(moved.x, turned.x + 40);
    near(moved.y, turned.y + 20);
    assert.equal(await page.evaluate(() => visualViewport.scale), 1, "the page itself is not zoomed");
    await page.tap(`.pane[data-view="${view}"] button:text-is("Straighten")`);
    await settledPane(page, view, "false");
    // One finger lays nothing.
    const [finger] = pair(40, 0);
    await send("touchStart", [finger]);
    await send("touchMove", [{ ...finger, x: finger.x + 30 }]);
    await send("touchEnd", []);
    await settledPane(page, view, "false");
    const last = await boxOf();
    near(last.width, first.width);
    near(last.x, first.x);
}

const pane = (page, view) => page.locator(`.pane[data-view="${view}"]`);

for (const scenario of RUNS) {
    test(`${scenario}: the map has a cell for each place with number, height and words`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            const many = await places(page);
            const cells = page.locator(".cell[data-place]");
            assert.equal(await cells.count(), many);
            const cell = cells.nth(Math.min(1, many - 1));
            assert.match(await cell.locator(".unseen").textContent(), /^place \d+.*(load \d+ %|dead|silent|ended)/);
            assert.match(await cell.locator(".cell-value").textContent(), /^(\d+|✕|\?)$/);
            const loads = await page.$$eval(".cell[data-place]", (all) => all.map((one) =>
                [one.querySelector(".cell-value").textContent, one.querySelector(".cell-fill").style.height]));
            for (const [number, height] of loads) {
                if (!/^\d+$/.test(number)) continue;
                assert.ok(Math.abs(Number(number) - parseFloat(height)) <= 0.6, `${number} ${height}`);
            }
        });
    });

    test(`${scenario}: a click opens a place, a second takes its pane, a pinned one stays`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            await page.click('.cell[data-place="1"]');
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 1")');
            await page.click('.cell[data-place="2"]');
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 2")');
            assert.equal(await pane(page, "core").count(), 1);
            await page.click('button[aria-label="Pin Place 2"]');
            await page.click('.cell[data-place="3"]');
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 3")');
            assert.equal(await pane(page, "core").count(), 2);
            assert.equal(await page.locator('.cell[aria-selected="true"]').count(), 2);
            await page.reload();
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 3")');
            assert.equal(await pane(page, "core").count(), 2, "a reload keeps what is open");
            await page.click('button[aria-label="Close Place 3"]');
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 3")', { state: "detached" });
        });
    });

    test(`${scenario}: arrow keys walk the map as it lies; Enter opens, Escape goes back, Space pins`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            await page.keyboard.press("g");
            await page.keyboard.press("c");
            await page.keyboard.press("Escape");
            assert.equal((await focused(page)).place, "0");
            const box = async () => page.locator(".cell:focus").boundingBox();
            const from = await box();
            await page.keyboard.press("ArrowRight");
            const right = await box();
            assert.ok(right.x > from.x && Math.abs(right.y - from.y) < 2, "right is to the right");
            if (await page.evaluate(() => window.isles.store.run.mesh !== null)) {
                await page.keyboard.press("ArrowUp");
                assert.ok((await box()).y < right.y, "up is above");
                assert.equal((await focused(page)).place, "13");
                await page.keyboard.press("End");
                assert.equal((await focused(page)).place, "23");
                await page.keyboard.press("Home");
                assert.equal((await focused(page)).place, "12");
                await page.keyboard.press("ArrowDown");
                assert.equal((await focused(page)).place, "0");
                await page.keyboard.press("ArrowRight");
            }
            await page.keyboard.press("Enter");
            await page.waitForSelector('.pane[data-view="core"] h2:focus:text-is("Place 1")');
            await page.keyboard.press("Escape");
            await page.waitForSelector('.pane[data-view="core"]', { state: "detached" });
            assert.equal((await focused(page)).place, "1");
            await page.keyboard.press("Space");
            await page.keyboard.press("ArrowRight");
            await page.keyboard.press("Space");
            await page.waitForFunction(() => document.querySelectorAll('.pane[data-view="core"]').length === 2);
            assert.equal((await focused(page)).place, "2", "pinning leaves the keyboard on the map");
            await page.keyboard.press("Space");
            await page.waitForFunction(() => document.querySelectorAll('.pane[data-view="core"]').length === 1);
        });
    });

    test(`${scenario}: two fingers scale, turn and move views of cores; one does not; keys do as well`, async () => {
        await onPage({ scenario, touch: true, at: "chip*,core:1" }, async ({ page }) => {
            for (const [view, part] of [["chip", '.cell[data-place="2"]'], ["core", ".chart"]]) {
                await fingersLay(page, view, part);
            }
            const cell = page.locator('.pane[data-view="chip"] .cell[data-place="2"]');
            const before = await cell.boundingBox();
            await page.focus('.pane[data-view="chip"] h2');
            await page.keyboard.press("+");
            await settledPane(page, "chip", "true");
            near((await cell.boundingBox()).width, 1.25 * before.width);
            for (const key of ["r", "r", "r"]) await page.keyboard.press(key);
            await page.waitForFunction(() => document.querySelector('.pane[data-view="chip"] .pane-body > *')
                .style.transform.includes("rotate(1.571rad)"));
            near((await cell.boundingBox()).width, 1.25 * before.height);
            // What is turned is pressed where it is seen.
            await cell.tap();
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 2")');
            await page.focus('.pane[data-view="chip"] h2');
            await page.keyboard.press("0");
            await settledPane(page, "chip", "false");
            assert.deepEqual(await cell.boundingBox(), before);
        });
    });

    test(`${scenario}: the map as a table has the numbers of the places, in the order of choice`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            const many = await places(page);
            await page.click('.pane[data-view="chip"] button:text-is("Show as table")');
            await page.waitForSelector('.pane[data-view="chip"] table');
            assert.equal(await page.locator('[aria-label="Table of places"] tbody tr').count(), Math.min(64, many));
            await page.click('button.sort:has-text("Load")');
            await page.waitForSelector('th[aria-sort="descending"]');
            // Read in one go: the numbers change twice a second.
            const loads = await page.$$eval('[aria-label="Table of places"] tbody tr',
                (rows) => rows.map((row) => parseInt(row.children[2].textContent)));
            assert.deepEqual(loads, [...loads].sort((a, b) => b - a));
            await page.keyboard.press("t");
            await page.waitForSelector(".pane[data-view=chip] .map");
        });
    });

    test(`${scenario}: other quantities fill the map as well`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            const quantities = await page.$$eval(".pane[data-view=chip] option", (all) => all.map((one) => one.value));
            for (const quantity of quantities) {
                await page.selectOption(".pane[data-view=chip] select", quantity);
                await page.waitForFunction((key) =>
                    document.querySelector("isles-place-grid, isles-place-canvas").metric === key, quantity);
                const text = await page.textContent(".cell-value");
                assert.match(text, /^([\d.]+[kMGT]?|–|✕|\?)$/, quantity);
            }
        });
    });

    test(`${scenario}: the history of a place is drawn, spoken by arrow keys, and a table`, async () => {
        await onPage({ scenario, at: "core:1" }, async ({ page }) => {
            await page.waitForSelector(".chart canvas");
            await page.waitForFunction(() => window.isles.store.shown !== null);
            assert.ok(await painted(page, ".chart canvas") >= 2, "a curve is on the canvas");
            const plot = page.locator(".chart-plot");
            await plot.focus();
            await page.keyboard.press("Home");
            await page.waitForFunction(() => document.querySelector(".chart-plot").ariaValueText.startsWith("at 0:0"));
            const first = await plot.getAttribute("aria-valuetext");
            await page.keyboard.press("PageUp");
            await page.waitForFunction((was) => document.querySelector(".chart-plot").ariaValueText !== was, first);
            assert.match(await plot.getAttribute("aria-valuetext"), /^at \d+:\d\d: \d+ %$/);
            await page.click('.chart button:text-is("Show as table")');
            await page.waitForSelector(".chart table tbody tr");
            const other = await page.$eval(".pane[data-view=core] .tools select", (select) => select.options[1]?.value);
            if (other) {
                await page.selectOption(".pane[data-view=core] .tools select", other);
                await page.waitForSelector(`.chart th:has-text("${other}")`);
            }
        });
    });

    test(`${scenario}: the view of a place steps to its neighbours, says what runs and what it printed`, async () => {
        await onPage({ scenario, at: "core:1" }, async ({ page }) => {
            await page.click('.pane[data-view="core"] button:text-is("Next")');
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 2")');
            await page.fill('.pane[data-view="core"] input[type=number]', "0");
            await page.keyboard.press("Tab");
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 0")');
            assert.match(await page.textContent(".pane[data-view=core] .figures"), /State.*Load.*Tasks run/s);
            assert.match(await page.textContent(".pane[data-view=core] .beside"), /What runs here/);
            await page.waitForSelector(".output p");
            await page.keyboard.press("Escape");
            await page.keyboard.press("l");
            await page.waitForFunction(() => document.activeElement.classList.contains("output"));
        });
    });

    test(`${scenario}: the matrix says who talks to whom, by cursor, by pointer and as a table`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            await page.click('.views button:has-text("Messages")');
            await page.waitForSelector(".matrix canvas");
            await page.waitForFunction(() => document.querySelector(".matrix canvas").width > 100);
            assert.ok(await painted(page, ".matrix canvas") >= 3);
            const line = () => page.textContent(".matrix .map-line");
            await page.focus(".matrix canvas");
            await page.keyboard.press("ArrowRight");
            assert.match(await line(), /^places? 0.* → places? 1.*: [\d,.]+( [kMG])? messages?, /);
            await page.keyboard.press("ArrowDown");
            await page.keyboard.press("Home");
            assert.match(await line(), /^places? 1.* → places? 0/);
            const box = await page.locator(".matrix canvas").boundingBox();
            await page.mouse.move(box.x + box.width - 5, box.y + 26);
            assert.match(await line(), new RegExp(`^places? 0.* → place.* ${await places(page) - 1}: `));
            await page.mouse.move(0, 0);
            await page.keyboard.press("Enter");
            await page.waitForSelector('.pane[data-view="core"] h2:focus:text-is("Place 1")');
            await page.keyboard.press("g");
            await page.keyboard.press("m");
            await page.waitForSelector(".matrix canvas");
            await page.keyboard.press("t");
            await page.waitForSelector(".pane[data-view=messages] table tbody tr");
        });
    });

    test(`${scenario}: finishes are a tree that arrow keys walk, close and open`, async () => {
        await onPage({ scenario, at: "finishes*" }, async ({ page }) => {
            await page.waitForSelector('[role="tree"]');
            const rows = () => page.locator('[role="treeitem"]').count();
            const all = await rows();
            await page.focus('[role="treeitem"][tabindex="0"]');
            await page.keyboard.press("ArrowDown");
            assert.equal(await page.getAttribute('[role="treeitem"]:focus', "aria-level"), "2");
            // The real run has two: its own, and one in it that has none.
            if (REAL) await page.keyboard.press("ArrowUp");
            await page.keyboard.press("ArrowLeft");
            await page.waitForFunction((many) => document.querySelectorAll('[role="treeitem"]').length < many, all);
            assert.equal(await page.getAttribute('[role="treeitem"]:focus', "aria-expanded"), "false");
            await page.keyboard.press("ArrowRight");
            await page.waitForFunction((many) => document.querySelectorAll('[role="treeitem"]').length === many, all);
            if (!REAL) await page.keyboard.press("ArrowLeft");
            if (!REAL) await page.keyboard.press("ArrowLeft");
            assert.equal(await page.getAttribute('[role="treeitem"]:focus', "aria-level"), "1");
            await page.keyboard.press("Enter");
            await page.waitForSelector('.pane[data-view="core"] h2:focus:text-is("Place 0")');
            await page.click('.tree-sign:text-is("▾")');
            await page.waitForFunction(() => document.querySelectorAll('[role="treeitem"]').length === 1);
        });
    });

    test(`${scenario}: stages say place, rate and queue, and are offered where there are some`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            if (scenario !== "host") {
                await page.waitForFunction(() =>
                    performance.getEntriesByType("resource").some(({ name }) => name.includes("stages")));
                assert.equal(await page.locator('nav.views button:text-is("Stages")').count(), 0);
                return;
            }
            await page.click('nav.views button:text-is("Stages")');
            await page.waitForSelector(".pane[data-view=stages] tbody tr");
            const rows = await page.locator(".pane[data-view=stages] tbody tr").allInnerTexts();
            assert.equal(rows.length, 4);
            assert.match(rows[1], /match\s+place 1\s+6\.0\s+4 of 4/);
            await page.click('.pane[data-view=stages] button.link:text-is("place 2")');
            await page.waitForSelector('.pane[data-view="core"] h2:text-is("Place 2")');
        });
    });

    test(`${scenario}: power is shown where it is known, and nowhere else`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            const watts = await shown(page, "shown.places.watt");
            if (!watts) {
                assert.equal(await page.locator('.views button:has-text("Power")').count(), 0);
                await page.keyboard.press("g");
                await page.keyboard.press("p");
                assert.equal(await page.locator('.pane[data-view="power"]').count(), 0);
                return;
            }
            await page.keyboard.press("g");
            await page.keyboard.press("p");
            await page.waitForSelector('.pane[data-view="power"] .chart canvas');
            assert.ok(await painted(page, ".pane[data-view=power] .chart canvas") >= 2);
            const cores = await page.$$eval(".pane[data-view=power] .halves tbody tr",
                (rows) => rows.reduce((total, row) => total + Number(row.children[2].textContent), 0));
            assert.equal(cores, watts.length);
            // The page draws a snapshot in the frame after it has come.
            await page.waitForFunction(() => {
                const said = parseFloat(document.querySelector(".pane[data-view=power] dd").textContent);
                const { watt } = window.isles.store.shown.power;
                return Math.abs(said - watt) < 0.06;
            });
            await page.click('button:text-is("Show clocks")');
            await page.waitForFunction(() => /^\d{3,4}$/.test(
                document.querySelector(".pane[data-view=power] .cell-value").textContent));
        });
    });

    test(`${scenario}: warnings say what, where and for how long, and lead to the place`, async () => {
        await onPage({ scenario }, async ({ page }) => {
            await page.click('.views button:has-text("Warnings")');
            if (REAL) {
                // That run goes on, so an open finish is no warning, however long it is open.
                await page.waitForSelector('.pane[data-view=warnings] .nothing:text-is("nothing to warn of")');
                assert.equal(await page.locator(".warnings li").count(), 0);
                return;
            }
            await page.waitForSelector(".pane[data-view=warnings] .warnings li");
            assert.match(await page.textContent(".warnings li"), /nothing happens.*place 0.*waits for.*for \d+/s);
            await page.focus(".warnings button.link");
            await page.keyboard.press("Enter");
            await page.waitForSelector('.pane[data-view="core"] h2:focus:text-is("Place 0")');
        });
    });
}

test("the palette finds commands by letters and places by number, and gives the keyboard back", async () => {
    await onPage({ scenario: "scc" }, async ({ page }) => {
        await page.keyboard.press("Control+k");
        await page.waitForSelector("dialog.palette[open]");
        assert.equal((await focused(page)).role, "combobox");
        await page.keyboard.type("mess");
        await page.waitForFunction(() => document.querySelectorAll(".palette li").length === 1);
        await page.keyboard.press("Enter");
        await page.waitForSelector('.pane[data-view="messages"] h2:focus');
        await page.keyboard.press("/");
        await page.keyboard.type("2");
        await page.keyboard.press("ArrowDown");
        await page.waitForSelector('.palette li[aria-selected="true"]:has-text("Pin place 2")');
        await page.keyboard.press("ArrowUp");
        await page.keyboard.press("Enter");
        await page.waitForSelector('.pane[data-view="core"] h2:focus:text-is("Place 2")');
        await page.keyboard.press("Control+k");
        await page.keyboard.press("Escape");
        await page.waitForSelector("dialog.palette[open]", { state: "detached" });
        assert.equal((await focused(page)).text, "Place 2", "closing gives the keyboard back");
        await page.click('button:has-text("Commands")');
        await page.click('.palette li:has-text("Dark theme")');
        await page.waitForSelector(':root[data-theme="dark"]');
    });
});

test("the help lists the keys, and single letters can be switched off", async () => {
    await onPage({ scenario: "scc" }, async ({ page }) => {
        await page.keyboard.press("?");
        await page.waitForSelector("dialog.help[open]");
        assert.match(await page.textContent("dialog.help"), /g m.*messages/s);
        await page.click(".help .switch input");
        await page.keyboard.press("Escape");
        await page.keyboard.press("g");
        await page.keyboard.press("m");
        await page.keyboard.press("p");
        assert.equal(await shown(page, "paused"), false);
        assert.equal(await page.locator('.pane[data-view="messages"]').count(), 0);
        await page.keyboard.press("Control+k");
        await page.waitForSelector("dialog.palette[open]");
    });
});

test("b pins a view, F6 goes to the next, f follows the output or stops, t shows its tables", invented, async () => {
    await onPage({ scenario: "scc", at: "chip*,core:1" }, async ({ page }) => {
        await page.waitForSelector(".output p");
        await page.keyboard.press("F6");
        assert.equal((await focused(page)).text, "Place 1");
        await page.keyboard.press("b");
        await page.waitForSelector('button[aria-label="Pin Place 1"][aria-pressed="true"]');
        await page.keyboard.press("f");
        await page.waitForSelector('button[aria-pressed="false"]:text-is("Follow")');
        await page.keyboard.press("f");
        await page.waitForSelector('button[aria-pressed="true"]:text-is("Follow")');
        await page.keyboard.press("t");
        await page.waitForSelector(".pane[data-view=core] .chart table");
        await page.keyboard.press("F6");
        assert.match((await focused(page)).text, /^(Chip|Places)/);
        await page.keyboard.press("t");
        await page.waitForSelector('[aria-label="Table of places"]');
    });
});

test("every control is reached by Tab, is seen when it is, and none holds the keyboard", async () => {
    await onPage({ scenario: "scc", at: "chip*,core:1*" }, async ({ page }) => {
        await page.waitForSelector(".output p");
        const reached = [];
        for (let step = 0; step < 80; step++) {
            await page.keyboard.press("Tab");
            const now = await page.evaluate(() => {
                const element = document.activeElement;
                if (element === document.body) return null;
                const style = getComputedStyle(element);
                const name = element.getAttribute("aria-label") ?? element.textContent.trim().slice(0, 30);
                const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
                return { name, tag: element.tagName, ring };
            });
            if (now === null) break;
            reached.push(now);
            assert.ok(now.ring, `${now.tag} ${now.name} has a ring`);
        }
        assert.ok(reached.length < 80, "Tab leaves the page at its end");
        const names = reached.map((one) => one.name).join("\n");
        for (const name of ["Pause", "Commands", "Messages", "place 1", "Show as table", "Output of place 1"]) {
            assert.ok(names.includes(name), `${name} is reached: ${names}`);
        }
        assert.equal(reached.filter((one) => /^place \d+, /.test(one.name)).length, 1, "the map is one stop");
    });
});

test("a stored link with nonsense in it opens what it can", invented, async () => {
    await onPage({ scenario: "host" }, async ({ page }) => {
        await go(page, "core:99,nonsense*,messages,core:3*");
        assert.equal(await page.locator(".pane").count(), 2);
    });
});
