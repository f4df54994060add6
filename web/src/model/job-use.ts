// Use of the processors by each job over the time of the run, beside what was not started as a job and the total: one
// point for each answer of the job server, from when the page first asked.
//
// A job keeps its colour as long as it lives, whichever view draws it. Invariant: all lists have the length of `x`.

import type { Curve, Series } from "../parts/chart";
import { plain } from "../draw/text";
import type { Core, Job } from "./api";

/** What is kept: 25 minutes at a point a second. */
const POINTS = 1500;
const COLOURS = 6;
/** Jobs in one picture; the others are in the total alone. */
const SHOWN = 6;

type Values = (number | null)[];
interface PlaceUse { all: Values; other: Values }

/** The number of a job's colour among the curves, from 1. */
export const colourOf = (job: number) => 1 + job % COLOURS;

export class JobUse {
    /** Seconds since the start of the run. */
    private x: number[] = [];
    private byJob = new Map<number, { name: string; place: number | null; values: Values }>();
    private byPlace = new Map<number, PlaceUse>();

    /** Takes what the job server says at a time; an answer of the same time replaces nothing. */
    add(seconds: number, jobs: Job[], cores: Core[]): void {
        const last = this.x.at(-1);
        if (last !== undefined && seconds <= last) return;
        const before = this.x.length;
        const gap = (): Values => new Array<null>(before).fill(null);
        this.x.push(seconds);
        for (const job of jobs) {
            const use = this.byJob.get(job.id) ?? { name: job.name, place: job.place, values: gap() };
            use.place = job.place;
            if (job.processor > 0 || this.byJob.has(job.id)) this.byJob.set(job.id, use);
        }
        const uses = new Map(jobs.map((job) => [job.id, job.processor]));
        for (const [id, use] of this.byJob) use.values.push(uses.get(id) ?? null);
        for (const core of cores) {
            const use = this.byPlace.get(core.place) ?? { all: gap(), other: gap() };
            use.all.push(core.processor);
            use.other.push(core.other);
            this.byPlace.set(core.place, use);
        }
        if (this.x.length > POINTS + 200) this.cut();
    }

    /** The curves of a place, or of all of them: the total, what was not started as a job, and the jobs used last. */
    curve(place: number | null): Curve | null {
        const places = place === null ? [...this.byPlace.values()] : [this.byPlace.get(place)].filter((use) => !!use);
        if (places.length === 0) return null;
        const sum = (of: (use: PlaceUse) => Values) => this.x.map((_, row) =>
            places.reduce((total, use) => total + (of(use)[row] ?? 0), 0));
        const used = [...this.byJob].filter(([, use]) => place === null || use.place === place);
        const series: Series[] = used.slice(-SHOWN).map(([id, use]) =>
            ({ name: `${id} ${plain(use.name)}`, values: use.values, stroke: `--curve-${colourOf(id)}` }));
        return {
            x: this.x.slice(),
            series: [
                { name: "total", values: sum((use) => use.all), stroke: "--muted" },
                { name: "not started here", values: sum((use) => use.other), stroke: "--bad" },
                ...series,
            ],
            show: (value) => `${value.toFixed(0)} %`,
        };
    }

    private cut(): void {
        this.x = this.x.slice(-POINTS);
        for (const use of this.byPlace.values()) {
            use.all = use.all.slice(-POINTS);
            use.other = use.other.slice(-POINTS);
        }
        for (const [id, use] of this.byJob) {
            use.values = use.values.slice(-POINTS);
            if (use.values.every((value) => value === null)) this.byJob.delete(id);
        }
    }
}
