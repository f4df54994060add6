// What the server says, as types, and the requests that ask it.
//
// Every address is relative, so that the page works below any prefix of a proxy. Each snapshot goes through
// `snapshotOf`, which fills what a server may leave out: the rest of the page never asks whether a column is there,
// except for those of chips (clock, voltage, power), whose absence means that nobody knows them.

import { COLUMNS, type CounterColumns } from "./counters";
import { answerOf, report } from "./report";

export interface Mesh { columns: number; rows: number; cores_per_tile: number; name: string }

export interface CounterInfo { name: string; unit: string; description: string; kind: "count" | "gauge" }

export interface Run {
    version: string;
    program: string;
    arguments: string[];
    machine: string;
    mode: "live" | "replay";
    started_unix_ms: number;
    places: number;
    host_of: string[] | null;
    mesh: Mesh | null;
    /** The core of each place, where that is not its own number. */
    core_of?: number[] | null;
    /** What has a history: columns of the places. */
    counters: CounterInfo[];
    pages_role: "view" | "control";
    /** Whether the run manages jobs. */
    jobs?: boolean;
    /** Of a replay: how far its log goes, and whether it ends without its last frame. */
    length_ms?: number;
    cut?: boolean;
}

export type PlaceState = "idle" | "busy" | "waiting" | "ended" | "dead" | "silent";

/** One column for each quantity, one value for each place. */
export interface Places extends CounterColumns {
    state: PlaceState[];
    cause: (string | null)[];
    busy: number[];
    watt?: number[];
}

/** A whole modelled chip: power since the snapshot before, energy since the start, and until when both are known. */
export interface Power { watt: number; joule: number; until_ms: number }

export interface Link { from: number; to: number; load: number }
/** From, to, messages, bytes. */
export type Pair = [number, number, number, number];
export interface Rest { messages: number; bytes: number }

export interface Finish {
    id: number | string;
    home: number;
    parent: number | string | null;
    open_ms: number;
    /** Places with their tasks; the server tells the first `WAITS_TOLD`. */
    waits_for: [number, number][];
    label: string;
}

export const WAITS_TOLD = 4;

export interface Warning { kind: string; place: number; text: string; since_ms: number }

/** Steps are those of `phase`, if the program names one. `grows`: the total is no whole, and nothing follows from it;
 *  it is 0 where nobody knows any. */
export interface Progress { phase?: string; label: string; done: number; total: number; grows?: boolean }

export interface Snapshot {
    seq: number;
    time_ms: number;
    model_ms: number | null;
    state: "running" | "ended" | "failed" | "unknown";
    reason: string | null;
    missed: number;
    places: Places;
    power?: Power;
    links?: Link[];
    pairs: Pair[];
    pairs_rest: Rest;
    finishes: Finish[];
    warnings: Warning[];
    progress: Progress | null;
    dropped: { events: number; samples: number };
}

export interface History {
    step_ms: number;
    t: number[];
    /** Of a modelled chip: the same times on the chip, and its power since the time before. */
    model_ms?: number[];
    chip_watt?: number[];
    series: Record<string, (number | null)[]>;
}

export interface OutputLine {
    seq: number;
    time_ms: number;
    stream?: "stdout" | "stderr" | "result" | "stages";
    text: string;
}
/** `recorded` is false where nobody keeps what places print. */
export interface Output { lines: OutputLine[]; dropped: number; recorded?: boolean }

/** A stage of a pipeline at one of its places; rate and queue are those of the stages that run together there. */
export interface Stage {
    pipeline: number;
    stage: number;
    name: string;
    place: number;
    items_per_s: number;
    waiting: number;
    queue: number;
    time_ms: number;
}
/** `reported` says whether a pipeline has ever told of its stages. */
export interface Stages { stages: Stage[]; reported: boolean }

/** What a run that is over came to. */
export interface Summary {
    state: Snapshot["state"];
    reason: string | null;
    time_ms: number;
    model_ms: number | null;
    power: Power | null;
    tasks: number;
    messages: number;
    bytes: number;
    busy: number[];
    place_tasks: number[];
    warnings: { kind: string; place: number; places: number; text: string }[];
    result: string[];
    /** The time of the last picture in which the run worked. */
    working_ms: number;
}

/** What a host says of itself: something, or why nothing can be read. */
export type HostPart<T> = { read: T[] } | { unreadable: string };
export interface EnergyZone { name: string; source: string; joule: number }
export interface HostClock { processor: number; source: string; mhz: number; governor: string | null }
export interface HostReading { energy: HostPart<EnergyZone>; clocks: HostPart<HostClock> }

/** What is run, by name: a task of the program with its words, or the words of a command. */
export interface JobSpec { name: string; what: { Task: [string, string[]] } | { Command: string[] } }

/** A job that the run manages. */
export interface Job extends JobSpec {
    id: number;
    state: string;
    place: number | null;
    /** Percent of a processor, bytes, seconds. */
    processor: number;
    memory: number;
    busy: number;
    reason: string;
}

/** On a modelled chip, `supply` is the voltage domain: cores with the same one change together. */
export interface Core {
    place: number;
    /** Percent of its processor, of its memory, and of the processor by what is no job. */
    processor: number;
    memory: number;
    other: number;
    jobs: number[];
    divider: number | null;
    supply: number | null;
    megahertz: number | null;
    volts: number | null;
    governor: string | null;
}
export interface JobKind { name: string; words: string }
export interface JobsAnswer {
    jobs: Job[];
    kinds: JobKind[];
    cores: Core[];
    policy: string;
    governor: string | null;
    page_commands: boolean;
    criu: boolean;
}
export interface JobOutput { lines: string[]; before: number; file: string }
export interface OrderAnswer { job?: Job; scores?: number[]; text?: string }

/** A request that the server refused or that did not reach it (`status` 0). */
export class RequestError extends Error {
    constructor(readonly status: number, message: string) {
        super(message);
    }
}

async function get<T>(path: string): Promise<T> {
    const file = report();
    if (file) return answerOf(file, path) as T;
    let answer: Response;
    try {
        answer = await fetch(`api/v1/${path}`, { credentials: "same-origin", cache: "no-store" });
    } catch {
        throw new RequestError(0, "the server does not answer");
    }
    if (!answer.ok) throw new RequestError(answer.status, await problemOf(answer));
    return await answer.json() as T;
}

/** Tells the server something, which it may refuse. */
async function post<T>(path: string, body: object): Promise<T> {
    let answer: Response;
    try {
        answer = await fetch(`api/v1/${path}`, {
            method: "POST", credentials: "same-origin", cache: "no-store",
            headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
        });
    } catch {
        throw new RequestError(0, "the server does not answer");
    }
    if (!answer.ok) throw new RequestError(answer.status, await problemOf(answer));
    return await answer.json() as T;
}

/** The title and detail of a problem document (RFC 9457), or the status where the body is none. */
async function problemOf(answer: Response): Promise<string> {
    try {
        const problem = await answer.json() as { title?: string; detail?: string };
        return [problem.title, problem.detail].filter(Boolean).join(": ") || `status ${answer.status}`;
    } catch {
        return `status ${answer.status}`;
    }
}

export const getRun = () => get<Run>("run");

export const getAt = async (time_ms: number, places: number) =>
    snapshotOf(await get<Partial<Snapshot>>(`at?time_ms=${Math.round(time_ms)}`), places);

export const getHistory = (places: number[], counter: string) =>
    get<History>(`history?places=${places.join(",")}&counter=${encodeURIComponent(counter)}`);

export const getHost = () => get<HostReading>("host");

export const getSummary = () => get<Summary>("summary");

/** The lines after a sequence number; they begin at 1, so 0 asks for all that is kept. */
export const getOutput = (place: number, after: number) => get<Output>(`output?place=${place}&after=${after}`);

export const getStages = (until_ms: number | null) =>
    get<Stages>(until_ms === null ? "stages" : `stages?until_ms=${Math.round(until_ms)}`);

export const getJobs = () => get<JobsAnswer>("jobs");
export const tellJobs = (request: object) => post<OrderAnswer>("jobs", request);
export const getJobOutput = (job: number, lines: number) => get<JobOutput>(`jobs/output?job=${job}&lines=${lines}`);

/** The snapshot with every column and list in it, each column with a value for each of `count` places. */
export function snapshotOf(said: Partial<Snapshot>, count: number): Snapshot {
    const places = (said.places ?? {}) as Partial<Places>;
    const filled = { ...places } as Places;
    filled.state = Array.from({ length: count }, (_, place) => places.state?.[place] ?? "silent");
    filled.cause = places.cause ?? [];
    for (const column of ["busy", ...COLUMNS] as const) {
        if (places[column]?.length !== count) {
            filled[column] = Array.from({ length: count }, (_, place) => places[column]?.[place] ?? 0);
        }
    }
    const rest = said.pairs_rest as Rest | number | undefined;
    return {
        seq: said.seq ?? 0,
        time_ms: said.time_ms ?? 0,
        model_ms: said.model_ms ?? null,
        state: said.state ?? "unknown",
        reason: said.reason ?? null,
        missed: said.missed ?? 0,
        places: filled,
        power: said.power ?? undefined,
        links: said.links ?? undefined,
        pairs: said.pairs ?? [],
        pairs_rest: typeof rest === "number" ? { messages: rest, bytes: 0 } : rest ?? { messages: 0, bytes: 0 },
        finishes: said.finishes ?? [],
        warnings: said.warnings ?? [],
        progress: said.progress ?? null,
        dropped: said.dropped ?? { events: 0, samples: 0 },
    };
}
