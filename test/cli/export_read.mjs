// node export_read.mjs MODULES ENGINE DIRECTORY: prints {"table", "names", "rows"} of each exported file, as the engine reads it.
import fs from "fs";
import path from "path";
import { createRequire } from "module";

const [modules, engine, directory] = process.argv.slice(2);
const require = createRequire(path.join(modules, "package.json"));

const cell = (v) => typeof v === "bigint" ? v.toString() : v === undefined ? "null" : JSON.stringify(v);
const print = (table, names, rows) => {
  const text = rows.map((row) => "[" + row.map(cell).join(",") + "]").join(",");
  console.log(`{"table":${JSON.stringify(table)},"names":${JSON.stringify(names)},"rows":[${text}]}`);
};

const engines = {
  arrow: (file, table) => {
    const data = require("apache-arrow").tableFromIPC(fs.readFileSync(file));
    const columns = data.schema.fields.map((_, i) => data.getChildAt(i));
    print(table, data.schema.fields.map((f) => f.name),
          Array.from({ length: data.numRows }, (_, row) => columns.map((c) => c.get(row))));
  },
  chdb: (file, table) => {
    const kind = path.extname(file);
    const types = fs.existsSync(path.join(directory, "schema.sql"))
      ? fs.readFileSync(path.join(directory, "schema.sql"), "utf8").split("\n")
          .find((line) => line.startsWith("CREATE TABLE `" + table + "` (")).match(/ \((.*)\) ENGINE/)[1] : "";
    const format = { ".native": "Native", ".rowbinary": "RowBinary", ".arrow": "Arrow", ".arrows": "ArrowStream", ".parquet": "Parquet" }[kind];
    const structure = kind === ".rowbinary" ? `, '${types.replace(/'/g, "\\'")}'` : "";
    const answer = require("chdb").query(`SELECT * FROM file('${file}', ${format}${structure}) SETTINGS max_threads = 1, input_format_parquet_preserve_order = 1,
      output_format_json_quote_64bit_integers = 0`, "JSONCompactEachRowWithNames").trim().split("\n");
    console.log(`{"table":${JSON.stringify(table)},"names":${answer[0]},"rows":[${answer.slice(1).join(",")}]}`);
  },
  duckdb: async (file, table) => {
    const { DuckDBInstance } = require("@duckdb/node-api");
    const connection = await (await DuckDBInstance.create(":memory:")).connect();
    const read = await connection.runAndReadAll(`SELECT * FROM read_parquet('${file}')`);
    print(table, read.columnNames(), read.getRows());
  },
};

for (const name of fs.readdirSync(directory).sort())
  if (!name.endsWith(".sql"))
    await engines[engine](path.join(directory, name), path.parse(name).name);
