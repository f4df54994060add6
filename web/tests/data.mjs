// Invented runs that look like real ones: what the test server says, as a function of seed and time alone.
//
// Each scenario is a run (`run`), and `at(step)` is its snapshot at step 0, 1, 2, .. of half a second. The same seed
// gives the same numbers, so that pictures and tests can be repeated.

export const STEP_MS = 500;

/** A generator of numbers in [0, 1): mulberry32. */
export function random(seed) {
    let state = seed >>> 0;
    return () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let value = state;
        value = Math.imul(value ^ (value >>> 15), value | 1);
        value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
        return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
    };
}

const COUNTERS = [
    { name: "busy", unit: "share", description: "share of the last half second at work", kind: "gauge" },
    { name: "tasks", unit: "tasks", description: "tasks run to their end", kind: "count" },
    { name: "queue", unit: "tasks", description: "tasks that are ready to run", kind: "gauge" },
    { name: "blocked", unit: "tasks", description: "tasks that wait for something", kind: "gauge" },
    { name: "messages_sent", unit: "messages", description: "messages sent to other places", kind: "count" },
    { name: "messages_received", unit: "messages", description: "messages taken from other places", kind: "count" },
    { name: "bytes_sent", unit: "bytes", description: "bytes sent to other places", kind: "count" },
    { name: "memory_bytes", unit: "bytes", description: "memory of the place", kind: "gauge" },
    { name: "steals", unit: "steals", description: "tasks taken from other workers", kind: "count" },
];

/** ManyMan's table: clocks with their voltages. */
const POINTS = [[800, 1.1625], [533, 0.85625], [400, 0.75625], [320, 0.69375]];

const NAMES = {
    scc: { program: "bc", arguments: ["--rmat", "large"], machine: "chip:scc", places: 48,
        mesh: { columns: 6, rows: 4, cores_per_tile: 2, name: "Intel SCC" }, unit: "sources",
        finishes: ["all sources, bc.rs:118", "batch, bc.rs:131", "reduce, bc.rs:140"] },
    host: { program: "hf", arguments: ["--molecule", "benzene"], machine: "processes", places: 4, mesh: null,
        unit: "shell quartets",
        finishes: ["Fock matrix, fock.rs:204", "quartets, fock.rs:236", "sum, fock.rs:251"] },
    many: { program: "uts", arguments: ["--tree", "T1L"], machine: "chip:mesh", places: 1024,
        mesh: { columns: 32, rows: 16, cores_per_tile: 2, name: "mesh of 32 x 16 tiles" }, unit: "nodes",
        finishes: ["whole tree, uts.rs:77", "bag, uts.rs:96", "count, uts.rs:120"] },
};

export const HOSTILE = {
    // Of a file, which has no stroke in it.
    name: "<img src=x onerror=\"window.hostile=1\">",
    markup: "<img src=x onerror=\"window.hostile=1\"><script>window.hostile=1</script>",
    control: "\u001b[31mred\u001b[0m \u001b]0;title\u0007bell\u0007 \u202etxet desrever\u202c {{7*7}} "
        + "${window.hostile=1}",
};

/**
 * The scenario of a name: scc, host, many; dead, hostile, replay, cut, ended, failed, which are made from these; and a
 * number of places without a mesh.
 */
export function scenarioOf(name, seed = 1) {
    const made = { dead: "host", hostile: "host", replay: "scc", cut: "scc", ended: "host", failed: "host" };
    const base = /^\d+$/.test(name) ? { ...NAMES.host, places: Number(name) } : NAMES[made[name] ?? name];
    if (!base) throw new Error(`unknown scenario ${name}; there are ${[...Object.keys(NAMES), ...Object.keys(made)]}`);
    const scenario = new Scenario(base, seed);
    if (name === "ended") scenario.ends = { at: 3, state: "ended", reason: null };
    if (name === "failed") scenario.ends = { at: 3, state: "failed", reason: "place 1 panicked at hf.rs:77: no luck" };
    if (name === "dead") scenario.dies = { place: 2, at: 3, cause: "killed by signal 9 (SIGKILL)" };
    if (name === "host") scenario.pipeline = true;
    if (name === "hostile") [scenario.hostile, scenario.pipeline] = [true, true];
    if (name === "replay" || name === "cut") scenario.replay = { length_ms: 90_000, cut: name === "cut" };
    return scenario;
}

class Scenario {
    constructor(base, seed) {
        this.base = base;
        this.seed = seed;
        this.dies = null;
        this.hostile = false;
        this.ends = null;
        this.replay = null;
        const draw = random(seed);
        const { places } = base;
        // How fast a place is, where its waves of work are, whom it likes to talk to.
        this.traits = Array.from({ length: places }, (_, place) => ({
            phase: draw() * 6.28, period: 14 + 20 * draw(), level: 0.55 + 0.4 * draw(),
            point: POINTS[Math.min(3, Math.floor(((Math.floor(place / 8) * 7) % 5) / 1.4))],
            peers: Array.from({ length: Math.min(places - 1, 6) }, () => Math.floor(draw() * places)),
        }));
        this.tiles = base.mesh ? this.neighbours() : [];
    }

    get run() {
        const { base, hostile, replay } = this;
        return {
            version: "0.1.0",
            program: hostile ? `/tmp/${HOSTILE.name}` : base.program,
            arguments: hostile ? [HOSTILE.control, HOSTILE.markup] : base.arguments,
            machine: base.machine,
            mode: replay ? "replay" : "live",
            started_unix_ms: 1_790_000_000_000,
            places: base.places,
            host_of: base.machine === "processes"
                ? Array.from({ length: base.places }, () => hostile ? HOSTILE.markup : "laptop") : null,
            mesh: base.mesh,
            counters: COUNTERS,
            pages_role: "view",
            ...(replay ?? {}),
        };
    }

    busy(place, step) {
        if (this.dies && place === this.dies.place && step >= this.dies.at) return 0;
        const { phase, period, level } = this.traits[place];
        const jitter = random(this.seed * 7919 + place * 104729 + step)();
        const wave = level + 0.3 * Math.sin(phase + step / period) - 0.25 * jitter;
        return Math.round(1000 * Math.min(1, Math.max(0.02, wave))) / 1000;
    }

    /** A counter that only grows: its rate is proportional to the work so far. */
    worked(place, step) {
        const { level, phase, period } = this.traits[place];
        const end = this.dies && place === this.dies.place ? Math.min(step, this.dies.at) : step;
        const waves = 0.3 * period * (Math.cos(phase) - Math.cos(phase + end / period));
        return Math.max(0, (level - 0.12) * end + waves + 8);
    }

    at(step) {
        const { base, hostile } = this;
        const all = Array.from({ length: base.places }, (_, place) => place);
        const dead = (place) => this.dies !== null && place === this.dies.place && step >= this.dies.at;
        const busy = all.map((place) => this.busy(place, step));
        const tasks = all.map((place) => Math.floor(310 * this.worked(place, step)));
        const sent = all.map((place) => Math.floor(96 * this.worked(place, step)));
        const time_ms = step * STEP_MS;
        const over = this.ends !== null && step >= this.ends.at;
        const ended = over || (this.replay && !this.replay.cut && time_ms >= this.replay.length_ms);
        const lost = this.replay?.cut && time_ms >= this.replay.length_ms;
        const state = (place) => dead(place) ? "dead" : lost ? "silent" : ended ? "ended"
            : busy[place] < 0.12 ? "idle" : busy[place] < 0.2 ? "waiting" : "busy";
        const places = {
            state: all.map(state),
            cause: all.map((place) => dead(place) ? (hostile ? HOSTILE.markup : this.dies.cause) : null),
            busy,
            tasks,
            queue: all.map((place) => dead(place) ? 0 : Math.floor(40 * busy[place] ** 3)),
            blocked: all.map((place) => dead(place) ? 0 : Math.floor(5 * (1 - busy[place]))),
            messages_sent: sent,
            messages_received: all.map((place) => sent[(place + 1) % base.places]),
            bytes_sent: sent.map((value) => value * 184),
            bytes_received: all.map((place) => sent[(place + 1) % base.places] * 184),
            finishes_open: all.map((place) => place === 0 ? 3 : place % 5 === 1 ? 1 : 0),
            memory_bytes: all.map((place) => 18e6 + Math.floor(3e6 * this.traits[place].level + 2000 * step)),
        };
        if (base.mesh) {
            places.clock_mhz = all.map((place) => this.traits[place].point[0]);
            places.volt = all.map((place) => this.traits[place].point[1]);
            places.watt = all.map((place) => {
                const [mhz, volt] = this.traits[place].point;
                return Math.round(1000 * (0.32 + (0.0445 + 0.0426 * busy[place]) * volt * volt * mhz / 48)) / 1000;
            });
            places.joule = all.map((place) => this.joule(place, step));
        }
        return {
            seq: step + 1, time_ms,
            model_ms: base.mesh ? time_ms / 37 : null,
            state: over ? this.ends.state : ended ? "ended" : lost ? "unknown" : "running",
            reason: over ? this.ends.reason : lost ? "the log ends here" : null,
            missed: 0,
            places,
            ...(base.mesh ? { links: this.links(step), power: this.power(step) } : {}),
            ...this.pairs(step),
            finishes: this.finishes(step, time_ms),
            warnings: this.warnings(step, time_ms),
            progress: {
                label: hostile ? HOSTILE.markup : base.unit,
                done: Math.min(65_536, Math.floor(tasks.reduce((a, b) => a + b, 0) / (base.places * 0.6))),
                total: 65_536,
            },
            dropped: { events: 0, samples: 0 },
        };
    }

    /** Energy of a core: what its power would come to over the work that it has done. */
    joule(place, step) {
        const [mhz, volt] = this.traits[place].point;
        const seconds = STEP_MS / 37 / 1000;
        const moving = 0.0426 * this.worked(place, step) + 0.0445 * step;
        return seconds * (0.32 * step + moving * volt * volt * mhz / 48);
    }

    power(step) {
        const total = (at) => Array.from({ length: this.base.places }, (_, place) => this.joule(place, at))
            .reduce((sum, joule) => sum + joule, 15 * at * STEP_MS / 37 / 1000);
        const seconds = STEP_MS / 37 / 1000;
        const watt = step > 0 ? (total(step) - total(step - 1)) / seconds : 0;
        return { watt, joule: total(step), until_ms: step * STEP_MS / 37 };
    }

    neighbours() {
        const { columns, rows } = this.base.mesh;
        const links = [];
        for (let tile = 0; tile < columns * rows; tile++) {
            if (tile % columns < columns - 1) links.push([tile, tile + 1], [tile + 1, tile]);
            if (tile + columns < columns * rows) links.push([tile, tile + columns], [tile + columns, tile]);
        }
        return links;
    }

    links(step) {
        const { columns, rows } = this.base.mesh;
        const middle = [(columns - 1) / 2, (rows - 1) / 2];
        return this.tiles.map(([from, to]) => {
            const far = Math.abs(from % columns - middle[0]) / columns
                + Math.abs(Math.floor(from / columns) - middle[1]) / rows;
            const jitter = random(this.seed + from * 131 + to * 17 + step)();
            const load = Math.max(0, 0.75 - far) * (0.35 + 0.65 * jitter) * (0.7 + 0.3 * Math.sin(step / 9 + from));
            return { from, to, load: Math.round(1000 * load) / 1000 };
        });
    }

    pairs(step) {
        const { places } = this.base;
        const pairs = [];
        let rest = 0;
        for (let from = 0; from < places; from++) {
            const all = this.worked(from, step) * 96;
            const peers = places <= 64 ? Array(places).keys() : this.traits[from].peers;
            for (const to of peers) {
                if (to === from) continue;
                const near = 1 / (1 + Math.abs(from - to));
                const liked = this.traits[from].peers.includes(to) ? 0.2 : 0.004;
                const messages = Math.floor(all * (0.3 * near * near + liked));
                if (messages > 0) pairs.push([from, to, messages, messages * (120 + 40 * (to % 5))]);
            }
        }
        pairs.sort((a, b) => b[2] - a[2]);
        for (const pair of pairs.splice(4096)) rest += pair[2];
        return { pairs, pairs_rest: { messages: rest, bytes: rest * 150 } };
    }

    finishes(step, time_ms) {
        const { places } = this.base;
        const hostile = this.hostile ? HOSTILE.markup : null;
        const [whole, batch, reduce] = this.base.finishes;
        const busiest = Array.from({ length: Math.min(places, 9) }, (_, index) => (index * 5 + step) % places);
        const finishes = [
            { id: 1, home: 0, parent: null, open_ms: time_ms, label: hostile ?? "main",
                waits_for: [[0, 1]] },
            { id: 2, home: 0, parent: 1, open_ms: Math.max(0, time_ms - 700),
                label: hostile ?? whole,
                waits_for: [...new Set(busiest)].map((place) => [place, 1 + place % 3]) },
        ];
        for (let place = 1; place < Math.min(places, 40); place += 5) {
            finishes.push({
                id: 100 + place, home: place, parent: 2, open_ms: 240 + 90 * (place % 7) + (step % 4) * 120,
                label: batch, waits_for: place % 2 ? [[(place + 3) % places, 2]] : [],
            });
        }
        if (places > 4) {
            finishes.push({ id: 900, home: 6, parent: 106, open_ms: 130, label: reduce,
                waits_for: [[7, 1]] });
        }
        return finishes;
    }

    warnings(step, time_ms) {
        const { places } = this.base;
        const warnings = [{
            kind: "finish-open", place: 0, since_ms: 700,
            text: this.hostile ? HOSTILE.markup : `${this.base.finishes[0]} waits for ${Math.min(places, 9)} places`,
        }];
        if (places > 4 && step % 40 < 30) {
            warnings.push({
                kind: "chatter", place: 13, since_ms: Math.max(0, time_ms - 12_000),
                text: "2,140 messages a second with place 14, of 31 bytes on average",
            });
        }
        return warnings;
    }

    /** What the run came to; of a replay at its end. */
    summary(step) {
        const last = this.at(this.replay ? this.replay.length_ms / STEP_MS : step);
        const total = (column) => last.places[column].reduce((sum, value) => sum + value, 0);
        const { joule, until_ms } = last.power ?? { joule: 0, until_ms: 1 };
        return {
            state: last.state, reason: last.reason, time_ms: last.time_ms, model_ms: last.model_ms,
            power: last.power ? { joule, until_ms, watt: 1000 * joule / until_ms } : null,
            tasks: total("tasks"), messages: total("messages_sent"), bytes: total("bytes_sent"),
            busy: this.traits.map(({ level }) => level - 0.1), place_tasks: last.places.tasks,
            warnings: this.warnings(step, last.time_ms)
                .map(({ kind, place, text }) => ({ kind, place, places: 1, text })),
            result: [this.hostile ? HOSTILE.markup + HOSTILE.control : "nodes  4130071", "", "time   8.25 s"],
            working_ms: this.replay ? 4000 : Math.max(0, 1000 * Math.floor((step - 2) / 2)),
        };
    }

    /** What a server says of pipelines: nothing but in the scenarios `host` and `hostile`. */
    stages() {
        if (!this.pipeline) return { stages: [], reported: false };
        const names = ["capture", this.hostile ? HOSTILE.markup : "match", "match", "track"];
        const stages = names.map((name, place) => ({
            pipeline: 0, stage: [0, 1, 1, 2][place], name, place, items_per_s: [12, 6.04, 5.96, 12][place],
            waiting: [0, 4, 3, 1][place], queue: 4, time_ms: 30_000,
        }));
        return { stages, reported: true };
    }

    output(place, step) {
        const lines = [];
        for (let at = 0; at <= step; at += 3 + place % 4) {
            const text = this.hostile && at % 2 === 0 ? HOSTILE.markup + HOSTILE.control
                : `source ${place * 1000 + at * 7}: ${(this.busy(place, at) * 100).toFixed(1)} ms, queue of ${at % 17}`;
            const stream = at % 5 === 4 ? "stderr" : "stdout";
            lines.push({ seq: at + 1, time_ms: at * STEP_MS, stream, text });
        }
        if (this.dies?.place === place && step >= this.dies.at) return lines.filter((line) => line.seq <= this.dies.at);
        return lines;
    }

    history(places, counter, to_ms) {
        const t = [];
        const series = Object.fromEntries(places.map((place) => [place, []]));
        for (let ms = 0; ms <= to_ms; ms += 1000) {
            t.push(ms);
            const step = ms / STEP_MS;
            for (const place of places) series[place].push(this.value(counter, place, step));
        }
        if (!this.base.mesh) return { step_ms: 1000, t, series };
        const energies = t.map((ms) => this.power(ms / STEP_MS));
        const chip_watt = energies.map(({ joule, until_ms }, row) => row === 0 ? 0
            : 1000 * (joule - energies[row - 1].joule) / (until_ms - energies[row - 1].until_ms));
        return { step_ms: 1000, t, model_ms: energies.map(({ until_ms }) => until_ms), chip_watt, series };
    }

    value(counter, place, step) {
        const busy = this.busy(place, step);
        switch (counter) {
            case "busy": return busy;
            case "queue": return Math.floor(40 * busy ** 3);
            case "blocked": return Math.floor(5 * (1 - busy));
            case "memory_bytes": return 18e6 + Math.floor(3e6 * this.traits[place].level + 2000 * step);
            case "watt": {
                const [mhz, volt] = this.traits[place].point;
                return 0.32 + (0.0445 + 0.0426 * busy) * volt * volt * mhz / 48;
            }
            case "tasks": return Math.floor(310 * this.worked(place, step));
            case "bytes_sent": return Math.floor(96 * 184 * this.worked(place, step));
            default: return Math.floor(96 * this.worked(place, step));
        }
    }
}
