// Which views are open beside each other, as plain values; the address carries them in its fragment.
//
// A pane that is pinned stays; opening a view reuses the one pane that is not, or adds one. So what somebody wants to
// compare is pinned, and everything else never piles up. A place opens beside the map, where the next one is chosen.

import { UPRIGHT, type Pose } from "./pose";

export const VIEWS = ["summary", "chip", "core", "messages", "finishes", "stages", "power", "jobs",
    "warnings"] as const;
export type ViewName = typeof VIEWS[number];

/** Views that two fingers scale, turn and move: those of cores. */
export const POSED: readonly ViewName[] = ["chip", "core"];

export interface Pane { id: number; view: ViewName; place: number; pinned: boolean; pose: Pose }

/** More than this many side by side could not be read. */
export const PANES_MAX = 6;

let nextId = 1;

export function paneOf(view: ViewName, place: number, pinned: boolean): Pane {
    return { id: nextId++, view, place, pinned, pose: UPRIGHT };
}

/** Opens a view: focuses one that shows it already, else takes the pane that is not pinned, else adds one. */
export function open(panes: Pane[], view: ViewName, place: number): { panes: Pane[]; at: Pane } {
    const shown = panes.find((pane) => pane.view === view && (view !== "core" || pane.place === place));
    if (shown) return { panes, at: shown };
    const free = panes.findIndex((pane) => !pane.pinned && !(view === "core" && pane.view === "chip"));
    if (free >= 0) {
        const at = { ...panes[free]!, view, place, pose: view === panes[free]!.view ? panes[free]!.pose : UPRIGHT };
        return { panes: panes.map((pane, index) => index === free ? at : pane), at };
    }
    const at = paneOf(view, place, false);
    // Where all are pinned and there is no room, the last gives way.
    return { panes: [...panes.slice(0, PANES_MAX - 1), at], at };
}

/** The panes as the fragment of an address, `chip*,core:5`: a star is a pin. */
export function toFragment(panes: Pane[]): string {
    return panes.map((pane) =>
        pane.view + (pane.view === "core" ? `:${pane.place}` : "") + (pane.pinned ? "*" : "")).join(",");
}

/** The panes that a fragment names; what it names wrongly is left out. */
export function fromFragment(fragment: string, places: number): Pane[] {
    const panes: Pane[] = [];
    for (const part of fragment.split(",").slice(0, PANES_MAX)) {
        const match = /^([a-z]+)(?::(\d{1,6}))?(\*?)$/.exec(part);
        const view = VIEWS.find((name) => name === match?.[1]);
        const place = Number(match?.[2] ?? 0);
        if (match && view && place < places) panes.push(paneOf(view, place, match[3] === "*"));
    }
    return panes;
}
