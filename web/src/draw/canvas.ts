// A canvas that fits its box at the resolution of the screen, drawn again when size, news or theme change.

/** Sets the bitmap to the size of the box; returns its context in CSS pixels, or null where there is no room. */
export function fit(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
    const scale = Math.min(3, devicePixelRatio || 1);
    const bitmap = { width: Math.round(width * scale), height: Math.round(height * scale) };
    if (bitmap.width < 1 || bitmap.height < 1) return null;
    if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
        canvas.width = bitmap.width;
        canvas.height = bitmap.height;
        canvas.style.setProperty("width", `${width}px`);
        canvas.style.setProperty("height", `${height}px`);
    }
    const context = canvas.getContext("2d", { alpha: true });
    context?.setTransform(scale, 0, 0, scale, 0, 0);
    context?.clearRect(0, 0, width, height);
    return context;
}

/** Calls `changed` with the width of an element whenever it changes, until the returned function is called. */
export function watchWidth(element: Element, changed: (width: number) => void): () => void {
    let last = -1;
    const observer = new ResizeObserver((entries) => {
        const width = Math.floor(entries[0]?.contentRect.width ?? 0);
        if (width === last) return;
        last = width;
        changed(width);
    });
    observer.observe(element);
    return () => observer.disconnect();
}
