// Everything that the page knows, in one object, and who is told when it changes.
//
// The invariant: views draw `shown` and nothing else. A live page shows the latest snapshot; a paused one keeps what it
// shows while snapshots go on being collected; a replay shows the snapshot of the time on its slider. Readers are told
// at most once a frame, however fast news comes.

import { getAt, getRun, getSummary, RequestError, snapshotOf, type Run, type Snapshot, type Summary } from "./api";
import type { History } from "./history";
import { fromFragment, open, PANES_MAX, paneOf, POSED, toFragment, type Pane, type ViewName } from "./layout";
import type { Pose } from "./pose";
import { preferences } from "./preferences";
import { openStream, type Connection } from "./stream";
import { ratesOf, totalOf, Totals, type Rates } from "./totals";

/** After this long without news of a run that should send two a second, the page says so. */
const SILENCE_MS = 4000;

export class Store {
    run: Run | null = null;
    /** Why there is no run to show. */
    refusal: RequestError | null = null;
    shown: Snapshot | null = null;
    rates: Rates | null = null;
    latest: Snapshot | null = null;
    connection: Connection = "connecting";
    paused = false;
    /** Snapshots that came since the picture was paused. */
    collected = 0;
    readonly totals = new Totals();
    /** Histories that somebody looks at: they take every snapshot, also those that no frame draws. */
    readonly histories = new Set<History>();
    panes: Pane[] = [];
    /** The pane that has the keyboard, and the place that was last looked at. */
    paneId = 0;
    place = 0;
    /** The pane that takes the keyboard when it is drawn, or 0. */
    focusPane = 0;
    /** The pane that is to be in the window when it is drawn, or 0. */
    seenPane = 0;
    /** Whether a pipeline has told of its stages. */
    hasStages = false;
    /** Of a replay. */
    playing = false;
    /** The time that was asked for last, in ms; the picture follows. */
    sought = 0;
    replayError = "";
    /** Of a run that is over: what it came to, and why that is not there. */
    summary: Summary | null = null;
    summaryTrouble = "";
    /** Of a replay: the last moment of the run. */
    private last: Snapshot | null = null;

    /**
     * The last moment of a run that is over, where what is shown is the end of its work: key figures are then of the
     * whole run, with its summary, and not of the last moment in which it worked.
     */
    get end(): { last: Snapshot; summary: Summary } | null {
        const { run, shown, summary, paused } = this;
        const last = run?.mode === "live" ? this.latest : this.last;
        return last && summary && shown && !paused && shown.time_ms >= summary.working_ms ? { last, summary } : null;
    }

    private readers = new Set<() => void>();
    private scheduled = false;
    private newsAt = performance.now();
    private asked = 0;

    async start(): Promise<void> {
        try {
            this.run = await getRun();
        } catch (error) {
            this.refusal = error instanceof RequestError ? error : new RequestError(0, String(error));
            this.changed();
            return;
        }
        this.panes = fromFragment(location.hash.slice(1), this.run.places);
        const chosen = this.panes.length > 0;
        if (this.panes.length === 0) {
            // Jobs are dragged to the map.
            const jobs = this.run.jobs ? [paneOf("jobs", 0, true)] : [];
            this.panes = [paneOf("chip", 0, this.run.jobs === true), ...jobs];
        }
        this.paneId = this.panes[0]!.id;
        this.place = this.panes.find((pane) => pane.view === "core")?.place ?? 0;
        this.changed();
        if (this.run.mode === "replay") {
            await this.summarise(!chosen);
            await this.seek(this.summary?.working_ms ?? 0);
            // Without it the key figures are of the moment that is shown.
            this.last = await getAt(this.run.length_ms ?? 0, this.run.places).catch(() => null);
            this.changed();
            return;
        }
        this.opensSummary = !chosen;
        openStream({
            snapshot: (text) => this.receive(text),
            connection: (state) => {
                this.connection = state;
                this.changed();
            },
        });
        setInterval(() => this.changed(), 1000);
    }

    subscribe(reader: () => void): () => void {
        this.readers.add(reader);
        return () => this.readers.delete(reader);
    }

    /** Tells the readers, in the next frame. A hidden tab has no frames, so it draws nothing. */
    changed(): void {
        if (this.scheduled) return;
        this.scheduled = true;
        requestAnimationFrame(() => {
            this.scheduled = false;
            for (const reader of this.readers) reader();
        });
    }

    /** How long there has been no news, in ms, where that is too long; else 0. */
    silence(): number {
        if (this.run?.mode !== "live" || !this.latest || this.latest.state !== "running") return 0;
        const since = performance.now() - this.newsAt;
        return since > SILENCE_MS ? since : 0;
    }

    pause(on: boolean): void {
        if (this.run?.mode === "replay") {
            this.play(!on);
            return;
        }
        this.paused = on;
        this.collected = 0;
        if (!on && this.latest) this.show(this.latest, this.shown);
        this.changed();
    }

    private receive(text: string): void {
        if (!this.run) return;
        const snapshot = snapshotOf(JSON.parse(text) as Partial<Snapshot>, this.run.places);
        const before = this.latest;
        // A leader that took over may repeat the last one.
        if (before && snapshot.seq <= before.seq && snapshot.time_ms <= before.time_ms) return;
        this.latest = snapshot;
        this.newsAt = performance.now();
        this.totals.add(totalOf(snapshot));
        for (const history of this.histories) history.add(snapshot);
        if (this.paused) this.collected += 1;
        else this.show(snapshot, before);
        if (snapshot.state !== "running" && !this.over) {
            this.over = true;
            void this.summarise(this.opensSummary);
        }
        this.changed();
    }

    /** Whether the run is over, and whether its summary may then be put beside what is shown. */
    private over = false;
    private opensSummary = false;

    /** Asks what the run came to, and shows that beside the last picture in which it worked. */
    private async summarise(opens: boolean): Promise<void> {
        for (let tries = 0; tries < 20 && !this.summary; tries++) {
            try {
                this.summary = await getSummary() ?? null;
            } catch (error) {
                this.summaryTrouble = error instanceof Error ? error.message : String(error);
                // The end of a run is told a moment before its log is whole; a log that is not there stays away.
                if (!(error instanceof RequestError) || error.status !== 404 || this.run?.mode === "replay") break;
                await new Promise((resolve) => setTimeout(resolve, 100));
            }
        }
        if (!this.summary) return;
        if (opens) this.setPanes([paneOf("summary", 0, true), ...this.panes].slice(0, PANES_MAX), this.paneId);
        if (this.run?.mode === "live" && this.latest && !this.paused) {
            try {
                const working = await getAt(this.summary.working_ms, this.run.places);
                const { state, reason } = this.latest;
                // Who is dead now was not when the run last worked.
                const { places } = this.latest;
                places.state.forEach((now, place) => {
                    if (now === "dead") working.places.state[place] = now;
                });
                this.shown = { ...working, state, reason, places: { ...working.places, cause: places.cause } };
            } catch { /* the last picture stays */ }
        }
        this.changed();
    }

    private show(snapshot: Snapshot, before: Snapshot | null): void {
        this.rates = ratesOf(before, snapshot) ?? this.rates;
        this.shown = snapshot;
    }

    /** Of a replay: shows the run as it was at a time. Of several at once the last one counts. */
    async seek(time_ms: number): Promise<void> {
        if (!this.run) return;
        const time = Math.min(Math.max(0, time_ms), this.run.length_ms ?? 0);
        const asked = ++this.asked;
        this.sought = time;
        try {
            const [now, before] = await Promise.all([
                getAt(time, this.run.places),
                getAt(Math.max(0, time - 1000), this.run.places),
            ]);
            if (asked !== this.asked) return;
            this.shown = this.latest = now;
            this.rates = ratesOf(before, now);
            this.replayError = "";
        } catch (error) {
            if (asked !== this.asked) return;
            this.replayError = error instanceof Error ? error.message : String(error);
            this.playing = false;
        }
        this.changed();
    }

    /** Of a replay: goes on by itself, as fast as the run did, until the end of the log. */
    play(on: boolean): void {
        if (on === this.playing) return;
        this.playing = on;
        this.changed();
        if (!on) return;
        const length = this.run?.length_ms ?? 0;
        let last = performance.now();
        if (this.sought >= length) void this.seek(0);
        const step = async () => {
            if (!this.playing) return;
            const now = performance.now();
            // From the time that was asked for: the picture is of the sample before it, which may be a second older.
            const time = this.sought + now - last;
            last = now;
            await this.seek(time);
            if (time >= length) this.play(false);
            else setTimeout(() => void step(), 500);
        };
        setTimeout(() => void step(), 500);
    }

    // Panes.

    /** Opens a view; `focus` takes the keyboard there. */
    openView(view: ViewName, place = this.place, focus = false): void {
        const { panes, at } = open(this.panes, view, place);
        this.place = place;
        if (focus) this.focusPane = at.id;
        this.seenPane = at.id;
        this.setPanes(panes, at.id);
    }

    pin(id: number, pinned: boolean): void {
        this.setPanes(this.panes.map((pane) => pane.id === id ? { ...pane, pinned } : pane), id);
    }

    /** Opens the view of a place and keeps it, to compare; or lets it go if it was kept. */
    pinPlace(place: number): void {
        const kept = this.panes.find((pane) => pane.view === "core" && pane.place === place && pane.pinned);
        if (kept) {
            this.closePane(kept.id);
            return;
        }
        const id = this.paneId;
        this.openView("core", place);
        this.pin(this.paneId, true);
        this.paneId = id;
    }

    setPlace(id: number, place: number): void {
        if (!this.run || place < 0 || place >= this.run.places) return;
        this.place = place;
        this.setPanes(this.panes.map((pane) => pane.id === id ? { ...pane, place } : pane), id);
    }

    closePane(id: number): void {
        const index = this.panes.findIndex((pane) => pane.id === id);
        if (index < 0) return;
        const panes = this.panes.filter((pane) => pane.id !== id);
        if (panes.length === 0) panes.push(paneOf("chip", 0, false));
        this.setPanes(panes, panes[Math.max(0, index - 1)]!.id);
    }

    /** Lays the view of a pane so; of a view that is none of cores nothing happens. */
    setPose(id: number, pose: Pose): void {
        const pane = this.panes.find((other) => other.id === id && POSED.includes(other.view));
        if (!pane) return;
        pane.pose = pose;
        this.changed();
    }

    private setPanes(panes: Pane[], id: number): void {
        this.panes = panes;
        this.paneId = id;
        history.replaceState(null, "", `#${toFragment(panes)}`);
        this.changed();
    }

    /** Whether there is something to show in a view of this run. */
    offers(view: ViewName): boolean {
        if (view === "jobs") return this.run?.jobs === true;
        if (view === "stages") return this.hasStages;
        if (view === "summary") return this.run?.mode === "replay" || this.over;
        return view !== "power" || this.shown?.places.watt !== undefined;
    }
}

export const store = new Store();
preferences.subscribe(() => store.changed());
