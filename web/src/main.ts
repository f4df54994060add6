// Starts the page: first the session, then the run, then the picture.

import "uplot/dist/uPlot.min.css";
import "./css/app.css";
import { RequestError } from "./model/api";
import { openSession } from "./model/session";
import { stages } from "./model/stages";
import { store } from "./model/store";
import { leading } from "./model/stream";
import "./shell/app";

// What a test asks of the page, and who works on it from the console: what it knows, read only by custom.
Object.assign(window, { isles: { store, leading } });

document.body.append(document.createElement("isles-app"));
try {
    await openSession();
    await store.start();
    stages.start();
} catch (error) {
    store.refusal = error instanceof RequestError ? error : new RequestError(0, String(error));
    store.changed();
}
