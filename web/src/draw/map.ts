// Where each place lies on a map: on the tiles of its mesh, or row by row where there is none.
//
// A map has columns and rows of cells with row 0 at the top, as it is drawn; a mesh has its tile 0 at the lower left.
// Cells of one tile lie together, a gap lies between tiles. Arrow keys and pictures both follow this one table.

import type { Run } from "../model/api";

export interface PlaceMap {
    columns: number;
    rows: number;
    /** Cells of a tile beside and above each other: one by one without a mesh. */
    across: number;
    down: number;
    mesh: boolean;
    /** The place at a cell, or -1. */
    placeAt(column: number, row: number): number;
    cellOf(place: number): { column: number; row: number };
    tileOf(place: number): number;
    /** The column and row of a tile, counted in tiles from the upper left. */
    tileCell(tile: number): { column: number; row: number };
}

const maps = new WeakMap<Run, PlaceMap>();

/** The map of a run, made once. */
export function mapOf(run: Run): PlaceMap {
    const made = maps.get(run) ?? mapFor(run);
    maps.set(run, made);
    return made;
}

function mapFor(run: Run): PlaceMap {
    const { mesh, places } = run;
    const cores = mesh ? mesh.columns * mesh.rows * mesh.cores_per_tile : 0;
    if (mesh && cores >= places) return meshMap(mesh, coresOf(run, cores));
    // A little wider than high, as windows are.
    const columns = places <= 4 ? places : Math.ceil(Math.sqrt(places * 1.6));
    const rows = Math.ceil(places / columns);
    return {
        columns, rows, across: 1, down: 1, mesh: false,
        placeAt: (column, row) => {
            const place = row * columns + column;
            return column < columns && place < places ? place : -1;
        },
        cellOf: (place) => ({ column: place % columns, row: Math.floor(place / columns) }),
        tileOf: (place) => place,
        tileCell: (tile) => ({ column: tile % columns, row: Math.floor(tile / columns) }),
    };
}

/** The core of each place: what the run says, or its own number. */
function coresOf({ places, core_of: told }: Run, cores: number): number[] {
    const own = Array.from({ length: places }, (_, place) => place);
    return told?.length === places && told.every((core) => core < cores) ? told : own;
}

function meshMap(mesh: NonNullable<Run["mesh"]>, coreOf: number[]): PlaceMap {
    const cores = mesh.cores_per_tile;
    const across = cores <= 3 ? cores : Math.ceil(Math.sqrt(cores));
    const down = Math.ceil(cores / across);
    const placeOn = new Map(coreOf.map((core, place) => [core, place]));
    const tileOf = (place: number) => Math.floor(coreOf[place]! / cores);
    const tileCell = (tile: number) =>
        ({ column: tile % mesh.columns, row: mesh.rows - 1 - Math.floor(tile / mesh.columns) });
    return {
        columns: mesh.columns * across, rows: mesh.rows * down, across, down, mesh: true,
        placeAt: (column, row) => {
            const x = Math.floor(column / across);
            const y = mesh.rows - 1 - Math.floor(row / down);
            const core = (row % down) * across + column % across;
            if (x >= mesh.columns || y < 0 || core >= cores) return -1;
            return placeOn.get((y * mesh.columns + x) * cores + core) ?? -1;
        },
        cellOf: (place) => {
            const tile = tileCell(tileOf(place));
            const core = coreOf[place]! % cores;
            return { column: tile.column * across + core % across, row: tile.row * down + Math.floor(core / across) };
        },
        tileOf,
        tileCell,
    };
}

/** Where an arrow key leads from a place, by the map as it lies; the same place at an edge. */
export function neighbour(map: PlaceMap, place: number, key: string): number {
    const { column, row } = map.cellOf(place);
    const line = (columns: number[]) => columns.map((at) => map.placeAt(at, row)).find((found) => found >= 0) ?? place;
    const all = Array.from({ length: map.columns }, (_, at) => at);
    switch (key) {
        case "Home": return line(all);
        case "End": return line(all.reverse());
        case "ArrowLeft": return step(map, column, row, -1, 0) ?? place;
        case "ArrowRight": return step(map, column, row, 1, 0) ?? place;
        case "ArrowUp": return step(map, column, row, 0, -1) ?? place;
        case "ArrowDown": return step(map, column, row, 0, 1) ?? place;
        default: return place;
    }
}

/** The next place in a direction, over cells without one. */
function step(map: PlaceMap, column: number, row: number, right: number, down: number): number | null {
    for (;;) {
        column += right;
        row += down;
        if (column < 0 || row < 0 || column >= map.columns || row >= map.rows) return null;
        const place = map.placeAt(column, row);
        if (place >= 0) return place;
    }
}
