// The traffic on the links of a mesh, drawn into the gaps between its tiles.
//
// Each directed link is an arrow on its own side of the gap: the one to the right above the one to the left, the one
// up left of the one down. Load makes it thicker and colours it; an idle link is a hair line.

import type { Link } from "../model/api";
import type { Ink } from "./colour";
import type { PlaceMap } from "./map";

export interface TileBox { x: number; y: number; width: number; height: number }

export function drawLinks(
    context: CanvasRenderingContext2D, map: PlaceMap, links: Link[], box: (tile: number) => TileBox, ink: Ink,
): void {
    for (const link of links) {
        const from = map.tileCell(link.from);
        const to = map.tileCell(link.to);
        const [right, down] = [to.column - from.column, to.row - from.row];
        // Only neighbours have a gap between them; the way around a torus has none to draw.
        if (Math.abs(right) + Math.abs(down) !== 1) continue;
        const a = box(link.from);
        const b = box(link.to);
        if (right !== 0) {
            const side = right > 0 ? -1 : 1;
            const y = a.y + a.height / 2 + side * Math.min(9, a.height / 5);
            arrow(context, right > 0 ? a.x + a.width : a.x, y, right > 0 ? b.x : b.x + b.width, y, link.load, ink);
        } else {
            const side = down < 0 ? -1 : 1;
            const x = a.x + a.width / 2 + side * Math.min(9, a.width / 5);
            arrow(context, x, down > 0 ? a.y + a.height : a.y, x, down > 0 ? b.y : b.y + b.height, link.load, ink);
        }
    }
}

function arrow(
    context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number, load: number, ink: Ink,
): void {
    const length = Math.hypot(x1 - x0, y1 - y0);
    if (length < 3) return;
    const [along, across] = [(x1 - x0) / length, (y1 - y0) / length];
    const share = Math.min(1, Math.max(0, load));
    const width = Math.min(length / 2, 1 + 6 * share);
    const head = length < 8 ? 0 : Math.min(length / 2, 3 + width);
    context.strokeStyle = context.fillStyle = share < 0.02 ? ink.line : ink.accent;
    context.globalAlpha = share < 0.02 ? 1 : 0.5 + 0.5 * share;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x0 + along, y0 + across);
    context.lineTo(x1 - along * (head + 1), y1 - across * (head + 1));
    context.stroke();
    if (head > 0) {
        const half = Math.max(2.5, width * 0.9);
        context.beginPath();
        context.moveTo(x1 - along, y1 - across);
        context.lineTo(x1 - along * (head + 1) - across * half, y1 - across * (head + 1) + along * half);
        context.lineTo(x1 - along * (head + 1) + across * half, y1 - across * (head + 1) - along * half);
        context.fill();
    }
    context.globalAlpha = 1;
}
