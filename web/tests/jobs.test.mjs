// Jobs by hand, as a user has them: the scenarios of ManyMan's evaluation on 48 modelled cores and on 4 processes, each
// by mouse, by keys and by touch; clocks, hostile names, and the address of those who may look only.

import { test } from "node:test";
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { axe, keep, open } from "./browser.mjs";
import { go, onRun, painted, theBrowser, withBrowser } from "./run.mjs";
import { isles, RealRun, scratch } from "./real.mjs";

withBrowser();
const HOSTILE = "<img src=x onerror=\"window.hostile=1\">[31mtxt";
const MACHINES = {
    "48 modelled cores": ["--machine", "chip:scc"],
    "4 processes": ["--machine", "processes", "--places", "4"],
};
const ENDLESS = "1000000000000";

/** Drags the handle of a job to an element, by mouse or by a finger. */
async function dragJob(page, job, to, touch = false) {
    const [handle, target] = [page.locator(`.job[data-job="${job}"] .job-handle`), page.locator(to).first()];
    // What scrolls for one of them moves the other.
    for (const end of [target, handle]) await end.scrollIntoViewIfNeeded();
    const center = async (locator) => {
        const box = await locator.boundingBox();
        return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    };
    const [from, end] = [await center(handle), await center(target)];
    if (touch) {
        const session = await page.context().newCDPSession(page);
        const send = (type, points) => session.send("Input.dispatchTouchEvent", { type, touchPoints: points });
        await send("touchStart", [from]);
        await send("touchMove", [{ x: (from.x + end.x) / 2, y: (from.y + end.y) / 2 }]);
        await send("touchMove", [end]);
        await send("touchEnd", []);
        return;
    }
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move(end.x, end.y, { steps: 4 });
    await page.mouse.up();
}

const jobState = (page, job, state) =>
    page.waitForSelector(`.job[data-job="${job}"] .job-state:text("${state}")`);

/** What a reader does with the page, by mouse, by keys alone, or by touch alone; text is typed in any case. */
class Hands {
    constructor(page, way) {
        this.page = page;
        this.way = way;
    }

    async press(selector) {
        if (this.way === "mouse") return this.page.click(selector);
        if (this.way === "touch") return this.page.tap(selector);
        await this.page.focus(selector);
        await this.page.keyboard.press("Enter");
    }

    async type(selector, text) {
        if (this.way === "keys") await this.page.focus(selector);
        else await this.press(selector);
        await this.page.keyboard.press("Control+A");
        await this.page.keyboard.press("Delete");
        await this.page.keyboard.type(text);
    }

    /** Chooses from a list, by its first letters if by keys: what a list opens is no part of the page. */
    async choose(selector, value) {
        if (this.way !== "keys") return this.page.selectOption(selector, value);
        await this.page.focus(selector);
        await this.page.keyboard.type(value);
    }

    order(name, job) {
        return this.press(`button[aria-label="${name} job ${job}"]`);
    }

    /** Opens the dialogue of a new job. */
    async ask() {
        if (this.way === "keys") {
            await this.page.focus(".pane[data-view=jobs] h2");
            await this.page.keyboard.press("n");
        } else {
            await this.press('button:text-is("New job")');
        }
        await this.page.waitForSelector(".new-job[open]");
    }

    /** Says that it is a command, by an arrow key if by keys. */
    async chooseCommand() {
        if (this.way !== "keys") return this.press(".new-job [value=command]");
        await this.page.focus(".new-job [value=task]");
        await this.page.keyboard.press("ArrowRight");
    }

    /** Types the words of a job, a field each. */
    async words(words) {
        for (const [index, word] of words.entries()) {
            if (index > 0 && await this.page.locator(".new-job [name=word]").count() === index) {
                await this.press('.new-job button:text-is("Add word")');
            }
            await this.type(`.new-job [name=word] >> nth=${index}`, word);
        }
    }

    /** Makes the job, which closes the dialogue. */
    async done(button) {
        await this.press(`.new-job button:text-is("${button}")`);
        await this.page.waitForSelector(".new-job[open]", { state: "detached" });
    }

    /** Adds a task of the program, or starts it at once. */
    async make(kind, words, name, button) {
        await this.ask();
        await this.page.waitForSelector(`.new-job option[value=${kind}]`, { state: "attached" });
        await this.choose(".new-job [name=kind]", kind);
        await this.words([words]);
        await this.type(".new-job [name=name]", name);
        await this.done(button);
    }

    /** Shows the output of a job, or hides it. */
    async show(job, shows = true) {
        await this.press(`.job[data-job="${job}"] button.link[aria-pressed="${!shows}"]`);
        await this.page.waitForSelector(`section[aria-label="Output of job ${job}"]`,
            { state: shows ? "attached" : "detached" });
    }

    /** Puts a job on a core: it is dragged, or by keys chosen and told where. */
    async put(job, place) {
        if (this.way !== "keys") {
            await dragJob(this.page, job, `.pane[data-view="chip"] .cell[data-place="${place}"]`, this.way === "touch");
            return;
        }
        await this.show(job);
        await this.type(`section[aria-label="Output of job ${job}"] [name=place]`, String(place));
        await this.page.keyboard.press("Enter");
        await jobState(this.page, job, `running at ${place}`);
        await this.show(job, false);
    }

    /** Puts a job among those that wait. */
    async putAside(job) {
        if (this.way === "keys") return this.order("Checkpoint", job);
        await dragJob(this.page, job, '.jobs[data-group="Waiting"] h3', this.way === "touch");
    }

    /** Opens the views of two places beside each other. */
    async compare(first, second) {
        const cell = (place) => `.pane[data-view="chip"] .cell[data-place="${place}"]`;
        if (this.way === "keys") {
            for (const place of [first, second]) {
                await this.page.focus(cell(place));
                await this.page.keyboard.press("Space");
            }
        } else {
            await this.press(cell(first));
            await this.press(`button[aria-label="Pin Place ${first}"]`);
            await this.press(cell(second));
        }
        await this.page.waitForFunction(() => document.querySelectorAll('.pane[data-view="core"] canvas').length === 2);
    }
}

/** A task is made, started, copied, placed by the system, compared, paused, written, moved and put aside. */
async function placesTasks({ page, hands }) {
    await hands.make("pi", ENDLESS, "Benchmark", "Add");
    await jobState(page, 2, "new");
    await hands.put(2, 1);
    await jobState(page, 2, "running at 1");
    await hands.order("Duplicate", 2);
    await jobState(page, 3, "new");
    await hands.order("Start", 3);
    await jobState(page, 3, "running at");
    await page.waitForSelector(".jobs-said:text('Job 3 goes to place')");
    const where = await page.textContent('.job[data-job="3"] .job-state');
    assert.notEqual(where, "running at 1", "the best core is not the one that has a task");
    await hands.compare(1, 2);
    await hands.show(2);
    await hands.show(3);
    for (const place of [1, 2]) await hands.press(`button[aria-label="Close Place ${place}"]`);
    for (const job of [2, 3]) await hands.show(job, false);
    await hands.order("Pause", 2);
    await jobState(page, 2, "paused");
    await hands.order("Resume", 2);
    await jobState(page, 2, "running at 1");
    await hands.order("Checkpoint", 2);
    await jobState(page, 2, "checkpointed");
    await hands.put(2, 3);
    await jobState(page, 2, "running at 3");
    await hands.put(2, 0);
    await jobState(page, 2, "running at 0");
    await hands.putAside(2);
    await jobState(page, 2, "checkpointed");
    await hands.order("Kill", 3);
    const kept = page.locator('.job[data-job="3"][data-state="running"]');
    assert.equal(await kept.count(), 1, "what is lost is asked for");
    await hands.press('button[aria-label="Really: Kill job 3"]');
    await jobState(page, 3, "stopped");
}

/** The last 100 lines of a task are read, and all of them in its file; a task that has failed is found. */
async function readsOutput({ page, run, hands }) {
    await hands.make("count", "250", "Count", "Start");
    await jobState(page, 4, "finished");
    await hands.show(4);
    const output = 'section[aria-label="Output of job 4"]';
    await page.waitForSelector(`${output} .output p:text-is("250")`);
    const lines = await page.locator(`${output} .output p`).allTextContents();
    assert.deepEqual(lines, Array.from({ length: 100 }, (_, line) => String(151 + line)));
    const file = /before these lines are\s+in (\S+)/.exec(await page.textContent(`${output} .note`))[1];
    assert.equal(readFileSync(resolve(run.folder, file), "utf8").trim().split("\n").length, 250);
    await hands.type("input[type=search]", "failed");
    await page.waitForSelector('.job[data-job="4"]', { state: "detached" });
    const over = await page.$$eval('.jobs[data-group="Over"] .job', (all) => all.map((job) => job.dataset.job));
    assert.deepEqual(over, ["1"]);
    assert.match(await page.textContent('.job[data-job="1"] .note'), /job server/, "why it has failed");
    await hands.show(1);
    await page.waitForSelector('section[aria-label="Output of job 1"] .output p:text-matches("^[0-9]+$")');
    await hands.order("Remove", 1);
    await hands.press('button[aria-label="Really: Remove job 1"]');
    await page.waitForSelector('.job[data-job="1"]', { state: "detached" });
    await hands.type("input[type=search]", "");
}

/** Clocks of the chip and of a domain are set, and its power is read; a host says what can be read of it. */
async function setsClocks({ page, hands, isChip }) {
    if (!isChip) {
        assert.equal(await page.locator(".jobs-clock").count(), 0, "nobody turns the clocks of a host");
        assert.match(await page.textContent(".host"), /Power.*\/sys\/.*Clocks.*\/sys\//s);
        return;
    }
    await hands.choose(".jobs-clock", "8");
    await page.waitForSelector(".jobs-said:text('6 supplies now divide their clock by 8')");
    await hands.press('.views button:has-text("Power")');
    await page.waitForSelector('.clocks-divider[data-domain="2"]', { state: "attached" });
    await hands.choose('.clocks-divider[data-domain="2"]', "4");
    await page.waitForSelector(".clocks .jobs-said:text('1 supply now divides its clock by 4')");
    await page.waitForFunction(() => [2, 1].map((domain) =>
        document.querySelector(`.clocks-divider[data-domain="${domain}"]`).value).join() === "4,8");
    await page.waitForFunction(() => document.querySelector(".pane[data-view=power] isles-chart")?.curve?.x.length > 1);
    assert.ok(await painted(page, '.pane[data-view="power"] .chart canvas') >= 2, "the power is drawn");
    await page.focus('.pane[data-view="power"] .chart-plot');
    await page.keyboard.press("End");
    assert.match(await page.getAttribute('.pane[data-view="power"] .chart-plot', "aria-valuetext"), /W/);
}

/** Leaves a task in a folder whose job server was killed: it has failed, and has written something. */
async function losesTask(words, folder) {
    const state = ["--state", join(folder, "jobs")];
    const lost = new RealRun(["serve", ...words, ...state], { folder });
    try {
        await lost.hasSaid("jobs are managed in");
        const start = ["start", "--name", "Lost", "--task", "count", "--", "1000000000000"];
        const told = isles(["job", ...state, ...start]);
        assert.equal(told.code, 0, told.error);
        while (!/^[0-9]+$/m.test(isles(["job", ...state, "output", "1"]).out)) assert.equal(lost.child.exitCode, null);
    } finally {
        await lost.stop();
    }
}

for (const [machine, words] of Object.entries(MACHINES)) {
    for (const way of ["mouse", "keys", "touch"]) {
        test(`the scenarios of ManyMan's evaluation on ${machine}, by ${way}`, async () => {
            const own = scratch();
            try {
                await losesTask(words, own.folder);
                await onRun(["serve", ...words, "--ui", "--state", "jobs"], async ({ page, run }) => {
                    const known = { page, run, hands: new Hands(page, way), isChip: machine !== "4 processes" };
                    await jobState(page, 1, "failed");
                    assert.equal(await page.locator(".cell[data-place]").count(), known.isChip ? 48 : 4);
                    await placesTasks(known);
                    await readsOutput(known);
                    assert.deepEqual(await axe(page), [], "who cannot see or point can use it");
                    await setsClocks(known);
                }, { touch: way === "touch", folder: own.folder });
            } finally {
                own.remove();
            }
        });
    }
}

test("the picture page-jobs of a real run is taken, and is small", async () => {
    const words = ["serve", "--machine", "chip:scc", "--ui", "--demo", "--seed", "7", "--state", "jobs"];
    await onRun(words, async ({ page }) => {
        await page.waitForFunction(() => document.querySelectorAll(".job").length >= 16);
        await page.waitForSelector('.job[data-state="finished"]');
        await page.click('.job[data-state="running"] button.link');
        await page.waitForSelector(".jobs .output");
        await keep(page, "page-jobs");
    });
});

for (const touch of [false, true]) {
    test(`jobs on a modelled chip: added, started, moved and written by ${touch ? "touch" : "mouse"}, paused by keys`,
        async () => {
            const words = ["serve", "--machine", "chip:scc", "--ui", "--state", "jobs"];
            await onRun(words, async ({ page, run }) => {
                await new Hands(page, touch ? "touch" : "mouse").make("pi", ENDLESS, HOSTILE, "Add");
                await jobState(page, 1, "new");
                assert.ok(await page.evaluate(() => window.hostile === undefined), "names are text");
                await dragJob(page, 1, '.cell[data-place="5"]', touch);
                await jobState(page, 1, "running at 5");
                await dragJob(page, 1, '.cell[data-place="9"]', touch);
                await jobState(page, 1, "running at 9");
                await dragJob(page, 1, '.jobs[data-group="Waiting"] h3', touch);
                await jobState(page, 1, "checkpointed");
                await page.focus('button[aria-label="Start job 1"]');
                await page.keyboard.press("Enter");
                await jobState(page, 1, "running");
                await page.focus('button[aria-label="Pause job 1"]');
                await page.keyboard.press("Enter");
                await jobState(page, 1, "paused");
                await page.click('button[aria-label="Duplicate job 1"]');
                await jobState(page, 2, "new");
                await page.click('button[aria-label="Remove job 2"]');
                assert.equal(await page.locator('.job[data-job="2"]').count(), 1, "what is lost is asked for first");
                await page.click('button[aria-label="Really: Remove job 2"]');
                await page.waitForSelector('.job[data-job="2"]', { state: "detached" });
                await page.selectOption(".jobs-clock", "8");
                await page.waitForSelector(".jobs-said:text('6 supplies now divide their clock by 8')");
                await page.fill("input[type=search]", "no such job");
                await page.waitForSelector('.job[data-job="1"]', { state: "detached" });
                await page.fill("input[type=search]", "");
                await page.waitForSelector('.job[data-job="1"]');
                assert.deepEqual(await axe(page), [], "who cannot see or point can use it");
                // Who has the other address may look only.
                const view = /watch it only at +(\S+)/.exec(run.said)[1].replace(/\/\/[^:]+/, "//127.0.0.1");
                const other = await open(theBrowser(), view, {});
                await other.page.waitForSelector('.job[data-job="1"]');
                assert.equal(await other.page.locator(".job-handle, .job-orders button, .new-job").count(), 0);
                const refused = await other.page.evaluate(() => fetch("api/v1/jobs", {
                    method: "POST", headers: { "Content-Type": "application/json" },
                    body: JSON.stringify({ ask: "tell", job: 1, order: "kill" }),
                }).then((answer) => answer.status));
                assert.equal(refused, 403);
                await other.context.close();
                await jobState(page, 1, "paused");
            }, { touch });
        });
}

/** What the server answers to the page when it asks for a job. */
const askFor = (page, request) => page.evaluate((body) => fetch("api/v1/jobs", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
}).then(async (answer) => `${answer.status} ${(await answer.json()).type}`), request);

for (const way of ["mouse", "keys", "touch"]) {
    test(`a command is made on the page, managed and refused, by ${way}`, async () => {
        const words = ["serve", "--places", "6", "--ui", "--allow-commands", "--state", "jobs"];
        await onRun(words, async ({ page, run }) => {
            const hands = new Hands(page, way);
            await hands.ask();
            await page.waitForSelector(".new-job [value=command]:enabled");
            await hands.chooseCommand();
            assert.deepEqual(await axe(page), [], "who cannot see or point can use it");
            await hands.words(["sleep", "100"]);
            await hands.type(".new-job [name=name]", HOSTILE);
            await hands.type(".new-job [name=at]", "5");
            await hands.done("Start");
            await jobState(page, 1, "running at 5");
            assert.ok(await page.evaluate(() => window.hostile === undefined), "names are text");
            await hands.order("Pause", 1);
            await jobState(page, 1, "paused");
            await hands.order("Resume", 1);
            await jobState(page, 1, "running");
            assert.equal(await page.locator('[aria-label="Checkpoint job 1"], [aria-label="Move job 1"]').count(), 0);
            await hands.order("Kill", 1);
            await hands.press('button[aria-label="Really: Kill job 1"]');
            await jobState(page, 1, "stopped");

            // Nothing, then what no shell has split: both are refused where they were typed, and can be mended.
            await hands.ask();
            await hands.press('.new-job button:text-is("Start")');
            await page.waitForSelector(".new-job [role=alert]:text('command not found')");
            const shell = "$(touch done); `touch done` && touch done | tee done";
            await hands.words([`echo ${shell}`]);
            await page.keyboard.press("Enter");
            await page.waitForSelector(".new-job [role=alert]:text('command not found: \"echo $(touch')");
            await page.keyboard.press("Escape");
            await page.waitForSelector(".new-job[open]", { state: "detached" });
            await hands.ask();
            await hands.press('.new-job button:text-is("Split at spaces")');
            assert.equal(await page.locator(".new-job [name=word]").count(), 1 + shell.split(" ").length);
            await hands.press('.new-job button[aria-label="Remove Word 1"]');
            await hands.words(["printf", "%s\\n", shell, "a b", "", "end"]);
            while (await page.locator(".new-job [name=word]").count() > 6) {
                await hands.press('.new-job button[aria-label="Remove Word 6"]');
            }
            await hands.done("Start");
            await jobState(page, 2, "finished");
            await hands.show(2);
            const output = 'section[aria-label="Output of job 2"]';
            await page.waitForSelector(`${output} .output p:text-is("end")`);
            const lines = await page.locator(`${output} .output p`).allTextContents();
            assert.deepEqual(lines, [shell, "a b", "", "end"]);
            assert.match(await page.textContent(`${output} h3`), /printf %s\\n "\$\(touch done.*" "a b" "" end$/);
            assert.ok(!existsSync(join(run.folder, "done")), "no shell has read it");

            const view = /watch it only at +(\S+)/.exec(run.said)[1].replace(/\/\/[^:]+/, "//127.0.0.1");
            const other = await open(theBrowser(), view, {});
            await other.page.waitForSelector('.job[data-job="2"]');
            await other.page.keyboard.press("n");
            assert.equal(await other.page.locator(".new-job, button:text-is('New job')").count(), 0);
            const spec = { name: "n", what: { Command: ["touch", "done"] } };
            assert.equal(await askFor(other.page, { ask: "begin", spec, at: null }),
                "403 urn:isles:problem:no-right-to-change-anything");
            await other.context.close();
            assert.ok(!existsSync(join(run.folder, "done")));
        }, { touch: way === "touch" });
    });
}

test("a page starts no command unless that was allowed, and says so", async () => {
    await onRun(["serve", "--places", "2", "--ui", "--state", "jobs"], async ({ page, run }) => {
        const hands = new Hands(page, "mouse");
        await hands.ask();
        await page.waitForSelector(".new-job option[value=pi]", { state: "attached" });
        assert.ok(await page.isDisabled(".new-job [value=command]"));
        assert.match(await page.textContent(".new-job-what .note"), /--allow-commands/);
        assert.deepEqual(await axe(page), [], "who cannot see or point can use it");
        const spec = { name: "n", what: { Command: ["touch", "done"] } };
        for (const request of [{ ask: "begin", spec, at: null }, { ask: "create", ...spec },
            { ask: "begin", spec: Object.values(spec), at: null }, ["begin", Object.values(spec), null]]) {
            assert.equal(await askFor(page, request), "403 urn:isles:problem:commands-not-allowed");
        }
        assert.equal(await askFor(page, ["end"]), "403 urn:isles:problem:not-from-page");
        await hands.words(["1000"]);
        await hands.done("Start");
        await jobState(page, 1, "finished");
        assert.equal(await page.locator(".job").count(), 1);
        assert.ok(!existsSync(join(run.folder, "done")));
    });
});

test("use of the processors is shown by job, in its colour, beside what was not started here", async () => {
    await onRun(["serve", "--places", "2", "--ui", "--state", "jobs"], async ({ page }) => {
        const hands = new Hands(page, "mouse");
        for (const name of ["first", "second"]) await hands.make("pi", ENDLESS, name, "Start");
        await jobState(page, 2, "running");
        const chart = page.locator('isles-chart:has-text("Use of processors by job")');
        await chart.locator(".chart-value:text-matches('1 first [0-9]+ %.*2 second [0-9]+ %')").waitFor();
        const spoken = await chart.locator(".chart-value").textContent();
        assert.match(spoken, /total [0-9]+ %, not started here [0-9]+ %, 1 first/);
        const colour = (job) => page.locator(`.job[data-job="${job}"] .job-colour`).evaluate((mark) =>
            getComputedStyle(mark).backgroundColor);
        assert.notEqual(await colour(1), await colour(2));
        await chart.locator("button:text-is('Show as table')").click();
        await chart.locator("th:has-text('2 second')").waitFor();
        assert.deepEqual(await axe(page), [], "who cannot see or point can use it");
        await go(page, "core");
        const place = page.locator("isles-chart:has-text('by job')");
        await place.locator(".chart-value:text-matches('total [0-9]+ %')").waitFor();
    });
});

for (const touch of [false, true]) {
    test(`clocks, a voltage and the governor of a modelled chip are turned by keys and ${touch ? "touch" : "mouse"}`,
        async () => {
            const words = ["serve", "--machine", "chip:scc", "--ui", "--state", "jobs", "--demo", "--seed", "7"];
            await onRun(words, async ({ page, run }) => {
                await go(page, "power");
                await page.waitForSelector('.clocks-divider[data-domain="5"]', { state: "attached" });
                const said = (text) => page.waitForSelector(`.clocks .jobs-said:text(${JSON.stringify(text)})`);
                const of = (domain, divider) => page.waitForFunction(([number, wanted]) =>
                    document.querySelector(`.clocks-divider[data-domain="${number}"]`)?.value === wanted,
                [String(domain), String(divider)]);
                await page.selectOption('.clocks-divider[data-domain="2"]', "8");
                await said("1 supply now divides its clock by 8");
                await of(2, 8);
                await of(1, 3);
                // By keys: a choice, and a voltage that ends with Enter.
                await page.focus('.clocks-divider[data-domain="1"]');
                await page.keyboard.press("ArrowDown");
                await of(1, 4);
                await page.focus('.clocks-voltage[data-domain="4"]');
                await page.keyboard.type("1.1");
                await page.keyboard.press("Enter");
                await said("1 supply gets 1.1 V, or the next step above");
                await page.waitForSelector('.clocks tr:has([data-domain="4"]) td:text("1.1625 V")');
                await page.focus('.clocks-voltage[data-domain="4"]');
                await page.keyboard.type("3");
                await page.keyboard.press("Enter");
                await said("refused: the voltage is 3 V; allowed: from 0.65625 V to 1.1625 V");
                await page.waitForSelector('.clocks tr:has([data-domain="2"]) td:text("8 to 11, 20 to 23")');
                // The tile of one place alone: others of its domain stay, and the present voltage bounds it.
                await page.focus('.clocks-tile [name="place"]');
                await page.keyboard.press("Control+A");
                await page.keyboard.type("9");
                await page.keyboard.press("Tab");
                await page.waitForFunction(() =>
                    /domain 2, now 200 MHz by 8/.test(document.querySelector(".clocks-tile .note").textContent));
                await page.selectOption(".clocks-tile-divider", "16");
                const turn = page.locator('.clocks-tile button[type="submit"]');
                await (touch ? turn.tap() : turn.click());
                await said("the tile now divides its clock by 16");
                await page.waitForSelector('.clocks tr:has([data-domain="2"]) td:text("100 to 200")');
                await page.selectOption(".clocks-tile-divider", "2");
                await (touch ? turn.tap() : turn.click());
                await page.waitForSelector(".clocks .jobs-said.is-bad:text('voltage is too low for the divider 2')");
                const problem = await page.evaluate(() => fetch("api/v1/jobs", {
                    method: "POST", headers: { "Content-Type": "application/json" },
                    body: JSON.stringify({ ask: "clock", divider: 99, at: null }),
                }).then((answer) => answer.json()));
                assert.equal(problem.type, "urn:isles:problem:no-such-clock");
                assert.equal(problem.detail, "the divider is 99; allowed: a whole number from 2 to 16");
                await page.selectOption('.clocks-divider[data-domain="all"]', "2");
                await said("6 supplies now divide their clock by 2");
                await of(5, 2);
                // One domain alone: another keeps its own governor, and none is left when the whole chip gets one.
                await page.selectOption(".clocks-policy", "capped");
                await page.fill(".clocks-cap", "4");
                await page.selectOption(".clocks-governed", "2");
                const alone = page.locator(".clocks .jobs-said:text('the governor of supply 2 is capped:4W')");
                const set = page.locator('.clocks form:not(.clocks-tile) button[type="submit"]');
                while (await alone.count() === 0) {
                    await (touch ? set.tap() : set.click());
                    await page.waitForSelector(".clocks .jobs-said:text-matches('the governor of|under way')");
                    await page.selectOption(".clocks-policy", "capped");
                    await page.fill(".clocks-cap", "4");
                }
                await page.waitForSelector('.clocks tr:has([data-domain="2"]) td:text-is("capped:4W")');
                await page.waitForSelector('.clocks tr:has([data-domain="1"]) td:text-is("fixed")');
                await page.selectOption(".clocks-governed", "all");
                // A governor begins when no change of a voltage is under way; until then it is refused.
                await page.selectOption(".clocks-policy", "capped");
                await page.fill(".clocks-cap", "40");
                const governor = page.locator(".clocks .note:text('governor: capped:40W')");
                while (await governor.count() === 0) {
                    await (touch ? set.tap() : set.click());
                    await page.waitForSelector(".clocks .jobs-said:text-matches('the governor is|under way')");
                }
                await page.waitForFunction(() => document.querySelector(".clocks isles-chart")?.curve?.x.length > 1);
                await page.waitForFunction(() => [...document.querySelectorAll(".clocks tbody tr")]
                    .slice(1).every((row) => /J/.test(row.lastElementChild.textContent)));
                assert.deepEqual(await axe(page), [], "who cannot see or point can use it");
                const view = /watch it only at +(\S+)/.exec(run.said)[1].replace(/\/\/[^:]+/, "//127.0.0.1");
                const other = await open(theBrowser(), view, {});
                await go(other.page, "power");
                await other.page.waitForSelector(".clocks table");
                assert.equal(await other.page.locator(".clocks select, .clocks input").count(), 0);
                await other.context.close();
            }, { touch });
        });
}
