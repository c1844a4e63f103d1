import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";

/** Readers open the report from mail attachments and slow shares; beyond this it is no longer
 * "one small file". */
const LIMIT_GZIP_BYTES = 300_000;

/** Text that would end, or change the parsing of, the inline element the file is put into. */
const FORBIDDEN: Record<string, RegExp> = {
  "app.js": /<\/script|<!--|<script/i,
  "app.css": /<\/style|<!--/i,
};

/** What is wrong with one built file, or null. Exported for the unit test. */
export function objection(fileName: string, text: string): string | null {
  const forbidden = FORBIDDEN[fileName];
  if (forbidden === undefined) {
    return `unexpected output ${fileName}: only app.js and app.css can be put into the report`;
  }
  const hit = forbidden.exec(text);
  return hit === null ? null : `${fileName} holds "${hit[0]}" at ${String(hit.index)}, which cannot stand in an inline element`;
}

/** Refuses a build that the Rust side could not put into an HTML file safely. Reads what was
 * written: minifiers may join strings late. */
export function bundleGuard(): Plugin {
  return {
    name: "pgdyno-bundle-guard",
    apply: "build",
    enforce: "post",
    writeBundle({ dir = "dist" }) {
      let gzipBytes = 0;
      const complaints: string[] = [];
      const written = readdirSync(dir);
      for (const fileName of written) {
        const text = readFileSync(join(dir, fileName), "utf8");
        complaints.push(...[objection(fileName, text)].filter((complaint) => complaint !== null));
        gzipBytes += gzipSync(text, { level: 9 }).length;
      }
      for (const fileName of Object.keys(FORBIDDEN)) {
        if (!written.includes(fileName)) complaints.push(`the build did not make ${fileName}`);
      }
      if (gzipBytes > LIMIT_GZIP_BYTES) {
        complaints.push(`the bundle is ${String(gzipBytes)} bytes gzipped, more than ${String(LIMIT_GZIP_BYTES)}`);
      }
      if (complaints.length > 0) {
        // Nothing may pick up a build that was refused.
        rmSync(dir, { recursive: true });
        this.error(complaints.join("; "));
      }
      this.info(`app.js and app.css together: ${(gzipBytes / 1000).toFixed(1)} kB gzipped`);
    },
  };
}
