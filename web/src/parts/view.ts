// What every view has: the pane that it fills, and the small pieces that all of them use.

import { html, type TemplateResult } from "lit";
import type { Pane } from "../model/layout";
import { store } from "../model/store";
import { Element } from "./element";

export abstract class View extends Element {
    static override properties = { pane: { attribute: false } };
    declare pane: Pane;
}

/** A link to the view of a place, as all views name places. */
export function placeLink(place: number): TemplateResult {
    return html`<button class="link" @click=${(event: MouseEvent) =>
        store.openView("core", place, event.detail === 0)}>place ${place}</button>`;
}

/** A button that stays down, as "show as table" is. */
export function toggle(name: string, on: boolean, change: (on: boolean) => void): TemplateResult {
    return html`<button class="quiet" aria-pressed=${String(on)} @click=${() => change(!on)}>${name}</button>`;
}

/** A quantity with its name. */
export function figure(name: string, value: unknown, note: unknown = ""): TemplateResult {
    return html`<div class="figure"><dt>${name}</dt><dd>${value}${
        note === "" ? "" : html` <small>${note}</small>`}</dd></div>`;
}

export const nothingYet = html`<p class="nothing">no picture of the run yet</p>`;
