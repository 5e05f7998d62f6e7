// node chdb_server.mjs MODULES DIRECTORY: answers as a ClickHouse server over HTTP does, by chDB, a current ClickHouse as a library.
// Prints its port. One statement at a time, as they come; data is kept in DIRECTORY.
import fs from "fs";
import http from "http";
import path from "path";
import { createRequire } from "module";

const [modules, directory] = process.argv.slice(2);
const require = createRequire(path.join(modules, "package.json"));
const { Session } = require("chdb");
fs.mkdirSync(directory, { recursive: true });
const session = new Session(directory);

// Of the address, what is a setting of the engine; the rest is HTTP's, or a session's.
const others = ["query", "database", "default_format", "wait_end_of_query", "buffer_size", "session_id", "password", "user", "readonly"];

function answer(url, body) {
  const given = new URL(url, "http://localhost").searchParams;
  const inAddress = given.get("query");
  const sql = inAddress ?? body.toString();
  const settings = [...given].filter(([name]) => !others.includes(name));
  session.query(`USE ${given.get("database") ?? "default"}`);
  for (const [name, value] of settings)
    session.query(`SET ${name} = '${value}'`);
  if (inAddress !== null && body.length) {
    const file = path.join(directory, "body"); // the library's way from memory takes 256 KiB
    fs.writeFileSync(file, body);
    session.query(sql.replace(/ FORMAT (\w+)$/, ` FROM INFILE '${file}' FORMAT $1`));
    return "";
  }
  return session.query(sql, given.get("default_format") ?? "TabSeparated");
}

function reply(response, status, text) {
  response.writeHead(status, { Connection: "close" });
  response.end(text);
}

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    try {
      reply(response, 200, answer(request.url, Buffer.concat(pieces)));
    } catch (error) {
      reply(response, 500, String(error.message));
    }
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
