// A table of numbers beside each picture: the same content for who cannot see it, wants to sort it, or to copy it.
//
// At most `ROWS` rows are drawn at a time, with buttons for the rest: a thousand rows that change twice a second would
// cost more than all pictures. Rows keep their order until the reader asks for another.

import { html, nothing, type TemplateResult } from "lit";
import { Element } from "./element";

export const ROWS = 64;

export interface Column<Row> {
    name: string;
    /** Numbers stand to the right and sort from the largest. */
    number?: boolean;
    value(row: Row): number | string;
    show?(row: Row): unknown;
}

export class Table<Row> extends Element {
    static override properties = { label: {}, columns: { attribute: false }, rows: { attribute: false } };
    declare label: string;
    declare columns: Column<Row>[];
    declare rows: Row[];
    private from = 0;
    private by = -1;
    private descending = false;

    constructor() {
        super();
        this.label = "";
        this.columns = [];
        this.rows = [];
    }

    override render(): TemplateResult {
        const rows = this.sorted();
        this.from = Math.min(this.from, Math.max(0, Math.floor((rows.length - 1) / ROWS) * ROWS));
        const shown = rows.slice(this.from, this.from + ROWS);
        return html`
            <div class="table-scroll" tabindex="0" role="region" aria-label=${this.label}>
                <table>
                    <caption class="unseen">${this.label}</caption>
                    <thead><tr>${this.columns.map((column, index) => this.head(column, index))}</tr></thead>
                    <tbody>${shown.map((row) => html`<tr>${this.columns.map((column, index) => {
                        const text = column.show ? column.show(row) : column.value(row);
                        return index === 0 ? html`<th scope="row" class=${column.number ? "number" : ""}>${text}</th>`
                            : html`<td class=${column.number ? "number" : ""}>${text}</td>`;
                    })}</tr>`)}</tbody>
                </table>
            </div>
            ${rows.length > ROWS ? this.pages(rows.length) : nothing}`;
    }

    private head(column: Column<Row>, index: number): TemplateResult {
        const sorted = index === this.by ? (this.descending ? "descending" : "ascending") : "none";
        return html`<th scope="col" class=${column.number ? "number" : ""} aria-sort=${sorted}>
            <button class="sort" @click=${() => this.sort(index)}>${column.name}<span aria-hidden="true">${
                sorted === "none" ? "" : this.descending ? " ↓" : " ↑"}</span></button></th>`;
    }

    private pages(many: number): TemplateResult {
        const to = Math.min(many, this.from + ROWS);
        const go = (by: number) => {
            this.from += by;
            this.requestUpdate();
        };
        return html`<p class="table-pages">
            <button ?disabled=${this.from === 0} @click=${() => go(-ROWS)}>Previous</button>
            <span>rows ${this.from + 1} to ${to} of ${many}</span>
            <button ?disabled=${to === many} @click=${() => go(ROWS)}>Next</button></p>`;
    }

    private sort(index: number): void {
        const first = this.columns[index]?.number ?? false;
        if (this.by !== index) {
            this.by = index;
            this.descending = first;
        } else if (this.descending === first) {
            this.descending = !first;
        } else {
            this.by = -1;
        }
        this.requestUpdate();
    }

    private sorted(): Row[] {
        const column = this.columns[this.by];
        if (!column) return this.rows;
        const sign = this.descending ? -1 : 1;
        return [...this.rows].sort((a, b) => {
            const [left, right] = [column.value(a), column.value(b)];
            return sign * (left < right ? -1 : left > right ? 1 : 0);
        });
    }
}

customElements.define("isles-table", Table);
