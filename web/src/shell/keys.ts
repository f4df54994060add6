// Listens to the keyboard for the commands of the table.
//
// Single letters do nothing while somebody types, with a modifier held, in a dialogue, or when the reader has switched
// them off; Ctrl-K, F6 and Escape always work.

import { preferences } from "../model/preferences";
import type { Command, Shell } from "./commands";

/** How long the second key of two may take. */
const PAIR_MS = 1500;

export function listen(commands: Command[], shell: Shell): void {
    let first = "";
    let since = 0;
    document.addEventListener("keydown", (event) => {
        if (event.defaultPrevented) return;
        if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
            event.preventDefault();
            shell.palette();
            return;
        }
        if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
        const letter = event.key.length === 1;
        if (letter && (!preferences.letters || types(event.target))) return;
        if (event.key === "Escape" && event.target instanceof HTMLSelectElement) return;
        const pair = first !== "" && event.timeStamp - since < PAIR_MS ? first : "";
        first = "";
        const offered = commands.filter((command) => command.offered?.() ?? true);
        const match = offered.find(({ keys }) => keys !== undefined
            && (pair ? keys.length === 2 && keys[0] === pair && keys[1] === event.key
                : keys.length === 1 && (keys[0] === event.key || (event.key === ":" && keys[0] === "/"))));
        if (match) {
            event.preventDefault();
            match.run();
        } else if (!pair && commands.some(({ keys }) => keys?.length === 2 && keys[0] === event.key)) {
            first = event.key;
            since = event.timeStamp;
        }
    });
}

function types(target: EventTarget | null): boolean {
    // A dialogue that has just closed keeps the keyboard until the next frame.
    if (target instanceof Element && target.closest("dialog:not([open])")) return false;
    return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement
        || target instanceof HTMLSelectElement;
}
