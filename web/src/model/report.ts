// The report of a run in one file: the same page, whose answers lie in the file instead of at a server.
//
// The file carries them as JSON in `<script type="application/json" id="isles-report">`. Pictures are few (`snapshots`,
// by time); curves come from `histories`, by counter, or from the pictures where there is none. Nothing is asked of
// anybody, so the file can be opened without a network and sent by mail.

import type { History, Output, Places, Run, Snapshot, Summary } from "./api";

/** What the file carries. The run says `mode: "replay"` and `length_ms`. */
export interface Report {
    run: Run;
    snapshots: Partial<Snapshot>[];
    summary?: Summary;
    histories?: Record<string, History>;
    outputs?: Record<string, Output>;
}

let found: Report | null | undefined;

/** The report that this file is, or null for a page of a server. */
export function report(): Report | null {
    if (found === undefined) {
        const text = document.getElementById("isles-report")?.textContent;
        found = text ? JSON.parse(text) as Report : null;
    }
    return found;
}

/** What the server of the run would have answered to a path below `api/v1/`. */
export function answerOf(report: Report, path: string): unknown {
    const url = new URL(path, "http://report/");
    const query = url.searchParams;
    switch (url.pathname) {
        case "/run": return report.run;
        case "/at": return pictureAt(report, Number(query.get("time_ms")));
        case "/summary": return report.summary;
        case "/history": return historyOf(report, query.get("counter") ?? "");
        case "/stages": return { stages: [], reported: false };
        case "/output": return outputOf(report, query.get("place") ?? "");
        default: throw new Error(`a report does not know ${path}`);
    }
}

/** What a place printed; a report without any output says that none was recorded. */
function outputOf(report: Report, place: string): Output {
    return report.outputs?.[place] ?? { lines: [], dropped: 0, recorded: report.outputs !== undefined };
}

/** The last picture up to a time, or the first. */
function pictureAt(report: Report, time_ms: number): Partial<Snapshot> {
    let low = 0;
    let high = report.snapshots.length;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if ((report.snapshots[middle]!.time_ms ?? 0) <= time_ms) low = middle;
        else high = middle;
    }
    return report.snapshots[low] ?? {};
}

function historyOf(report: Report, counter: string): History {
    const kept = report.histories?.[counter];
    if (kept) return kept;
    const column = (snapshot: Partial<Snapshot>) =>
        snapshot.places?.[counter as keyof Places] as (number | null)[] | undefined;
    const series: History["series"] = {};
    for (let place = 0; place < report.run.places; place++) {
        series[place] = report.snapshots.map((snapshot) => column(snapshot)?.[place] ?? null);
    }
    return { step_ms: 0, t: report.snapshots.map((snapshot) => snapshot.time_ms ?? 0), series };
}
