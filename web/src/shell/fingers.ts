// Two fingers on a view: they scale, turn and move it, as a sheet that lies on a table. One finger scrolls and presses.
//
// The browser is kept from taking two fingers for its own zoom, on these views only. Invariant: a gesture begins with
// the second finger and ends with the first that leaves; what a third one does is passed over.

import { held, settled, type Point, type Pose } from "../model/pose";
import { store } from "../model/store";

export class Fingers {
    // Lit hands this to the browser: a listener that is passive could not keep the browser's own zoom away.
    readonly passive = false;
    private pane = 0;
    private from: [Point, Point] | null = null;
    private ids: number[] = [];
    private pose!: Pose;

    handleEvent(event: TouchEvent): void {
        const body = event.currentTarget as HTMLElement;
        const fingers = [...event.touches].filter((touch) => body.contains(touch.target as Node));
        if (event.type === "touchstart" && fingers.length === 2) this.begin(body, fingers);
        else if (event.type === "touchmove") this.move(body, fingers);
        else if (this.ids.some((id) => fingers.every((touch) => touch.identifier !== id))) this.end();
        if (this.from && event.cancelable && event.type !== "touchend") event.preventDefault();
    }

    private begin(body: HTMLElement, fingers: Touch[]): void {
        const id = Number(body.dataset.pane);
        const pane = store.panes.find((other) => other.id === id);
        if (!pane) return;
        this.pane = id;
        this.pose = pane.pose;
        this.ids = fingers.map((touch) => touch.identifier);
        this.from = pointsOf(body, fingers);
    }

    private move(body: HTMLElement, fingers: Touch[]): void {
        const both = this.ids.map((id) => fingers.find((touch) => touch.identifier === id));
        if (!this.from || Number(body.dataset.pane) !== this.pane || !both[0] || !both[1]) return;
        store.setPose(this.pane, held(this.pose, this.from, pointsOf(body, [both[0], both[1]])));
    }

    private end(): void {
        const pane = store.panes.find((other) => other.id === this.pane);
        if (this.from && pane) store.setPose(pane.id, settled(pane.pose));
        this.from = null;
        this.ids = [];
    }
}

/** Where two fingers are, in pixels of the pane. */
function pointsOf(body: HTMLElement, fingers: Touch[]): [Point, Point] {
    const box = body.getBoundingClientRect();
    const point = (touch: Touch) => ({ x: touch.clientX - box.left, y: touch.clientY - box.top });
    return [point(fingers[0]!), point(fingers[1]!)];
}
