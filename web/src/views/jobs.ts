// Jobs: started, paused, moved, written and ended by hand, by mouse, touch and keys.
//
// A job is dragged by its handle: onto a core of the map it starts or moves there, onto the list of those that wait it
// is written. Whatever can be dragged can be done by buttons, too. What loses something asks first.

import { html, nothing, type TemplateResult } from "lit";
import { live } from "lit/directives/live.js";
import { repeat } from "lit/directives/repeat.js";
import { bytes, plain } from "../draw/text";
import { getJobOutput, type Job, type JobOutput } from "../model/api";
import { colourOf } from "../model/job-use";
import { isActive, isCommand, jobs, may } from "../model/jobs";
import { ORDERS } from "../model/orders";
import { store } from "../model/store";
import type { NewJob } from "../parts/new-job";
import { View } from "../parts/view";
import "../parts/chart";
import "../parts/new-job";

const LINES = 100;
const DIVIDERS = Array.from({ length: 15 }, (_, index) => index + 2);

const GROUPS: { name: string; has: (job: Job) => boolean }[] = [
    { name: "Waiting", has: (job) => may(job, "start") },
    { name: "At places", has: isActive },
    { name: "Over", has: (job) => !isActive(job) && !may(job, "start") },
];

/** Keeps the browser from taking a finger that drags for a fling of the page, after which it passes over a tap. */
const TAKEN = { handleEvent: (event: Event) => event.preventDefault(), passive: false };

export class JobsView extends View {
    private search = "";
    private asked = "";
    private outputs = new Map<number, JobOutput>();
    private dragged = 0;
    /** Its name beside the pointer; in the body, because a pane may be turned. */
    private ghost: HTMLElement | null = null;
    /** The job whose buttons had the keyboard last. */
    private keyed = 0;
    private target: Element | null = null;
    private leaveJobs: (() => void) | null = null;
    private timer = 0;

    override connectedCallback(): void {
        super.connectedCallback();
        this.leaveJobs = jobs.watch();
        document.addEventListener("focusin", this.leaveRow);
        document.addEventListener("pointerdown", this.leaveRow);
        this.timer = window.setInterval(() => void this.read(), 1000);
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.leaveJobs?.();
        document.removeEventListener("focusin", this.leaveRow);
        document.removeEventListener("pointerdown", this.leaveRow);
        this.release();
        clearInterval(this.timer);
    }

    override render() {
        const textOf = (job: Job) => `${job.id} ${job.name} ${whatOf(job)} ${job.state}`;
        const found = jobs.jobs.filter((job) => textOf(job).includes(this.search));
        return html`
            <div class="tools">
                ${jobs.mayTell ? html`<button class="is-main" @click=${this.make}>New job</button>` : nothing}
                <label>Search <input type="search" .value=${this.search} @input=${(event: Event) => {
                    this.search = (event.target as HTMLInputElement).value;
                    this.requestUpdate();
                }}></label>
                ${jobs.mayTell && store.run?.mesh ? this.clocks() : nothing}
                ${jobs.mayTell ? nothing : html`<span class="note">this address may look only</span>`}
            </div>
            ${jobs.mayTell ? html`<isles-new-job></isles-new-job>` : nothing}
            <p class="note jobs-said ${jobs.trouble ? "is-bad" : ""}" role="status">${plain(jobs.said)}</p>
            ${GROUPS.map((group) => this.group(group.name, found.filter(group.has)))}
            <isles-chart .label=${"Use of processors by job"} .curve=${jobs.use.curve(null)}></isles-chart>`;
    }

    override updated(): void {
        // The button that had the keyboard may have gone with the state in which it could be pressed.
        if (this.keyed === 0 || document.activeElement !== document.body) return;
        this.querySelector<HTMLElement>(`[data-job="${this.keyed}"] .job-orders button`)?.focus();
    }

    /** Forgets whose buttons had the keyboard, when somebody goes elsewhere. */
    private leaveRow = (event: Event): void => {
        const row = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-job]") : null;
        if (row?.dataset.job !== String(this.keyed)) this.keyed = 0;
    };

    /** Asks for a new job. */
    make = (): void => {
        this.querySelector<NewJob>("isles-new-job")?.open();
    };

    private clocks(): TemplateResult {
        const now = jobs.cores[0]?.divider;
        return html`<label>Clocks by <select class="jobs-clock" @change=${(event: Event) =>
            void jobs.clock(Number((event.target as HTMLSelectElement).value), null)}>${DIVIDERS.map((divider) =>
            html`<option value=${divider} .selected=${live(divider === now)}>${divider}</option>`)}</select></label>`;
    }

    private group(name: string, list: Job[]): TemplateResult {
        return html`<section class="jobs" aria-label=${name} data-group=${name}>
            <h3>${name} <small>${list.length}</small></h3>
            ${list.length === 0 ? html`<p class="nothing">none</p>` : html`<ul>${
                repeat(list, (job) => job.id, (job) => this.row(job))}</ul>`}</section>`;
    }

    private row(job: Job): TemplateResult {
        const active = isActive(job);
        return html`<li class="job" data-job=${job.id} data-state=${job.state}>
            ${jobs.mayTell && (active || may(job, "start"))
                ? html`<span class="job-handle" aria-hidden="true"
                    title="Drag to a core, or to the list of those that wait"
                    @pointerdown=${(event: PointerEvent) => this.grab(event, job.id)} @touchstart=${TAKEN}
                    @pointermove=${this.drag} @pointerup=${this.drop} @pointercancel=${this.release}>⠿</span>`
                : html`<span></span>`}
            <button class="link" aria-pressed=${String(jobs.selected.includes(job.id))}
                @click=${() => this.select(job.id)}><span class="job-colour is-${colourOf(job.id)}"
                    aria-hidden="true"></span>${job.id} ${plain(job.name)}</button>
            <span class="job-state">${job.state}${job.place !== null && active
                ? html` at ${job.place}` : nothing}</span>
            <span class="note">${active ? html`${job.processor.toFixed(0)} %, ${bytes(job.memory)}, ` : nothing}${
                job.busy.toFixed(1)} s${job.reason ? html`: ${plain(job.reason)}` : nothing}</span>
            ${jobs.mayTell ? html`<span class="job-orders" @focusin=${() => { this.keyed = job.id; }}>${
                Object.keys(ORDERS).map((order) => this.button(job, order))}${this.confirmation(job)}</span>` : nothing}
            ${jobs.selected.includes(job.id) ? this.details(job) : nothing}</li>`;
    }

    private button(job: Job, order: string): TemplateResult | typeof nothing {
        const { name, asks } = ORDERS[order]!;
        if (!may(job, order)) return nothing;
        if (isCommand(job) && order === "duplicate" && !jobs.mayStartCommands) return nothing;
        const key = `${job.id} ${order}`;
        const isAsked = this.asked === key;
        return html`<button class="quiet" aria-label=${`${isAsked ? "Do not " : ""}${name} job ${job.id}`}
            @click=${() => {
                this.asked = asks && !isAsked ? key : "";
                if (!asks) void jobs.tell(job.id, order);
                this.requestUpdate();
            }}>${isAsked ? "Cancel" : name}</button>`;
    }

    /** The button that does what was asked: apart from the one that asked, so that a double click does nothing. */
    private confirmation(job: Job): TemplateResult | typeof nothing {
        const order = Object.keys(ORDERS).find((order) => this.asked === `${job.id} ${order}`);
        if (!order) return nothing;
        const { name } = ORDERS[order]!;
        if (!may(job, order)) return nothing;
        return html`<button class="is-sure" aria-label=${`Really: ${name} job ${job.id}`} @click=${() => {
            this.asked = "";
            void jobs.tell(job.id, order);
            this.requestUpdate();
        }}>Really ${name.toLowerCase()}?</button>`;
    }

    private select(id: number): void {
        const others = jobs.selected.filter((other) => other !== id);
        jobs.selected = others.length < jobs.selected.length ? others : [...others, id];
        void this.read();
        store.changed();
    }

    private details(job: Job): TemplateResult {
        const output = this.outputs.get(job.id);
        const lines = output?.lines ?? [];
        return html`<section class="job-details" aria-label=${`Output of job ${job.id}`}>
            <div class="part-head"><h3>Job ${job.id}: ${plain(whatOf(job))}</h3>
                ${output?.before ? html`<span class="note">${bytes(output.before)} before these lines are
                    in ${plain(output.file)}</span>` : nothing}</div>
            ${this.place(job)}
            <div class="output" tabindex="0" role="log" aria-live="off"
                aria-label=${`Last lines of job ${job.id}`}>${lines.length === 0
                    ? html`<p class="nothing">it has printed nothing</p>`
                    : lines.map((line) => html`<p>${plain(line)}</p>`)}</div></section>`;
    }

    /** Starts the job at a place, or moves it there, without dragging it. */
    private place(job: Job): TemplateResult | typeof nothing {
        const moves = isActive(job);
        if (!jobs.mayTell || !may(job, moves ? "move" : "start")) return nothing;
        return html`<form class="tools" @submit=${(event: Event) => {
            event.preventDefault();
            const { value } = (event.target as HTMLFormElement).querySelector("input")!;
            void jobs.drop(job.id, Number(value));
        }}>
            <label>Place for job ${job.id} <input name="place" type="number" min="0" required
                max=${(store.run?.places ?? 1) - 1}></label>
            <button type="submit">${moves ? "Move there" : "Start there"}</button></form>`;
    }

    private async read(): Promise<void> {
        if (document.hidden) return;
        await Promise.all(jobs.selected.map(async (id) => {
            try {
                this.outputs.set(id, await getJobOutput(id, LINES));
            } catch {
                this.outputs.delete(id); // the list says what is wrong
            }
        }));
        this.requestUpdate();
    }

    // Dragging: by pointer events, which mice, pens and fingers have.

    private grab(event: PointerEvent, id: number): void {
        this.dragged = id;
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        event.preventDefault();
        this.ghost = document.createElement("div");
        this.ghost.className = "job-ghost";
        this.ghost.setAttribute("aria-hidden", "true");
        this.ghost.textContent = `${id} ${plain(jobs.job(id)?.name ?? "")}`;
        document.body.append(this.ghost);
        this.drag(event);
    }

    private drag = (event: PointerEvent): void => {
        if (this.dragged === 0) return;
        this.ghost?.style.setProperty("transform", `translate(${event.clientX + 12}px, ${event.clientY + 12}px)`);
        this.mark(document.elementFromPoint(event.clientX, event.clientY)
            ?.closest('.cell[data-place], .jobs[data-group="Waiting"]') ?? null);
    };

    private drop = (event: PointerEvent): void => {
        this.drag(event);
        const [id, target] = [this.dragged, this.target];
        this.release();
        if (id === 0 || !target) return;
        const place = (target as HTMLElement).dataset.place;
        if (place !== undefined) void jobs.drop(id, Number(place));
        else if (ORDERS.checkpoint!.states.includes(jobs.job(id)?.state ?? "")) void jobs.tell(id, "checkpoint");
    };

    private release = (): void => {
        this.dragged = 0;
        this.ghost?.remove();
        this.ghost = null;
        this.mark(null);
    };

    private mark(target: Element | null): void {
        if (target === this.target) return;
        this.target?.classList.remove("is-target");
        target?.classList.add("is-target");
        this.target = target;
    }
}

/** What a job runs: words with spaces, and those that have nothing, stand in quotation marks. */
function whatOf(job: Job): string {
    const words = "Task" in job.what ? [job.what.Task[0], ...job.what.Task[1]] : job.what.Command;
    return words.map((word) => word === "" || /[\s"]/.test(word) ? JSON.stringify(word) : word).join(" ");
}

customElements.define("isles-jobs-view", JobsView);
