// The voltage domains of a modelled chip as its job server tells them, and what the places of each have drawn.
//
// Powers are means of modelled time, as the server remembers them, so a curve of them sums up to an energy. Cores
// without a place belong to no domain here: nobody knows what they draw one by one.

import { getHistory, type Core, type Snapshot } from "./api";

export interface Domain {
    number: number;
    places: number[];
    mhz: number[];
    dividers: number[];
    volt: number | null;
    governor: string;
    watt: number;
    /** Energy so far, as far back as the server remembers. */
    joule: number;
}

export class Domains {
    /** Seconds of modelled time, ascending. */
    x: number[] = [];
    private watts = new Map<number, number[]>();
    private joules = new Map<number, number>();
    private loading = false;

    /** All domains by number; none if the cores have no supplies. */
    all(cores: Core[], shown: Snapshot): Domain[] {
        const found = new Map<number, Domain>();
        for (const core of cores) {
            if (core.supply === null || core.supply === undefined) continue;
            const domain = found.get(core.supply) ?? {
                number: core.supply, places: [], mhz: [], dividers: [], volt: core.volts ?? null,
                governor: core.governor ?? "", watt: 0, joule: this.joules.get(core.supply) ?? 0,
            };
            domain.places.push(core.place);
            domain.mhz.push(Math.round(core.megahertz ?? 0));
            if (core.divider !== null) domain.dividers.push(core.divider);
            domain.watt += shown.places.watt?.[core.place] ?? 0;
            found.set(core.supply, domain);
        }
        return [...found.values()].sort((a, b) => a.number - b.number);
    }

    /** The power of a domain at each of the times. */
    curve(domain: number): number[] {
        return this.watts.get(domain) ?? [];
    }

    /** Asks the server what it remembers of the places of all domains. */
    async load(domains: Domain[]): Promise<void> {
        if (this.loading || domains.length === 0) return;
        this.loading = true;
        try {
            const { model_ms, series } = await getHistory(domains.flatMap((domain) => domain.places), "watt");
            const times = model_ms ?? [];
            // Rows at which no modelled time has passed say nothing new.
            const rows = times.map((_, row) => row).filter((row) => times[row]! > (times[row - 1] ?? 0));
            this.x = rows.map((row) => times[row]! / 1000);
            for (const { number, places } of domains) {
                const watts = rows.map((row) =>
                    places.reduce((sum, place) => sum + (series[String(place)]?.[row] ?? 0), 0));
                this.watts.set(number, watts);
                this.joules.set(number, watts.reduce((sum, watt, index) =>
                    sum + watt * (this.x[index]! - (this.x[index - 1] ?? 0)), 0));
            }
        } finally {
            this.loading = false;
        }
    }
}
