// What every element of the page is: drawn into the page itself (one style sheet for all), and again when the store
// says that something changed.

import { LitElement } from "lit";
import { store } from "../model/store";

export abstract class Element extends LitElement {
    private leave: (() => void) | null = null;

    protected override createRenderRoot(): this {
        return this;
    }

    override connectedCallback(): void {
        super.connectedCallback();
        this.leave = store.subscribe(() => this.requestUpdate());
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.leave?.();
    }
}

let nextId = 1;
/** An identifier for one element of the page, to label or describe another. */
export const idOf = (word: string) => `${word}-${nextId++}`;
