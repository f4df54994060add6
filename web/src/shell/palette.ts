// The palette: type a few letters of a command, or the number of a place.
//
// A combo box over a list in a modal dialogue; the keyboard stays in the box, the chosen row is told by
// `aria-activedescendant`. Closing gives the keyboard back to where it was.

import { html } from "lit";
import { store } from "../model/store";
import { Element } from "../parts/element";
import type { Command } from "./commands";

interface Entry { name: string; keys: string; run(): void }
const ENTRIES = 12;

export class Palette extends Element {
    commands: Command[] = [];
    private text = "";
    private chosen = 0;

    override render() {
        const entries = this.entries();
        this.chosen = Math.min(this.chosen, Math.max(0, entries.length - 1));
        return html`<dialog class="palette" aria-label="Commands" @close=${this.closed} @click=${this.outside}>
            <input type="text" role="combobox" aria-label="Command or number of a place" aria-expanded="true"
                aria-controls="palette-list" aria-autocomplete="list" autocomplete="off" spellcheck="false"
                aria-activedescendant=${entries.length > 0 ? `palette-${this.chosen}` : ""}
                placeholder="Command, or number of a place" .value=${this.text}
                @input=${this.typed} @keydown=${this.key}>
            <ul id="palette-list" role="listbox" aria-label="Commands">${entries.map((entry, index) => html`
                <li id=${`palette-${index}`} role="option" aria-selected=${String(index === this.chosen)}
                    @click=${() => this.take(entry)}><span>${entry.name}</span><kbd>${entry.keys}</kbd></li>`)}</ul>
            <p class="nothing" role="status" ?hidden=${entries.length > 0}>no such command</p>
        </dialog>`;
    }

    open(): void {
        this.text = "";
        this.chosen = 0;
        this.requestUpdate();
        const dialog = this.querySelector("dialog");
        if (!dialog || dialog.open) return;
        dialog.showModal();
        this.querySelector("input")?.focus();
    }

    private entries(): Entry[] {
        const words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
        const entries: Entry[] = [];
        const number = words.find((word) => /^\d+$/.test(word));
        const place = Number(number);
        if (number !== undefined && store.run && place < store.run.places) {
            entries.push({ name: `Show place ${place}`, keys: "", run: () => store.openView("core", place, true) });
            entries.push({ name: `Pin place ${place}`, keys: "", run: () => store.pinPlace(place) });
        }
        for (const command of this.commands) {
            if (!(command.offered?.() ?? true)) continue;
            const name = command.name.toLowerCase();
            if (!words.every((word) => name.includes(word))) continue;
            entries.push({ name: command.name, keys: keysText(command.keys), run: () => command.run() });
        }
        return entries.slice(0, this.text === "" ? 99 : ENTRIES);
    }

    private typed(event: Event): void {
        this.text = (event.target as HTMLInputElement).value;
        this.chosen = 0;
        this.requestUpdate();
    }

    private key(event: KeyboardEvent): void {
        const entries = this.entries();
        const move = (to: number) => {
            this.chosen = (to + entries.length) % Math.max(1, entries.length);
            this.requestUpdate();
            void this.updateComplete.then(() =>
                this.querySelector(`#palette-${this.chosen}`)?.scrollIntoView({ block: "nearest" }));
        };
        if (event.key === "ArrowDown") move(this.chosen + 1);
        else if (event.key === "ArrowUp") move(this.chosen - 1);
        else if (event.key === "Enter") {
            const entry = entries[this.chosen];
            if (entry) this.take(entry);
        } else return;
        event.preventDefault();
        event.stopPropagation();
    }

    private take(entry: Entry): void {
        this.querySelector("dialog")?.close();
        entry.run();
    }

    private outside(event: MouseEvent): void {
        if (event.target === event.currentTarget) (event.currentTarget as HTMLDialogElement).close();
    }

    private closed(): void {
        this.text = "";
        this.requestUpdate();
    }
}

const NAMES: Record<string, string> = { Escape: "Esc", "/": "/ or Ctrl K" };
export const keysText = (keys: string[] | undefined) => (keys ?? []).map((key) => NAMES[key] ?? key).join(" ");

customElements.define("isles-palette", Palette);
