// What a map of places can show, as one table: of each quantity its name, its value at a place, and its share.
//
// A share from 0 to 1 fills and colours; the short text is the number in a cell; the long one has the unit. A quantity
// without a natural maximum is a share of the largest value of the snapshot, and its legend says so.

import type { Snapshot } from "../model/api";
import type { Rates } from "../model/totals";
import { bytes, count, percent, rate } from "./text";

export interface Metric {
    key: string;
    name: string;
    /** The value at each place, or null where this run does not have it. */
    values(snapshot: Snapshot, rates: Rates | null): number[] | null;
    /** The value that is a share of 1. */
    full(values: number[]): number;
    short(value: number): string;
    long(value: number): string;
}

const largest = (values: number[]) => values.reduce((most, value) => Math.max(most, value), 0) || 1;
const smaller = (value: number) => value >= 1000 ? `${Math.round(value / 1000)}k` : String(Math.round(value));

export const METRICS: Metric[] = [
    {
        key: "load", name: "Load",
        values: ({ places }) => places.busy,
        full: () => 1,
        short: (value) => String(Math.round(100 * value)),
        long: (value) => `load ${percent(value)}`,
    },
    {
        key: "queue", name: "Tasks ready",
        values: ({ places }) => places.queue,
        full: largest,
        short: smaller,
        long: (value) => `${count(value)} tasks ready`,
    },
    {
        key: "tasks", name: "Tasks a second",
        values: (_, rates) => rates?.tasks ?? null,
        full: largest,
        short: smaller,
        long: (value) => `${rate(value)} tasks/s`,
    },
    {
        key: "messages", name: "Messages a second",
        values: (_, rates) => rates?.sent ?? null,
        full: largest,
        short: smaller,
        long: (value) => `${rate(value)} messages/s sent`,
    },
    {
        key: "memory", name: "Memory",
        values: ({ places }) => places.memory_bytes,
        full: largest,
        short: (value) => bytes(value).replace(/ (.)i?B$/, "$1").replace(" B", ""),
        long: (value) => bytes(value),
    },
    {
        key: "clock", name: "Clock",
        values: ({ places }) => places.clock_mhz ?? null,
        full: largest,
        short: (value) => String(Math.round(value)),
        long: (value) => `${Math.round(value)} MHz`,
    },
    {
        key: "power", name: "Power",
        values: ({ places }) => places.watt ?? null,
        full: largest,
        short: (value) => value.toFixed(1),
        long: (value) => `${value.toFixed(2)} W`,
    },
];

export const metricOf = (key: string) => METRICS.find((metric) => metric.key === key) ?? METRICS[0]!;

/** The values of a metric with their shares, ready to draw; null where there is nothing to show yet. */
export function sharesOf(metric: Metric, snapshot: Snapshot, rates: Rates | null) {
    const values = metric.values(snapshot, rates);
    if (!values) return null;
    const full = metric.full(values);
    return { values, full, share: (place: number) => Math.min(1, Math.max(0, values[place]! / full)) };
}
