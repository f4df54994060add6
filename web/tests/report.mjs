// Puts a run and the bundle into one file, as `isles report --html` does: the model for that code, and what the tests
// open.
//
// The policy of the file allows its own script and style by their hashes, and nothing else. In the data `<` is written
// `\u003c`, and in the script `</script` is written `<\/script`, so that neither can end its element.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const DIST = join(dirname(fileURLToPath(import.meta.url)), "..", "dist");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

export function reportOf(data) {
    const script = readFileSync(join(DIST, "app.js"), "utf8").replaceAll("</script", "<\\/script");
    const style = readFileSync(join(DIST, "app.css"), "utf8");
    const json = JSON.stringify(data).replaceAll("<", "\\u003c");
    const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; `
        + "form-action 'none'; require-trusted-types-for 'script'; trusted-types lit-html";
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Isles</title>
<style>${style}</style>
</head>
<body>
<script type="application/json" id="isles-report">${json}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}

/** The data of a report from an invented run: a picture every two seconds, curves of one counter, output of a place. */
export function dataOf(scenario) {
    const { run } = scenario;
    const places = Array.from({ length: run.places }, (_, place) => place);
    const pictures = Array.from({ length: run.length_ms / 2000 + 1 }, (_, index) => scenario.at(index * 4));
    return {
        run,
        snapshots: pictures,
        summary: scenario.summary(run.length_ms / 500),
        histories: { busy: scenario.history(places, "busy", run.length_ms) },
        outputs: { 5: { lines: scenario.output(5, run.length_ms / 500).slice(-50), dropped: 3 } },
    };
}
