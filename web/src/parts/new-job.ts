// A new job: a task of the program or a command of the system, its words, its name, and where it starts.
//
// Each word has a field of its own and is taken as it stands, so that what is told is what is seen; nothing here reads
// quotes, spaces or signs. The job server has the last word: what it refuses is said in the dialogue, which then stays.

import { html, nothing, type TemplateResult } from "lit";
import { live } from "lit/directives/live.js";
import { plain } from "../draw/text";
import { jobs } from "../model/jobs";
import { store } from "../model/store";
import { Element } from "./element";

/** The longest word that can be typed; the job server takes longer ones. */
const WORD_CHARS = 4096;

export class NewJob extends Element {
    private isCommand = false;
    private words = [""];
    private refused = "";

    override render() {
        const { isCommand, words } = this;
        return html`<dialog class="new-job" aria-labelledby="new-job-head">
            <form @submit=${this.submit}>
                <h2 id="new-job-head">New job</h2>
                <fieldset class="new-job-what"><legend>What it runs</legend>
                    ${this.choice("Task", false)} ${this.choice("Command", true)}
                    ${jobs.mayStartCommands ? nothing : html`<p class="note">${store.run?.mesh
                        ? "A modelled core runs tasks only." : html`For commands start the job server with
                        <code>--allow-commands</code>, or say <code>isles job start</code> in a terminal.`}</p>`}
                </fieldset>
                ${isCommand ? nothing : html`<label>Task <select name="kind" @change=${this.hint}>${
                    jobs.kinds.map((kind) => html`<option value=${kind.name}>${
                        plain(`${kind.name} ${kind.words}`)}</option>`)}</select></label>`}
                <fieldset class="new-job-words"><legend>${isCommand ? "Command, word by word" : "Words"}</legend>
                    <ol>${words.map((word, index) => this.word(word, index))}</ol>
                    <div class="tools"><button type="button" @click=${() => this.add()}>Add word</button>
                        ${words.some((word) => /\s/.test(word.trim())) ? html`<button type="button"
                            @click=${this.split}>Split at spaces</button>` : nothing}</div>
                    <p class="note">${isCommand ? "Each field is one word, as it stands; no shell reads it. " : ""}Empty
                        fields at the end are left out.</p></fieldset>
                <div class="tools"><label class="new-job-name">Name <input name="name" size="16"
                    maxlength="80" autocomplete="off"></label>
                    <label>Place <input name="at" type="number" min="0" max=${(store.run?.places ?? 1) - 1}
                        placeholder="best"></label></div>
                <p class="note is-bad" role="alert">${plain(this.refused)}</p>
                <div class="tools new-job-ends"><button type="submit" class="is-main">Start</button>
                    <button type="button" title="Add it without starting it"
                        @click=${() => void this.make(false)}>Add</button>
                    <button type="button" class="quiet" @click=${this.close}>Cancel</button></div>
            </form></dialog>`;
    }

    /** Opens it with what was typed last, if that did not become a job. */
    open(): void {
        const dialog = this.querySelector("dialog");
        if (!dialog || dialog.open) return;
        this.refused = "";
        this.requestUpdate();
        dialog.showModal();
    }

    private choice(name: string, isCommand: boolean): TemplateResult {
        return html`<label><input type="radio" name="runs" value=${name.toLowerCase()}
            .checked=${live(this.isCommand === isCommand)} ?disabled=${isCommand && !jobs.mayStartCommands}
            @change=${() => {
                this.isCommand = isCommand;
                this.requestUpdate();
            }}>${name}</label>`;
    }

    private word(word: string, index: number): TemplateResult {
        const name = this.isCommand && index === 0 ? "Command" : `Word ${this.isCommand ? index : index + 1}`;
        const kind = this.isCommand ? undefined : jobs.kinds.find(({ name }) => name === this.kind());
        const hint = plain(kind?.words.split(" ")[index] || name);
        return html`<li><input name="word" aria-label=${name} placeholder=${hint} maxlength=${WORD_CHARS}
            autocomplete="off" autocapitalize="off" spellcheck="false" .value=${live(word)}
            @input=${(event: Event) => {
                this.words[index] = (event.target as HTMLInputElement).value;
                this.requestUpdate();
            }}>${this.words.length === 1 ? nothing : html`<button type="button" class="quiet"
                aria-label=${`Remove ${name}`} @click=${() => this.takeOut(index)}>✕</button>`}</li>`;
    }

    private kind(): string {
        return this.querySelector<HTMLSelectElement>('[name="kind"]')?.value || (jobs.kinds[0]?.name ?? "");
    }

    /** Another kind takes other words. */
    private hint = (): void => {
        this.requestUpdate();
    };

    private add(): void {
        this.words = [...this.words, ""];
        this.focusWord(this.words.length - 1);
    }

    private takeOut(index: number): void {
        this.words = this.words.filter((_, other) => other !== index);
        this.focusWord(Math.min(index, this.words.length - 1));
    }

    private split = (): void => {
        const words = this.words.flatMap((word) => word.trim().split(/\s+/));
        this.words = words;
        this.focusWord(words.length - 1);
    };

    private focusWord(index: number): void {
        this.requestUpdate();
        void this.updateComplete.then(() =>
            this.querySelectorAll<HTMLInputElement>('[name="word"]')[index]?.focus());
    }

    private submit = (event: Event): void => {
        event.preventDefault();
        void this.make(true);
    };

    private async make(start: boolean): Promise<void> {
        const form = this.querySelector("form")!;
        if (!form.reportValidity()) return;
        const value = (name: string) => form.querySelector<HTMLInputElement>(`[name="${name}"]`)?.value ?? "";
        const last = this.words.findLastIndex((word) => word !== "");
        const words = this.words.slice(0, last + 1);
        const kind = this.kind();
        const what = this.isCommand ? { Command: words } : { Task: [kind, words] as [string, string[]] };
        const name = value("name") || (this.isCommand ? words[0] ?? "" : kind);
        this.refused = await jobs.begin({ name, what }, start, value("at") === "" ? null : Number(value("at")));
        this.requestUpdate();
        if (this.refused) return;
        this.words = [""];
        form.reset();
        this.close();
    }

    private close = (): void => {
        this.querySelector("dialog")?.close();
    };
}

customElements.define("isles-new-job", NewJob);
