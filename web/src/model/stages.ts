// The stages of the pipelines of a run, asked for while a view shows them, and now and then until there are some.
//
// A run without pipelines is asked rarely and never offers the view. Subscribers are told when something has changed.

import { getStages, type Stage } from "./api";
import { store } from "./store";

const ASK_MS = 1000;
/** Between two questions of a page that shows no stages. */
const RARELY_MS = 5000;

class StagesModel {
    stages: Stage[] = [];
    trouble = "";
    private views = 0;
    private asking = false;
    private asked = -Infinity;
    private until: number | null = null;

    /** Asks as often as a view needs; returns what ends that. */
    watch(): () => void {
        this.views += 1;
        void this.ask();
        return () => { this.views -= 1; };
    }

    start(): void {
        window.setInterval(() => void this.ask(), ASK_MS);
        void this.ask();
    }

    private async ask(): Promise<void> {
        const { run } = store;
        if (!run || this.asking || document.hidden) return;
        const isShown = this.views > 0;
        const until = run.mode === "replay" || store.paused ? store.shown?.time_ms ?? 0 : null;
        const isNew = this.asked === -Infinity || until === null || until !== this.until;
        const isDue = isShown || (!store.hasStages && performance.now() - this.asked >= RARELY_MS);
        if (!isNew || !isDue) return;
        this.asking = true;
        this.asked = performance.now();
        this.until = until;
        try {
            const said = await getStages(until);
            this.stages = said.stages;
            store.hasStages = said.reported;
            this.trouble = "";
        } catch (error) {
            this.trouble = error instanceof Error ? error.message : String(error);
        } finally {
            this.asking = false;
            store.changed();
        }
    }
}

export const stages = new StagesModel();
