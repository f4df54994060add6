// The open finishes as the tree that they are: each with its home, its age, and the places that it waits for.
//
// A tree for the keyboard too: up and down walk the rows, left and right close and open, Enter opens the home. Rows
// keep the order in which the server says them; more than `ROWS` would not be read, so the rest is a number.

import { html, nothing, type TemplateResult } from "lit";
import { plain, plural, span } from "../draw/text";
import { WAITS_TOLD, type Finish } from "../model/api";
import { store } from "../model/store";
import { nothingYet, placeLink, View } from "../parts/view";

const ROWS = 200;
const WAITS = 5;

interface Row { finish: Finish; level: number; children: number; at: number; of: number }

/** For how long a finish is open: of a chip in modelled time, and then it says so. */
export function age(finish: Finish): string {
    return span(finish.open_ms) + (store.shown?.model_ms == null ? "" : " modelled");
}

export class FinishesView extends View {
    private closed = new Set<string>();
    private active = "";

    override render() {
        const { shown } = store;
        if (!shown) return nothingYet;
        const rows = this.flatten(shown.finishes);
        if (rows.length === 0) return html`<p class="nothing">no finish is open</p>`;
        const seen = rows.slice(0, ROWS);
        if (!seen.some((row) => String(row.finish.id) === this.active)) this.active = String(seen[0]!.finish.id);
        return html`
            <div role="tree" aria-label="Open finishes" class="tree" @keydown=${this.key}>
                ${seen.map((row) => this.row(row))}</div>
            ${rows.length > ROWS
                ? html`<p class="note">${plural(rows.length - ROWS, "more", "more")} not shown</p>` : nothing}`;
    }

    private row({ finish, level, children, at, of }: Row): TemplateResult {
        const id = String(finish.id);
        const open = !this.closed.has(id);
        return html`<div role="treeitem" class="tree-row" data-id=${id} data-level=${Math.min(level, 8)}
            tabindex=${id === this.active ? 0 : -1} aria-level=${level} aria-posinset=${at} aria-setsize=${of}
            aria-expanded=${children > 0 ? String(open) : nothing} aria-selected=${String(id === this.active)}
            @focus=${() => this.activate(id)}>
            <span class="tree-sign" aria-hidden="true" @click=${() => this.fold(id, !open)}>${
                children === 0 ? "" : open ? "▾" : "▸"}</span>
            <span class="tree-name">${plain(finish.label) || "finish"}</span>
            <span class="tree-age">open ${age(finish)}</span>
            <span class="tree-home">${placeLink(finish.home)}</span>
            <span class="tree-waits">${this.waits(finish)}</span>
        </div>`;
    }

    private waits(finish: Finish): TemplateResult {
        const { waits_for: waits } = finish;
        if (waits.length === 0) return html`waits for its body`;
        const tasks = waits.reduce((total, [, count]) => total + count, 0);
        const least = waits.length === WAITS_TOLD ? "at least " : "";
        return html`waits for ${least}${plural(tasks, "task")} at ${waits.slice(0, WAITS).map(([place], index) =>
            html`${index > 0 ? ", " : ""}${placeLink(place)}`)}${
            waits.length > WAITS ? ` and ${waits.length - WAITS} more` : ""}`;
    }

    /** The rows of the tree that are not folded away, parents before children. */
    private flatten(finishes: Finish[]): Row[] {
        const known = new Set(finishes.map((finish) => String(finish.id)));
        const below = new Map<string, Finish[]>();
        for (const finish of finishes) {
            // A parent that has ended, or is not told, makes a root.
            const parent = finish.parent !== null && known.has(String(finish.parent)) ? String(finish.parent) : "";
            below.set(parent, [...(below.get(parent) ?? []), finish]);
        }
        const rows: Row[] = [];
        const walk = (parent: string, level: number) => {
            const children = below.get(parent) ?? [];
            children.forEach((finish, index) => {
                const id = String(finish.id);
                if (rows.length > finishes.length) return;
                rows.push({
                    finish, level, children: below.get(id)?.length ?? 0, at: index + 1, of: children.length,
                });
                if (!this.closed.has(id) && level < 64) walk(id, level + 1);
            });
        };
        walk("", 1);
        return rows;
    }

    private activate(id: string): void {
        if (id === this.active) return;
        this.active = id;
        this.requestUpdate();
    }

    private fold(id: string, open: boolean): void {
        if (open) this.closed.delete(id);
        else this.closed.add(id);
        this.requestUpdate();
    }

    private key(event: KeyboardEvent): void {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const items = [...this.querySelectorAll<HTMLElement>(".tree-row")];
        const at = items.findIndex((item) => item.dataset.id === this.active);
        const item = items[at];
        if (!item || event.target !== item) return;
        const expanded = item.getAttribute("aria-expanded");
        const level = Number(item.getAttribute("aria-level"));
        const go = (to: HTMLElement | undefined) => to?.focus();
        switch (event.key) {
            case "ArrowDown": case "j": go(items[at + 1]); break;
            case "ArrowUp": case "k": go(items[at - 1]); break;
            case "Home": go(items[0]); break;
            case "End": go(items.at(-1)); break;
            case "ArrowRight":
                if (expanded === "false") this.fold(this.active, true);
                else if (expanded === "true") go(items[at + 1]);
                break;
            case "ArrowLeft":
                if (expanded === "true") this.fold(this.active, false);
                else go(items.slice(0, at).reverse().find((other) => Number(other.ariaLevel) < level));
                break;
            case "Enter": {
                const finish = store.shown?.finishes.find((other) => String(other.id) === this.active);
                if (finish) store.openView("core", finish.home, true);
                break;
            }
            default: return;
        }
        event.preventDefault();
        event.stopPropagation();
    }
}

customElements.define("isles-finishes-view", FinishesView);
