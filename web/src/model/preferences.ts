// What this reader prefers, kept in the browser: the theme, and whether single letters are commands.
//
// The theme that holds (`data-theme` on the root) is always "light" or "dark": "auto" is resolved here, and again when
// the system changes, so that style sheets and canvases ask one attribute only.

export type Theme = "auto" | "light" | "dark";
const THEMES: Theme[] = ["auto", "light", "dark"];

class Preferences {
    theme: Theme = "auto";
    letters = true;
    private readers = new Set<() => void>();
    private system = matchMedia("(prefers-color-scheme: dark)");

    constructor() {
        this.theme = THEMES.find((theme) => theme === read("isles-theme")) ?? "auto";
        this.letters = read("isles-letters") !== "off";
        this.system.addEventListener("change", () => this.apply());
        this.apply();
    }

    get dark(): boolean {
        return this.theme === "dark" || (this.theme === "auto" && this.system.matches);
    }

    subscribe(reader: () => void): void {
        this.readers.add(reader);
    }

    nextTheme(): void {
        this.setTheme(THEMES[(THEMES.indexOf(this.theme) + 1) % THEMES.length]!);
    }

    setTheme(theme: Theme): void {
        this.theme = theme;
        write("isles-theme", theme);
        this.apply();
    }

    setLetters(on: boolean): void {
        this.letters = on;
        write("isles-letters", on ? "on" : "off");
        for (const reader of this.readers) reader();
    }

    private apply(): void {
        document.documentElement.dataset.theme = this.dark ? "dark" : "light";
        for (const reader of this.readers) reader();
    }
}

// Storage may be refused to a page; then a preference lasts as long as the tab.
function read(key: string): string | null {
    try {
        return localStorage.getItem(key);
    } catch {
        return null;
    }
}

function write(key: string, value: string): void {
    try {
        localStorage.setItem(key, value);
    } catch { /* see above */ }
}

export const preferences = new Preferences();
