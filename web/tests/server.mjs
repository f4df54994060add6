// A server that speaks the interface of the page with invented runs: no framework, loopback only.
//
// It refuses what the real one refuses as far as a page can notice (no session, too many streams), sends the same
// headers, and lets a test stop and start it, go on by hand, and count what was asked.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { scenarioOf, STEP_MS } from "./data.mjs";

const DIST = join(dirname(fileURLToPath(import.meta.url)), "..", "dist");
const FILES = {
    "/": ["index.html", "text/html; charset=utf-8"],
    "/app.js": ["app.js", "text/javascript; charset=utf-8"],
    "/app.css": ["app.css", "text/css; charset=utf-8"],
    "/favicon.svg": ["favicon.svg", "image/svg+xml"],
};
export const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    + "trusted-types lit-html";
const HEADERS = {
    "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
};

/** A host of which energies can be read, and clocks not. */
const HOST = {
    energy: { read: [{ name: "package-0", source: "/sys/class/powercap/intel-rapl:0/energy_uj", joule: 41.5 }] },
    clocks: { unreadable: "not readable here: /sys/devices/system/cpu has no processor with cpufreq" },
};

export class TestServer {
    /** `first`: the step that the run has reached when the server starts; `auto`: goes on twice a second. */
    constructor({ scenario = "scc", seed = 1, first = 60, auto = true, streamsMax = 64 } = {}) {
        this.streamsMax = streamsMax;
        this.scenario = scenarioOf(scenario, seed);
        this.step = first;
        this.auto = auto;
        this.token = randomBytes(32).toString("hex");
        this.session = randomBytes(32).toString("hex");
        this.streams = new Set();
        this.requests = [];
        this.streamsOpened = 0;
        this.port = 0;
    }

    async start() {
        this.sockets = new Set();
        this.http = createServer((request, response) => this.answer(request, response));
        this.http.on("connection", (socket) => {
            this.sockets.add(socket);
            socket.on("close", () => this.sockets.delete(socket));
        });
        await new Promise((resolve, reject) => {
            this.http.once("error", reject);
            this.http.listen(this.port, "127.0.0.1", resolve);
        });
        this.port = this.http.address().port;
        if (this.auto && !this.scenario.replay) this.timer = setInterval(() => this.next(), STEP_MS);
        return this;
    }

    /** The address with its token, as a program prints it. */
    get address() {
        return `http://127.0.0.1:${this.port}/#token=${this.token}`;
    }

    /** One step of the run, told to every stream. */
    next() {
        this.step += 1;
        const text = this.event();
        for (const stream of this.streams) stream.write(text);
    }

    /** Ends the server with all its connections; `start` brings it back at the same port. */
    async stop() {
        clearInterval(this.timer);
        const closed = new Promise((resolve) => this.http.close(resolve));
        for (const socket of this.sockets) socket.destroy();
        this.streams.clear();
        await closed;
    }

    event() {
        const snapshot = this.scenario.at(this.step);
        return `event: snapshot\nid: ${snapshot.seq}\ndata: ${JSON.stringify(snapshot)}\n\n`;
    }

    answer(request, response) {
        const url = new URL(request.url, "http://127.0.0.1");
        this.requests.push(`${request.method} ${url.pathname}`);
        const file = FILES[url.pathname];
        if (file && request.method === "GET") {
            response.writeHead(200, { ...HEADERS, "Content-Type": file[1] });
            response.end(readFileSync(join(DIST, file[0])));
            return;
        }
        if (request.method === "POST" && url.pathname === "/api/v1/session") {
            if (request.headers.authorization !== `Bearer ${this.token}`) return problem(response, 401, "wrong token");
            response.writeHead(204, {
                ...HEADERS, "Set-Cookie": `${this.cookie}=${this.session}; HttpOnly; SameSite=Strict; Path=/`,
            });
            response.end();
            return;
        }
        if (!(request.headers.cookie ?? "").includes(`${this.cookie}=${this.session}`)) {
            return problem(response, 401, "no session");
        }
        this.api(url, response);
    }

    get cookie() {
        return `isles-test-${this.port}`;
    }

    api(url, response) {
        const { scenario } = this;
        const query = url.searchParams;
        switch (url.pathname) {
            case "/api/v1/run": return json(response, scenario.run);
            // A log has a sample a second, which is two steps.
            case "/api/v1/at": return json(response, scenario.at(2 * Math.floor(Number(query.get("time_ms")) / 1000)));
            case "/api/v1/stages": return json(response, scenario.stages());
            case "/api/v1/host": return json(response, HOST);
            case "/api/v1/summary": return json(response, scenario.summary(this.step));
            case "/api/v1/stream": return this.stream(response);
            case "/api/v1/history": {
                const places = (query.get("places") ?? "").split(",").map(Number);
                const to = scenario.replay?.length_ms ?? this.step * STEP_MS;
                return json(response, scenario.history(places, query.get("counter"), to));
            }
            case "/api/v1/output": {
                const after = Number(query.get("after") ?? 0);
                const step = scenario.replay ? scenario.replay.length_ms / STEP_MS : this.step;
                const lines = scenario.output(Number(query.get("place")), step).filter((line) => line.seq > after);
                return json(response, { lines: lines.slice(-100), dropped: 0 });
            }
            default: return problem(response, 404, "no such address");
        }
    }

    stream(response) {
        if (this.streams.size >= this.streamsMax) return problem(response, 503, "too many readers");
        this.streamsOpened += 1;
        response.writeHead(200, { ...HEADERS, "Content-Type": "text/event-stream" });
        response.write(`retry: 300\n\n${this.event()}`);
        this.streams.add(response);
        response.on("close", () => this.streams.delete(response));
    }
}

function json(response, value) {
    response.writeHead(200, { ...HEADERS, "Content-Type": "application/json" });
    response.end(JSON.stringify(value));
}

function problem(response, status, title) {
    response.writeHead(status, { ...HEADERS, "Content-Type": "application/problem+json" });
    response.end(JSON.stringify({ type: "about:blank", title, status }));
}
