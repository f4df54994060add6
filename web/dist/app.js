// A stand-in until the page's branch is merged: shows the newest snapshot as text.
const token = new URLSearchParams(location.hash.slice(1)).get("token");
const out = document.createElement("pre");
document.body.append(out);
if (token) {
    history.replaceState(null, "", location.pathname);
    await fetch("api/v1/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
}
new EventSource("api/v1/stream").addEventListener("snapshot", (event) => {
    out.textContent = JSON.stringify(JSON.parse(event.data), null, 1);
});
