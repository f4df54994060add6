// Serves an invented run to work on the page by hand: `npm run serve -- scc` (host, many, dead, hostile, replay, cut).

import { TestServer } from "./server.mjs";

const server = await new TestServer({ scenario: process.argv[2] ?? "scc" }).start();
console.log(server.address);
