// How one place is described in words: the label of its cell, the line below a map, the head of its view.

import type { Run, Snapshot, PlaceState } from "../model/api";
import type { Metric } from "../draw/metrics";
import type { PlaceMap } from "../draw/map";
import { count, percent, plain } from "../draw/text";

/** A sign beside the word, so that a state is seen without its colour. */
export const STATE_SIGNS: Record<PlaceState, string> = {
    idle: "", busy: "", waiting: "⧗", ended: "■", dead: "✕", silent: "?",
};

/** One line for people and for screen readers: place 28, tile 14, load 73 %, 3 tasks ready, 533 MHz. */
export function describe(run: Run, map: PlaceMap, snapshot: Snapshot, place: number): string {
    const { places } = snapshot;
    const parts = [`place ${place}`];
    if (map.mesh) parts.push(`tile ${map.tileOf(place)}`);
    else if (run.host_of?.[place]) parts.push(plain(run.host_of[place]));
    const state = places.state[place]!;
    if (state === "dead" || state === "silent" || state === "ended") {
        const cause = places.cause[place];
        parts.push(state + (cause ? `: ${plain(cause)}` : ""));
    } else {
        parts.push(`${state}, load ${percent(places.busy[place]!)}`);
        parts.push(`${count(places.queue[place]!)} ready`);
        if (places.blocked[place]) parts.push(`${count(places.blocked[place]!)} blocked`);
    }
    if (places.clock_mhz) parts.push(`${Math.round(places.clock_mhz[place]!)} MHz`);
    if (places.watt) parts.push(`${places.watt[place]!.toFixed(2)} W`);
    return parts.join(", ");
}

/** What a cell shows for a place: a number, or the sign of a state without one. */
export function cellText(metric: Metric, value: number, state: PlaceState): string {
    if (state === "dead" || state === "silent") return STATE_SIGNS[state];
    return metric.short(value);
}
