// The jobs that a run manages, and what they are told: asked once a second while somebody looks, and after each order.
//
// The page decides nothing: it shows what the job server says, and what it refuses. Invariant: what is told is told
// once, by a press or a drop of the reader.

import {
    getJobs, tellJobs, RequestError, type Core, type Job, type JobKind, type JobsAnswer, type JobSpec,
} from "./api";
import { JobUse } from "./job-use";
import { ACTIVE_STATES, ORDERS } from "./orders";
import { store } from "./store";

const ASK_MS = 1000;

/** Whether a job is at a place, or on its way to one or from one. */
export const isActive = (job: Job) => ACTIVE_STATES.includes(job.state);

/** Whether an order applies to a job in its state; some apply to a command only with CRIU. */
export const may = (job: Job | undefined, order: string) => {
    const { states, needsCriu } = ORDERS[order]!;
    return job !== undefined && states.includes(job.state) && (!needsCriu || !isCommand(job) || jobs.hasCriu);
};

export const isCommand = (job: Job) => "Command" in job.what;

class Jobs {
    jobs: Job[] = [];
    kinds: JobKind[] = [];
    cores: Core[] = [];
    readonly use = new JobUse();
    policy = "";
    /** What chooses the clocks of a modelled chip. */
    governor: string | null = null;
    /** Whether the job server lets pages make jobs of commands. */
    mayStartCommands = false;
    /** Whether CRIU can checkpoint and move commands. */
    hasCriu = false;
    /** The jobs whose output is shown, beside each other. */
    selected: number[] = [];
    /** What came of the last order, or why nothing is known. */
    said = "";
    trouble = false;
    private readers = 0;
    private timer = 0;
    private asking = false;

    /** Somebody looks, until the answer is called. */
    watch(): () => void {
        if (this.readers++ === 0) {
            this.timer = window.setInterval(() => void this.ask(), ASK_MS);
            void this.ask();
        }
        return () => {
            if (--this.readers === 0) clearInterval(this.timer);
        };
    }

    job(id: number): Job | undefined {
        return this.jobs.find((job) => job.id === id);
    }

    /** Whether this page may tell jobs anything. */
    get mayTell(): boolean {
        return store.run?.pages_role === "control";
    }

    async ask(): Promise<void> {
        if (this.asking || document.hidden) return;
        this.asking = true;
        try {
            this.take(await getJobs());
        } catch (error) {
            this.fail(error);
        } finally {
            this.asking = false;
        }
    }

    /** Tells a job something; `place` is where to start or to move. */
    async tell(id: number, order: string, place: number | null = null): Promise<void> {
        const where = order === "start" ? { at: place } : order === "move" ? { to: place } : {};
        await this.send({ ask: "tell", job: id, order, ...where });
    }

    /** What dropping a job on a place means: to start it there, or to move it there. */
    async drop(id: number, place: number): Promise<void> {
        const job = this.job(id);
        if (!job || (isActive(job) && job.place === place)) return;
        await this.tell(id, isActive(job) ? "move" : "start", place);
    }

    /** Makes a job, and starts it at a place or at the best one; returns why there is none. */
    async begin(spec: JobSpec, start: boolean, at: number | null): Promise<string> {
        await this.send(start ? { ask: "begin", spec, at } : { ask: "create", ...spec });
        return this.trouble ? this.said : "";
    }

    /** Another divider of the supply of a place, or of all. */
    async clock(divider: number, at: number | null): Promise<void> {
        await this.send({ ask: "clock", divider, at });
    }

    /** Another divider of the tile of a place alone, which keeps its voltage. */
    async tileClock(divider: number, at: number): Promise<void> {
        await this.send({ ask: "clock", divider, at, tile: true });
    }

    async voltage(volts: number, at: number | null): Promise<void> {
        await this.send({ ask: "voltage", volts, at });
    }

    /** Another governor of the supply of a place, or of the whole chip. */
    async govern(policy: string, at: number | null): Promise<void> {
        await this.send({ ask: "govern", policy, at });
    }

    private async send(request: object): Promise<void> {
        try {
            const answer = await tellJobs(request);
            this.said = answer.text ?? scoreText(answer);
            this.trouble = false;
            this.take(await getJobs());
        } catch (error) {
            this.fail(error);
        }
    }

    private take(answer: JobsAnswer): void {
        this.jobs = answer.jobs;
        this.kinds = answer.kinds;
        this.cores = answer.cores;
        if (store.latest) this.use.add(store.latest.time_ms / 1000, answer.jobs, answer.cores);
        this.policy = answer.policy;
        this.governor = answer.governor;
        this.mayStartCommands = answer.page_commands;
        this.hasCriu = answer.criu;
        this.selected = this.selected.filter((id) => this.job(id));
        store.changed();
    }

    private fail(error: unknown): void {
        this.trouble = true;
        this.said = error instanceof RequestError ? error.message : String(error);
        store.changed();
    }
}

/** Why a job went where it is. */
function scoreText({ job, scores }: { job?: Job; scores?: number[] }): string {
    if (!job || job.place === null || !scores?.length) return "";
    const others = scores.filter((_, place) => place !== job.place);
    const best = others.length > 0 ? `, the best of the others ${Math.min(...others).toFixed(1)}` : "";
    return `Job ${job.id} goes to place ${job.place}: its score is ${scores[job.place]?.toFixed(1)}${best}.`;
}

export const jobs = new Jobs();
