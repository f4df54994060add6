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

export function mapOf(run: Run): PlaceMap {
    const { mesh, places } = run;
    if (mesh && mesh.columns * mesh.rows * mesh.cores_per_tile >= places) return meshMap(mesh, places);
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

function meshMap(mesh: NonNullable<Run["mesh"]>, places: number): PlaceMap {
    const cores = mesh.cores_per_tile;
    const across = cores <= 3 ? cores : Math.ceil(Math.sqrt(cores));
    const down = Math.ceil(cores / across);
    const tileCell = (tile: number) =>
        ({ column: tile % mesh.columns, row: mesh.rows - 1 - Math.floor(tile / mesh.columns) });
    return {
        columns: mesh.columns * across, rows: mesh.rows * down, across, down, mesh: true,
        placeAt: (column, row) => {
            const x = Math.floor(column / across);
            const y = mesh.rows - 1 - Math.floor(row / down);
            const core = (row % down) * across + column % across;
            const place = (y * mesh.columns + x) * cores + core;
            return x < mesh.columns && y >= 0 && core < cores && place < places ? place : -1;
        },
        cellOf: (place) => {
            const tile = tileCell(Math.floor(place / cores));
            const core = place % cores;
            return { column: tile.column * across + core % across, row: tile.row * down + Math.floor(core / across) };
        },
        tileOf: (place) => Math.floor(place / cores),
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
