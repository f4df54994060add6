// Runs of the program itself, with the server that it starts: what the page meets outside of the tests.
//
// `ISLES` names the program; without, it is the one that Cargo has built last in the sources around. A run has a folder
// of its own for what it records, which goes with it. Nothing here waits for a time: a run is there when it has printed
// its address, and gone when its process is.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { atEnd, endGroup, startGroup } from "./end.mjs";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** Runs that last longer than what is done with them: betweenness of a graph, on 48 cores and on 4 processes. */
export const LASTING = {
    "48 cores of a modelled SCC": ["run", "bc", "--rmat", "large", "--machine", "chip:scc"],
    "4 processes": ["run", "bc", "--rmat", "16,0.55,0.1,0.1,0.25", "--places", "4"],
};

/** The program, or null where none is built. */
export function program() {
    if (process.env.ISLES) return process.env.ISLES;
    const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
    const built = ["debug", "release"].map((profile) => join(target, profile, "isles"))
        .filter((path) => existsSync(path) && existsSync(`${path}-dashboard`));
    return built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0] ?? null;
}

/** A folder for what runs record; `remove` takes it away. */
export function scratch() {
    const folder = mkdtempSync(join(tmpdir(), "isles-page-"));
    return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A process of the program in a folder of its own: what it says, which address it has printed, how it ends. */
export class RealRun {
    constructor(words, { path = program(), folder = null } = {}) {
        this.own = folder ? null : scratch();
        this.folder = folder ?? this.own.folder;
        // What `--ui` records without a folder goes there too, and is gone with it however the run ends.
        this.child = startGroup(path, words, {
            stdio: ["ignore", "pipe", "pipe"], cwd: this.folder,
            env: { ...process.env, XDG_RUNTIME_DIR: this.folder },
        }, "SIGKILL");
        this.forget = atEnd(() => this.own?.remove());
        this.said = "";
        this.ended = new Promise((resolve) => this.child.on("close", (code, signal) => resolve({ code, signal })));
        this.addresses = new Promise((resolve, reject) => {
            const read = (text) => {
                this.said += text;
                const found = [...this.said.matchAll(/http:\/\/\S+#token=[0-9a-f]+(?=\n)/g)].map(([all]) => all);
                if (found.length >= 2) resolve(found);
            };
            this.child.stdout.setEncoding("utf8").on("data", read);
            this.child.stderr.setEncoding("utf8").on("data", read);
            void this.ended.then(() => reject(new Error(`no address was printed:\n${this.said}`)));
        });
        this.addresses.catch(() => { /* whoever asks for it is told */ });
    }

    /** Waits until it has said a text. */
    async hasSaid(text) {
        while (!this.said.includes(text)) {
            const more = new Promise((resolve) => {
                for (const stream of [this.child.stdout, this.child.stderr]) stream.once("data", resolve);
            });
            const ended = await Promise.race([more.then(() => false), this.ended]);
            if (ended) throw new Error(`it has not said ${text}:\n${this.said}`);
        }
    }

    /** The address by number. */
    async address() {
        return (await this.addresses)[1];
    }

    /** The processes below this one by the beginning of their command, as numbers: its server, its places. */
    below(name) {
        const all = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry)).map((entry) => {
            try {
                const fields = readFileSync(`/proc/${entry}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
                const command = readFileSync(`/proc/${entry}/cmdline`, "utf8");
                return { process: Number(entry), parent: Number(fields[1]), command };
            } catch {
                return null; // it has gone meanwhile
            }
        }).filter(Boolean);
        const family = new Set([this.child.pid]);
        for (let size = 0; size !== family.size;) {
            size = family.size;
            for (const one of all) if (family.has(one.parent)) family.add(one.process);
        }
        return all.filter((one) => family.has(one.process) && one.process !== this.child.pid
            && one.command.split("\0")[0].endsWith(name)).map((one) => one.process);
    }

    /** Ends it with all that it has started. */
    async stop() {
        endGroup(this.child, "SIGKILL");
        await this.ended;
        this.forget();
        this.own?.remove();
    }
}

/** Runs the program to its end: its code and what it said. */
export function isles(words, options = {}) {
    const done = spawnSync(program(), words, { encoding: "utf8", ...options });
    return { code: done.status, out: done.stdout, error: done.stderr };
}
