// The help: all keys, and the switch that takes the single letters away (WCAG 2.1.4).

import { html } from "lit";
import { preferences } from "../model/preferences";
import { Element } from "../parts/element";
import type { Command } from "./commands";
import { keysText } from "./palette";

const IN_MAPS: [string, string][] = [
    ["arrows, Home, End", "walk over the map as it lies, or over a curve"],
    ["Enter", "open the place"],
    ["Space", "pin the place beside the others, or let it go"],
    ["Tab, Shift Tab", "to the next and the previous control"],
];

const SIGNS: [string, string][] = [
    ["▔", "a dashed line above a cell: the place waits"],
    ["✕", "the place is dead; its view says why"],
    ["?", "nothing is known of the place"],
];

export class Help extends Element {
    commands: Command[] = [];

    override render() {
        return html`<dialog class="help" aria-labelledby="help-head">
            <div class="part-head"><h2 id="help-head">Keys</h2>
                <button class="quiet" @click=${() => this.querySelector("dialog")?.close()}>Close</button></div>
            <div class="help-keys" tabindex="0" role="region" aria-label="All keys"><dl>
                ${this.commands.filter((command) => command.keys && (command.offered?.() ?? true)).map((command) =>
                    html`<div><dt><kbd>${keysText(command.keys)}</kbd></dt><dd>${command.name}</dd></div>`)}
                ${IN_MAPS.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}
            </dl><h3>Signs on the map</h3><dl>
                ${SIGNS.map(([sign, what]) => html`<div><dt>${sign}</dt><dd>${what}</dd></div>`)}
            </dl></div>
            <label class="switch"><input type="checkbox" .checked=${preferences.letters}
                @change=${(event: Event) => preferences.setLetters((event.target as HTMLInputElement).checked)}>
                Single letters are commands</label>
        </dialog>`;
    }

    open(): void {
        this.requestUpdate();
        const dialog = this.querySelector("dialog");
        if (dialog && !dialog.open) dialog.showModal();
    }
}

customElements.define("isles-help", Help);
