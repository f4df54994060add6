// The parts of the page that need no browser: text, maps, layouts, rates, histories, snapshots with holes.

import { before, test } from "node:test";
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { scenarioOf } from "./data.mjs";

const SRC = join(dirname(fileURLToPath(import.meta.url)), "..", "src");
let page;

before(async () => {
    const names = ["draw/text", "draw/map", "draw/colour", "draw/metrics", "model/layout", "model/pose",
        "model/totals", "model/api", "model/history"];
    const { outputFiles } = await build({
        stdin: {
            contents: names.map((name) => `export * from "./${name}";`).join("\n"), resolveDir: SRC, loader: "ts",
        },
        bundle: true, format: "esm", write: false, target: "es2022",
    });
    page = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
});

test("what two fingers hold stays under them, however they go, and what is nearly straight is straight", () => {
    const { UPRIGHT, held, settled, isUpright, transformOf } = page;
    // Where a point of the view is seen: as the browser applies the transform, whose origin is the corner.
    const seen = ({ scale, turn, x, y }, point) => ({
        x: x + scale * (point.x * Math.cos(turn) - point.y * Math.sin(turn)),
        y: y + scale * (point.x * Math.sin(turn) + point.y * Math.cos(turn)),
    });
    const under = [{ x: 100, y: 50 }, { x: 220, y: 90 }];
    let pose = UPRIGHT;
    let from = under;
    for (const to of [[{ x: 90, y: 60 }, { x: 300, y: 10 }], [{ x: 200, y: 200 }, { x: 120, y: 330 }]]) {
        pose = held(pose, from, to);
        from = to;
        for (const finger of [0, 1]) {
            const at = seen(pose, under[finger]);
            assert.ok(Math.hypot(at.x - to[finger].x, at.y - to[finger].y) < 1e-6, `finger ${finger}`);
        }
    }
    assert.ok(held(UPRIGHT, under, [{ x: 0, y: 0 }, { x: 1e5, y: 0 }]).scale <= 5, "nothing grows without end");
    assert.ok(held(UPRIGHT, under, [under[0], under[0]]).scale > 0, "fingers that meet leave something");
    assert.ok(isUpright(settled({ scale: 1.02, turn: 2 * Math.PI + 0.02, x: 2, y: -3 })));
    assert.equal(transformOf(UPRIGHT), "");
    assert.equal(transformOf({ scale: 2, turn: 0.5, x: 3, y: -4 }), "translate(3px, -4px) rotate(0.5rad) scale(2)");
});

test("foreign text loses its control sequences, and what is left of them is seen", () => {
    assert.equal(page.plain("\u001b[31mred\u001b[0m"), "red");
    assert.equal(page.plain("\u001b]0;title\u0007after"), "after");
    assert.equal(page.plain("\u001b]8;;http://x\u001b\\link"), "link");
    assert.equal(page.plain("a\u0000b\u0007\u007f"), "a\u2400b\u2407\u2421");
    assert.equal(page.plain("a\u202eb\u2066"), "a<U+202E>b<U+2066>");
    assert.equal(page.plain("two\n\tlines <b>"), "two\n\tlines <b>");
    assert.equal(page.plain(null), "");
    assert.equal(page.plain("\u001b[31"), "\u241b[31", "a sequence that is cut off hides nothing");
});

test("numbers, sizes, shares and times are short and have their unit", () => {
    assert.equal(page.count(9999), "9,999");
    assert.equal(page.count(10_000), "10.0 k");
    assert.equal(page.count(4_790_000), "4.79 M");
    assert.equal(page.bytes(1023), "1,023 B");
    assert.equal(page.bytes(1024 * 1024 * 1.5), "1.50 MiB");
    assert.equal(page.count(NaN), "–");
    assert.equal(page.percent(0.666), "67 %");
    assert.equal(page.clock(3_723_000), "1:02:03");
    assert.equal(page.span(125_000), "2 min");
    assert.equal(page.plural(1, "task"), "1 task");
    assert.equal(page.watts(0.734), "0.73 W");
});

test("a run is named by what was chosen, not by the folder of its program", () => {
    assert.deepEqual(page.commandOf("/opt/bin/isles-bc", ["--ui"]), { name: "bc", rest: "--ui" });
    assert.deepEqual(page.commandOf("./isles", ["run"]), { name: "isles", rest: "run" });
    assert.deepEqual(page.commandOf("target/release/hello", ["run", "x"]), { name: "hello", rest: "run x" });
    assert.deepEqual(page.commandOf("", []), { name: "", rest: "" });
});

test("a chip has tile 0 at the lower left, and two cores beside each other on a tile", () => {
    const map = page.mapOf(scenarioOf("scc").run);
    assert.deepEqual([map.columns, map.rows], [12, 4]);
    assert.deepEqual(map.cellOf(0), { column: 0, row: 3 });
    assert.deepEqual(map.cellOf(1), { column: 1, row: 3 });
    assert.deepEqual(map.cellOf(47), { column: 11, row: 0 });
    assert.equal(map.tileOf(28), 14);
    for (let place = 0; place < 48; place++) {
        const { column, row } = map.cellOf(place);
        assert.equal(map.placeAt(column, row), place);
    }
    assert.equal(page.neighbour(map, 0, "ArrowUp"), 12);
    assert.equal(page.neighbour(map, 0, "ArrowDown"), 0);
    assert.equal(page.neighbour(map, 13, "End"), 23);
});

test("four and more cores of a tile lie in rows of their tile, and places may end before the chip does", () => {
    const mesh = { columns: 2, rows: 2, cores_per_tile: 4, name: "four" };
    const map = page.mapOf({ ...scenarioOf("scc").run, places: 10, mesh });
    assert.deepEqual([map.columns, map.rows], [4, 4]);
    assert.deepEqual(map.cellOf(2), { column: 0, row: 3 });
    assert.equal(map.placeAt(0, 0), 8);
    assert.equal(map.placeAt(0, 1), -1, "place 10 is not there");
    assert.equal(page.neighbour(map, 0, "ArrowUp"), 8, "over cells without a place");
});

test("places lie on the cores that the run names, and on their own numbers where it names nonsense", () => {
    const { mesh } = scenarioOf("scc").run;
    const map = page.mapOf({ ...scenarioOf("scc").run, places: 3, core_of: [0, 2, 47] });
    assert.deepEqual([0, 1, 2].map((place) => map.tileOf(place)), [0, 1, 23]);
    assert.deepEqual(map.cellOf(1), { column: 2, row: 3 });
    assert.equal(map.placeAt(11, 0), 2);
    assert.equal(map.placeAt(1, 3), -1, "nobody is on core 1");
    assert.equal(page.neighbour(map, 0, "ArrowRight"), 1, "over a core without a place");
    for (const core_of of [[0, 1], [0, 1, 48], null]) {
        assert.equal(page.mapOf({ ...scenarioOf("scc").run, mesh, places: 3, core_of }).tileOf(2), 1, `${core_of}`);
    }
});

test("places without a mesh lie row by row, and a mesh that is too small is none", () => {
    for (const places of [1, 4, 7, 64, 1024]) {
        const map = page.mapOf({ ...scenarioOf("host").run, places });
        assert.ok(map.columns * map.rows >= places);
        for (let place = 0; place < places; place++) {
            const { column, row } = map.cellOf(place);
            assert.equal(map.placeAt(column, row), place);
        }
    }
    assert.equal(page.mapOf({ ...scenarioOf("scc").run, places: 49 }).mesh, false);
});

test("opening a view takes the pane that is not pinned, and never more than six are open", () => {
    let panes = [page.paneOf("chip", 0, false)];
    ({ panes } = page.open(panes, "core", 3));
    ({ panes } = page.open(panes, "core", 5));
    assert.equal(page.toFragment(panes), "chip,core:5", "a place opens beside the map, and the next takes its pane");
    const alone = page.open([page.paneOf("chip", 0, false)], "power", 0).panes;
    assert.equal(page.toFragment(alone), "power", "a map that nobody pinned gives way to the view that was asked for");
    for (let place = 10; place < 30; place++) {
        ({ panes } = page.open(panes, "core", place));
        panes = panes.map((pane) => ({ ...pane, pinned: true }));
    }
    assert.equal(panes.length, 6);
    assert.equal(page.open(panes, "chip", 0).panes, panes, "what is open is not opened twice");
    assert.equal(page.toFragment(page.fromFragment("chip*,core:5,bad,core:99,messages", 48)), "chip*,core:5,messages");
    assert.deepEqual(page.fromFragment("<script>,core:1e9,core:-1", 48), []);
});

test("rates come from two snapshots of one run, and from no others", () => {
    const scenario = scenarioOf("host");
    const [before, now] = [60, 62].map((step) => page.snapshotOf(scenario.at(step), 4));
    const rates = page.ratesOf(before, now);
    assert.equal(rates.seconds, 1);
    assert.equal(rates.tasks[1], now.places.tasks[1] - before.places.tasks[1]);
    assert.equal(page.ratesOf(null, now), null);
    assert.equal(page.ratesOf(now, before), null, "time does not go back");
});

test("the totals are a ring: an hour of them is ten minutes", () => {
    const totals = new page.Totals();
    const snapshot = page.snapshotOf(scenarioOf("host").at(10), 4);
    for (let at = 0; at < 7200; at++) totals.add({ ...page.totalOf(snapshot), time_ms: 500 * at });
    const rows = totals.until(Infinity);
    assert.equal(rows.length, 1200);
    assert.equal(rows.at(-1).time_ms, 500 * 7199);
    assert.ok(totals.rows.length <= 2400, `${totals.rows.length} rows are kept`);
});

test("a snapshot in which much is missing still has every column for every place", () => {
    const snapshot = page.snapshotOf({ places: { busy: [0.5] } }, 3);
    assert.deepEqual(snapshot.places.busy, [0.5, 0, 0]);
    assert.deepEqual(snapshot.places.state, ["silent", "silent", "silent"]);
    assert.equal(snapshot.state, "unknown");
    assert.deepEqual([snapshot.pairs, snapshot.finishes, snapshot.warnings], [[], [], []]);
    assert.equal(page.snapshotOf({ pairs_rest: 7 }, 1).pairs_rest.messages, 7);
});

test("a history that grows by snapshots keeps one point a second, and counts are rates", () => {
    const scenario = scenarioOf("host");
    const history = new page.History([1], { name: "tasks", kind: "count", unit: "tasks", description: "" });
    for (let step = 0; step < 5000; step++) history.add(page.snapshotOf(scenario.at(step), 4));
    assert.ok(history.x.length <= 1700 && history.x.length >= 1500, `${history.x.length} points`);
    const tasks = (step) => scenario.at(step).places.tasks[1];
    assert.equal(history.values.at(-1), tasks(4998) - tasks(4996));
    assert.equal(history.until(2400).x.at(-1), 2400);
    const steals = new page.History([1], { name: "steals", kind: "count", unit: "", description: "" });
    steals.add(page.snapshotOf(scenario.at(1), 4));
    assert.equal(steals.carried, false, "a counter that no snapshot has is asked for");
});

test("colours go from dark to bright, whatever they are given", () => {
    assert.equal(page.colourOf(0), "rgb(0,34,78)");
    assert.equal(page.colourOf(1), "rgb(254,232,56)");
    assert.equal(page.colourOf(NaN), page.colourOf(0));
    assert.equal(page.colourOf(7), page.colourOf(1));
});

test("each quantity of a map has a share from 0 to 1 at every place", () => {
    const run = scenarioOf("scc");
    const [before, now] = [60, 62].map((step) => page.snapshotOf(run.at(step), 48));
    for (const metric of page.METRICS) {
        const found = page.sharesOf(metric, now, page.ratesOf(before, now));
        for (let place = 0; place < 48; place++) {
            const share = found.share(place);
            assert.ok(share >= 0 && share <= 1, `${metric.key} ${share}`);
        }
    }
});
