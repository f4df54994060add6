// How a view lies in its pane: larger or smaller, turned, and moved, as two fingers have left it.
//
// Plain values: what fingers and keys do becomes a pose, and a pose becomes a transform of the style sheet. Invariant:
// what lay under the middle of two fingers when they came lies under their middle still.

export interface Point { x: number; y: number }

/** A scale, an angle in radians clockwise, and where the upper left corner lies, in pixels of the pane. */
export interface Pose { scale: number; turn: number; x: number; y: number }

export const UPRIGHT: Pose = { scale: 1, turn: 0, x: 0, y: 0 };

const [SCALE_MIN, SCALE_MAX] = [0.4, 5];

/** Nearer than this to straight, and to the natural size, is meant to be so. */
const [TURN_SNAP, SCALE_SNAP, MOVE_SNAP] = [Math.PI / 30, 0.06, 6];

/** The pose after the view was scaled and turned about the point `from`, which was moved to `to`. */
export function changed(pose: Pose, from: Point, to: Point, scale: number, turn: number): Pose {
    const whole = Math.min(SCALE_MAX, Math.max(SCALE_MIN, pose.scale * scale));
    const factor = whole / pose.scale;
    const [cos, sin] = [Math.cos(turn) * factor, Math.sin(turn) * factor];
    const [x, y] = [pose.x - from.x, pose.y - from.y];
    return {
        scale: whole, turn: pose.turn + turn,
        x: to.x + cos * x - sin * y, y: to.y + sin * x + cos * y,
    };
}

/** The pose after two fingers went from `from` to `to`. */
export function held(pose: Pose, from: [Point, Point], to: [Point, Point]): Pose {
    const middle = ([a, b]: [Point, Point]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
    const length = ([a, b]: [Point, Point]) => Math.hypot(b.x - a.x, b.y - a.y);
    const angle = ([a, b]: [Point, Point]) => Math.atan2(b.y - a.y, b.x - a.x);
    const scale = Math.max(length(to), 1) / Math.max(length(from), 1);
    return changed(pose, middle(from), middle(to), scale, angle(to) - angle(from));
}

/** The pose when the fingers have gone: what is nearly as it was is as it was. */
export function settled(pose: Pose): Pose {
    const round = 2 * Math.PI;
    let turn = pose.turn - round * Math.round(pose.turn / round);
    if (Math.abs(turn) < TURN_SNAP) turn = 0;
    const scale = Math.abs(pose.scale - 1) < SCALE_SNAP ? 1 : pose.scale;
    const near = turn === 0 && scale === 1 && Math.hypot(pose.x, pose.y) < MOVE_SNAP;
    return near ? UPRIGHT : { ...pose, scale, turn };
}

export const isUpright = (pose: Pose) => pose.scale === 1 && pose.turn === 0 && pose.x === 0 && pose.y === 0;

/** The pose for the style sheet, whose origin is the upper left corner; nothing for one that is upright. */
export function transformOf(pose: Pose): string {
    if (isUpright(pose)) return "";
    const number = (value: number) => String(Math.round(1000 * value) / 1000);
    return `translate(${number(pose.x)}px, ${number(pose.y)}px) rotate(${number(pose.turn)}rad) `
        + `scale(${number(pose.scale)})`;
}
