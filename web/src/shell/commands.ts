// Every command of the page in one table: the palette, the keys and the help all read it.
//
// No command ends or changes a run; one opens the dialogue in which a job is made.

import { preferences } from "../model/preferences";
import { jobs } from "../model/jobs";
import { POSED, VIEWS, type ViewName } from "../model/layout";
import { store } from "../model/store";

export interface Command {
    name: string;
    /** Keys pressed one after the other. */
    keys?: string[];
    run(): void;
    offered?(): boolean;
}

/** What a key does to the view of cores: a quarter larger, or a twelfth of a turn. */
const [LARGER, TURN] = [1.25, Math.PI / 6];

export const VIEW_NAMES: Record<ViewName, string> = {
    summary: "Summary", chip: "Chip", core: "Place", messages: "Messages", finishes: "Finishes", stages: "Stages",
    power: "Power", jobs: "Jobs", warnings: "Warnings",
};
const VIEW_KEYS: Record<ViewName, string> = {
    summary: "s", chip: "c", core: "o", messages: "m", finishes: "f", stages: "l", power: "p", jobs: "j",
    warnings: "w",
};

/** The name of a view for this run: a run without a mesh has no chip. */
export function viewName(view: ViewName): string {
    return view === "chip" && !store.run?.mesh ? "Places" : VIEW_NAMES[view];
}

/** What the shell does, which only it can. */
export interface Shell {
    palette(): void;
    help(): void;
    back(): void;
    next(): void;
    output(): void;
    /** Asks for a new job. */
    newJob(): void;
    /** Scales by a factor, and turns by an angle in radians, the view of cores that is in use. */
    lay(scale: number, turn: number): void;
    /** Lays that view as it was. */
    straighten(): void;
    /** Presses the button of a name in the view that has the keyboard, or else in the first that has one. */
    press(name: string): void;
}

export function commandsOf(shell: Shell): Command[] {
    const posed = () => store.panes.some((pane) => POSED.includes(pane.view));
    const replay = () => store.run?.mode === "replay";
    return [
        ...VIEWS.map((view): Command => ({
            get name() { return `Show ${viewName(view).toLowerCase()}`; },
            keys: ["g", VIEW_KEYS[view]],
            run: () => store.openView(view, store.place, true),
            offered: () => store.offers(view),
        })),
        {
            get name() {
                if (replay()) return store.playing ? "Pause the replay" : "Play the replay";
                return store.paused ? "Resume the picture" : "Pause the picture";
            },
            keys: ["p"],
            run: () => store.pause(replay() ? store.playing : !store.paused),
        },
        { name: "Show as table or picture", keys: ["t"], run: () => shell.press("Show as table") },
        { name: "Output of the place", keys: ["l"], run: () => shell.output() },
        {
            name: "New job", keys: ["n"], run: () => shell.newJob(),
            offered: () => store.offers("jobs") && jobs.mayTell,
        },
        { name: "Follow the output, or stop", keys: ["f"], run: () => shell.press("Follow") },
        {
            name: "Pin this view, to compare", keys: ["b"],
            run: () => {
                const pane = store.panes.find((other) => other.id === store.paneId);
                if (pane) store.pin(pane.id, !pane.pinned);
            },
        },
        { name: "Larger view of cores", keys: ["+"], run: () => shell.lay(LARGER, 0), offered: posed },
        { name: "Smaller view of cores", keys: ["-"], run: () => shell.lay(1 / LARGER, 0), offered: posed },
        { name: "Turn the view of cores", keys: ["r"], run: () => shell.lay(1, TURN), offered: posed },
        { name: "Straighten the view of cores", keys: ["0"], run: () => shell.straighten(), offered: posed },
        { name: "Next view", keys: ["F6"], run: () => shell.next() },
        { name: "Back to the map", keys: ["Escape"], run: () => shell.back() },
        { name: "Light theme", run: () => preferences.setTheme("light") },
        { name: "Dark theme", run: () => preferences.setTheme("dark") },
        { name: "Theme of the system", run: () => preferences.setTheme("auto") },
        { name: "Commands", keys: ["/"], run: () => shell.palette() },
        { name: "Help with keys", keys: ["?"], run: () => shell.help() },
    ];
}
