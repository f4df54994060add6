// Numbers, times and foreign text as people read them.
//
// `plain` is for every string that comes from a run (names, causes, output): it takes control sequences out and makes
// other control characters and changes of direction visible. Lit then shows it as text; nothing is ever markup.

// Escape sequences of terminals: CSI, OSC (up to its end, or to the end of the line), and two-character ones.
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|[@-Z\\^_a-z])/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const DIRECTIONS = /[\u0080-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

export function plain(text: unknown): string {
    return String(text ?? "")
        .replace(SEQUENCES, "")
        .replace(CONTROLS, (control) => control === "\u007f" ? "\u2421"
            : String.fromCharCode(0x2400 + control.charCodeAt(0)))
        .replace(DIRECTIONS, (mark) => `<U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count: all its digits up to 9,999, then three with k, M or G. */
export function count(value: number): string {
    if (!Number.isFinite(value)) return "–";
    if (Math.abs(value) < 10_000) return grouped.format(value);
    return scaled(value, 1000, ["", " k", " M", " G", " T"]);
}

export function bytes(value: number): string {
    if (!Number.isFinite(value)) return "–";
    if (value < 1024) return `${grouped.format(value)} B`;
    return scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
}

function scaled(value: number, base: number, units: string[]): string {
    let unit = 0;
    let rest = value;
    while (Math.abs(rest) >= base && unit < units.length - 1) {
        rest /= base;
        unit += 1;
    }
    return (rest >= 100 ? rest.toFixed(0) : rest >= 10 ? rest.toFixed(1) : rest.toFixed(2)) + units[unit]!;
}

/** A rate: with a decimal where it is small. */
export function rate(value: number): string {
    return value > 0 && value < 10 ? value.toFixed(1) : count(value);
}

export function percent(share: number): string {
    return Number.isFinite(share) ? `${Math.round(100 * share)} %` : "–";
}

/** A time of the run: seconds with one decimal below a minute, else minutes and hours. */
export function time(ms: number): string {
    if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
    return clock(ms);
}

/** A time as a clock shows it, for axes and sliders: 1:07, 2:03:09. */
export function clock(ms: number): string {
    const seconds = Math.floor(ms / 1000);
    const two = (value: number) => String(value).padStart(2, "0");
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
    return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** A time of a run of this length: as a clock shows it, or with a decimal where the run is shorter than a minute. */
export const moment = (ms: number, length: number) => length < 60_000 ? time(ms) : clock(ms);

/** A span, short: 340 ms, 12 s, 4 min, 2 h. */
export function span(ms: number): string {
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
    if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
    if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
    return `${(ms / 3_600_000).toFixed(1)} h`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
    return `${count(value)} ${value === 1 ? one : many}`;
}

/** A power: with decimals where it is small. */
export function watts(value: number): string {
    return value === 0 ? "0 W" : `${value < 10 ? value.toFixed(2) : value < 1000 ? value.toFixed(1) : count(value)} W`;
}

/** An energy: three digits, with the unit that fits. */
export function joules(value: number): string {
    const units: [number, string][] = [[1, "J"], [1e-3, "mJ"], [1e-6, "µJ"]];
    if (value >= 1000) return `${count(value)} J`;
    const [unit, name] = units.find(([least]) => value >= least) ?? units[2]!;
    return value === 0 ? "0 J" : `${Number((value / unit).toPrecision(3))} ${name}`;
}

/** A time on a modelled chip, which may be microseconds. */
export function modelled(ms: number): string {
    return ms < 1 ? `${(1000 * ms).toFixed(0)} µs` : ms < 1000 ? `${ms.toFixed(ms < 10 ? 2 : 1)} ms` : time(ms);
}

/**
 * What runs, and with which words: the file's name without its folders; of a program of `isles run NAME`, which is a
 * file `isles-NAME`, the name, since that is what the reader has chosen.
 */
export function commandOf(program: string, words: string[]): { name: string; rest: string } {
    const file = program.split("/").pop() || program;
    return { name: plain(/^isles-[a-z]+$/.test(file) ? file.slice(6) : file), rest: words.map(plain).join(" ") };
}
