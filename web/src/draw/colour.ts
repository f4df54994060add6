// Colours of shares: cividis, which people with any colour vision see in the same order (Nuñez et al., PLOS ONE 2018).
//
// The ten stops are matplotlib's. Colour never says anything alone: beside it stand a filled height and a number.

const STOPS = [
    [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
    [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56],
] as const;

const TABLE: string[] = Array.from({ length: 101 }, (_, percent) => {
    const at = (percent / 100) * (STOPS.length - 1);
    const low = Math.min(STOPS.length - 2, Math.floor(at));
    const part = at - low;
    const mix = (channel: 0 | 1 | 2) =>
        Math.round(STOPS[low]![channel] * (1 - part) + STOPS[low + 1]![channel] * part);
    return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
});

/** The colour of a share from 0 to 1. */
export function colourOf(share: number): string {
    return TABLE[Math.round(100 * Math.min(1, Math.max(0, share || 0)))]!;
}

/** The colours of the theme that a canvas needs, read once a drawing. */
export interface Ink {
    ink: string; muted: string; line: string; surface: string; track: string; accent: string; bad: string;
    idle: string;
}

export function inkOf(): Ink {
    const style = getComputedStyle(document.documentElement);
    const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
    return {
        ink: read("ink"), muted: read("muted"), line: read("line"), surface: read("surface"), track: read("track"),
        accent: read("accent"), bad: read("bad"), idle: read("idle"),
    };
}
