// The stages of pipelines: where each runs, how many items pass it in a second, and how many wait before it.

import { html, nothing } from "lit";
import { count, plain, rate } from "../draw/text";
import type { Stage } from "../model/api";
import { stages } from "../model/stages";
import type { Column } from "../parts/table";
import { placeLink, View } from "../parts/view";
import "../parts/table";

export class StagesView extends View {
    private leaveStages: (() => void) | null = null;

    override connectedCallback(): void {
        super.connectedCallback();
        this.leaveStages = stages.watch();
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.leaveStages?.();
    }

    override render() {
        const rows = stages.stages;
        const several = new Set(rows.map((row) => row.pipeline)).size > 1;
        const columns: Column<Stage>[] = [
            { name: "Stage", value: (row) => row.stage, show: (row) => plain(row.name) },
            { name: "Place", number: true, value: (row) => row.place, show: (row) => placeLink(row.place) },
            { name: "Items/s", number: true, value: (row) => row.items_per_s, show: (row) => rate(row.items_per_s) },
            {
                name: "Queue", number: true, value: (row) => row.waiting / Math.max(1, row.queue),
                show: (row) => `${count(row.waiting)} of ${count(row.queue)}`,
            },
        ];
        if (several) {
            columns.splice(1, 0, { name: "Pipeline", number: true, value: (row) => row.pipeline });
        }
        return html`
            ${stages.trouble ? html`<p class="note is-bad">${stages.trouble}</p>` : nothing}
            ${rows.length === 0 ? html`<p class="nothing">no pipeline runs, or none for a second yet</p>` : html`
                <isles-table .label=${"Stages of pipelines"} .columns=${columns} .rows=${rows}></isles-table>
                <p class="note">Stages of one place run together: rate and queue are those of all of them.</p>`}`;
    }
}

customElements.define("isles-stages-view", StagesView);
