// Power and clocks of the host on which a run runs, as the host's own files say them: read, never set, never guessed.
//
// Each number stands with its file. What nobody may read is said in the words of the server.

import { html, nothing, type TemplateResult } from "lit";
import { joules, plain, watts } from "../draw/text";
import { getHost, type EnergyZone, type HostReading } from "../model/api";
import { Element } from "./element";
import { figure } from "./view";

const ASK_MS = 2000;

export class Host extends Element {
    private now: HostReading | null = null;
    private last: HostReading | null = null;
    private seconds = 0;
    private asked = 0;
    private timer = 0;

    override connectedCallback(): void {
        super.connectedCallback();
        this.timer = window.setInterval(() => void this.ask(), ASK_MS);
        void this.ask();
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        clearInterval(this.timer);
    }

    override render() {
        if (!this.now) return nothing;
        const { energy, clocks } = this.now;
        return html`<section class="host" aria-label="The host"><h3>The host</h3>
            ${"read" in energy ? html`<dl class="figures">${energy.read.map((zone) => this.zone(zone))}</dl>`
                : html`<p class="note">Power: ${plain(energy.unreadable)}</p>`}
            ${"read" in clocks ? html`<dl class="figures">${figure("Clocks of processors",
                clocks.read.map(({ mhz }) => mhz.toFixed(0)).join(" ") + " MHz", plain(clocks.read[0]!.source))}</dl>`
                : html`<p class="note">Clocks: ${plain(clocks.unreadable)}</p>`}</section>`;
    }

    private zone(zone: EnergyZone): TemplateResult {
        const before = this.last && "read" in this.last.energy
            ? this.last.energy.read.find(({ source }) => source === zone.source) : undefined;
        const power = before && this.seconds > 0 ? `${watts((zone.joule - before.joule) / this.seconds)}, ` : "";
        return figure(`Power of ${plain(zone.name)}`, `${power}${joules(zone.joule)} so far`, plain(zone.source));
    }

    private async ask(): Promise<void> {
        if (document.hidden) return;
        try {
            const now = await getHost();
            const at = performance.now();
            [this.last, this.now, this.seconds, this.asked] = [this.now, now, (at - this.asked) / 1000, at];
        } catch {
            this.now = null; // the run is over, or of another server
        }
        this.requestUpdate();
    }
}

customElements.define("isles-host", Host);
