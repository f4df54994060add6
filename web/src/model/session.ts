// Changes the token of the printed address into the session cookie, and takes it out of the address at once.
//
// The token is in the fragment, which no browser sends anywhere. After `openSession` it is neither in the address bar
// nor in the history, and the page keeps no copy: the cookie, which scripts cannot read, is the session.

import { RequestError } from "./api";
import { report } from "./report";

/** Opens the session if the address brings a token; a second visit has its cookie already. */
export async function openSession(): Promise<void> {
    if (report()) return;
    const fragment = new URLSearchParams(location.hash.slice(1));
    const token = fragment.get("token");
    if (token === null) return;
    history.replaceState(null, "", location.pathname + location.search);
    let answer: Response;
    try {
        answer = await fetch("api/v1/session", {
            method: "POST",
            headers: { Authorization: `Bearer ${token}` },
            credentials: "same-origin",
        });
    } catch {
        throw new RequestError(0, "the server does not answer");
    }
    if (!answer.ok) throw new RequestError(answer.status, `the session was refused (status ${answer.status})`);
}
