// Clocks, voltages and the governor of a modelled chip, domain by domain, and what each domain draws.
//
// A choice is told at once, as it is made by mouse or keys, and the job server has the last word: what the chip does
// not have is refused by it, and said here. Who may only look sees the same numbers without the choices.

import { html, nothing, type TemplateResult } from "lit";
import { live } from "lit/directives/live.js";
import { joules, plain, watts } from "../draw/text";
import { Domains, type Domain } from "../model/domains";
import { jobs } from "../model/jobs";
import { store } from "../model/store";
import type { Curve } from "./chart";
import { Element } from "./element";
import type { Column } from "./table";
import "./chart";
import "./table";

const DIVIDERS = Array.from({ length: 15 }, (_, index) => index + 2);
const POLICIES = ["fixed", "on-demand", "phase-aware", "capped"];
const LOAD_MS = 2000;
/** As many curves as a chart has colours. */
const CURVES = 6;

export class Clocks extends Element {
    private readonly domains = new Domains();
    private leaveJobs: (() => void) | null = null;
    private timer = 0;
    private policy = "";
    /** The place whose tile is turned alone. */
    private place = 0;

    override connectedCallback(): void {
        super.connectedCallback();
        this.leaveJobs = jobs.watch();
        this.timer = window.setInterval(() => void this.load(), LOAD_MS);
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.leaveJobs?.();
        clearInterval(this.timer);
    }

    override render() {
        const { shown } = store;
        const found = shown ? this.domains.all(jobs.cores, shown) : [];
        if (found.length === 0) return nothing;
        return html`<section class="clocks" aria-label="Clocks and voltages">
            <div class="tools"><h3>Clocks and voltages</h3>
                <span class="note">governor: ${plain(jobs.governor ?? "none")}</span>
                ${jobs.mayTell ? this.governors(found)
                    : html`<span class="note">this address may look only</span>`}</div>
            ${jobs.mayTell ? this.tile() : nothing}
            <p class="note jobs-said ${jobs.trouble ? "is-bad" : ""}" role="status">${plain(jobs.said)}</p>
            <isles-table .label=${"Voltage domains"} .columns=${this.columns()} .rows=${[null, ...found]}></isles-table>
            <isles-chart .label=${"Power of domains over modelled time"} .curve=${this.curve(found)}></isles-chart>
        </section>`;
    }

    private async load(): Promise<void> {
        const { shown } = store;
        if (!shown || document.hidden) return;
        try {
            await this.domains.load(this.domains.all(jobs.cores, shown));
        } catch {
            return; // the banner says that the server does not answer
        }
        this.requestUpdate();
    }

    private governors(found: Domain[]): TemplateResult {
        const now = (jobs.governor ?? "fixed").split(":")[0]!;
        const chosen = this.policy || now;
        return html`<form class="tools" @submit=${(event: Event) => {
            event.preventDefault();
            const cap = this.querySelector<HTMLInputElement>(".clocks-cap")?.value ?? "";
            const whose = this.querySelector<HTMLSelectElement>(".clocks-governed")?.value ?? "all";
            const at = found.find(({ number }) => String(number) === whose)?.places[0] ?? null;
            void jobs.govern(chosen === "capped" ? `capped:${cap}W` : chosen, at);
            this.policy = "";
        }}><label>Governor <select class="clocks-policy" @change=${(event: Event) => {
            this.policy = (event.target as HTMLSelectElement).value;
            this.requestUpdate();
        }}>${POLICIES.map((policy) =>
            html`<option value=${policy} .selected=${live(policy === chosen)}>${policy}</option>`)}</select></label>
        ${chosen === "capped" ? html`<label>Watts <input class="clocks-cap" type="number" min="1" step="any"
            value="60"></label>` : nothing}
        <label>for <select class="clocks-governed"><option value="all">whole chip</option>${found.map(({ number }) =>
            html`<option value=${number}>domain ${number}</option>`)}</select></label>
        <button type="submit">Set</button></form>`;
    }

    /** The clock of one tile, which keeps the voltage of its domain. */
    private tile(): TemplateResult {
        const core = jobs.cores[this.place];
        return html`<form class="tools clocks-tile" @submit=${(event: Event) => {
            event.preventDefault();
            const divider = this.querySelector<HTMLSelectElement>(".clocks-tile-divider")?.value;
            void jobs.tileClock(Number(divider), this.place);
        }}><label>Tile of place <input name="place" type="number" min="0" max=${jobs.cores.length - 1} required
            .value=${live(String(this.place))} @change=${(event: Event) => {
                const field = event.target as HTMLInputElement;
                if (field.reportValidity()) this.place = field.valueAsNumber;
                this.requestUpdate();
            }}></label>
        <label>Divide by <select class="clocks-tile-divider">${DIVIDERS.map((divider) => html`<option
            value=${divider} ?selected=${divider === core?.divider}>${divider}</option>`)}</select></label>
        <button type="submit">Set the tile</button>
        <span class="note">domain ${core?.supply ?? ""}, now ${Math.round(core?.megahertz ?? 0)} MHz by ${
            core?.divider ?? ""}${core?.volts ? html` at ${core.volts} V, which stays` : nothing}</span></form>`;
    }

    private columns(): Column<Domain | null>[] {
        const name = (row: Domain | null) => row ? `domain ${row.number}` : "whole chip";
        const range = (values: number[]) => {
            const [low, high] = [Math.min(...values), Math.max(...values)];
            return values.length === 0 ? "" : low === high ? `${low}` : `${low} to ${high}`;
        };
        const told: Column<Domain | null>[] = jobs.mayTell ? [
            { name: "Divide by", value: (row) => row?.dividers[0] ?? 0, show: (row) => this.divider(row, name(row)) },
            { name: "Set voltage", value: (row) => row?.volt ?? 0, show: (row) => this.voltage(row, name(row)) },
        ] : [];
        return [
            { name: "Domain", value: (row) => row?.number ?? -1, show: name },
            { name: "Places", value: (row) => row?.places[0] ?? -1, show: (row) => row ? runs(row.places) : "all" },
            { name: "MHz", number: true, value: (row) => row?.mhz[0] ?? 0, show: (row) => row ? range(row.mhz) : "" },
            {
                name: "Voltage", number: true, value: (row) => row?.volt ?? 0,
                show: (row) => row?.volt ? `${row.volt} V` : "",
            },
            {
                name: "Governor", value: (row) => row?.governor ?? "",
                show: (row) => plain(row ? row.governor : jobs.governor ?? ""),
            },
            ...told,
            { name: "Power", number: true, value: (row) => row?.watt ?? 0, show: (row) => row ? watts(row.watt) : "" },
            {
                name: "Energy so far", number: true, value: (row) => row?.joule ?? 0,
                show: (row) => row ? joules(row.joule) : "",
            },
        ];
    }

    private divider(row: Domain | null, name: string): TemplateResult {
        const all = row ? row.dividers : jobs.cores.flatMap((core) => core.divider ?? []);
        const same = all.every((divider) => divider === all[0]) ? all[0] : undefined;
        return html`<select class="clocks-divider" data-domain=${row?.number ?? "all"}
            aria-label=${`Divide the clocks of ${name} by`} @change=${(event: Event) =>
                void jobs.clock(Number((event.target as HTMLSelectElement).value), row?.places[0] ?? null)}>
            ${same === undefined ? html`<option .selected=${live(true)} disabled>several</option>` : nothing}
            ${DIVIDERS.map((divider) =>
                html`<option value=${divider} .selected=${live(divider === same)}>${divider}</option>`)}
        </select>`;
    }

    private voltage(row: Domain | null, name: string): TemplateResult {
        return html`<input class="clocks-voltage" data-domain=${row?.number ?? "all"} type="number" step="any" min="0"
            aria-label=${`Voltage of ${name} in volts`} placeholder=${row?.volt ?? "V"} @change=${(event: Event) => {
                const field = event.target as HTMLInputElement;
                const volts = field.valueAsNumber;
                field.value = "";
                if (Number.isFinite(volts)) void jobs.voltage(volts, row?.places[0] ?? null);
            }}>`;
    }

    private curve(found: Domain[]): Curve {
        const series = found.slice(0, CURVES).map(({ number }) =>
            ({ name: `domain ${number}`, values: this.domains.curve(number) }));
        const known = series.every(({ values }) => values.length === this.domains.x.length);
        return { x: known ? this.domains.x : [], series, show: watts, modelled: true };
    }
}

/** Numbers as runs of neighbours: a domain of the SCC has two rows of tiles. */
function runs(numbers: number[]): string {
    const parts: [number, number][] = [];
    for (const number of [...numbers].sort((a, b) => a - b)) {
        const last = parts[parts.length - 1];
        if (last && last[1] === number - 1) last[1] = number;
        else parts.push([number, number]);
    }
    return parts.map(([first, last]) => first === last ? `${first}` : `${first} to ${last}`).join(", ");
}

customElements.define("isles-clocks", Clocks);
