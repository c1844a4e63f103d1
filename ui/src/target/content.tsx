import type { ComponentChildren } from "preact";
import type { Target } from "../model-serve.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { addressOf } from "../router.ts";
import { Facts } from "../sections/facts.tsx";
import { Part } from "../trial/part.tsx";
import { adviceOf, columnsOf, shown, type AdviceItem } from "./shape.ts";

function Changed({ changed }: { changed: Target["changed"] }) {
  if (changed === null) return <p class="quiet">It is not known from here: “pgdyno status” tells it on the target itself.</p>;
  if (changed.length === 0) return <p class="quiet">Nothing: everything that pgdyno has set was put back.</p>;
  const columns = columnsOf(changed);
  return (
    <>
      <DataTable class="cards" captionHidden caption="What is changed now" headings={columns}>
        {changed.map((entry, row) => (
          <tr role="row" key={row}>
            {columns.map((column, place) => {
              const text = shown(typeof entry === "object" && entry !== null ? (entry as Record<string, unknown>)[column] : entry);
              return place === 0 ? <th key={column} scope="row" role="rowheader"><code>{text}</code></th> : <Cell key={column} label={column}>{text}</Cell>;
            })}
          </tr>
        ))}
      </DataTable>
      <p class="copy-line">
        Everything goes back with <code>pgdyno restore</code> <CopyButton text="pgdyno restore" what="Restore command" />
      </p>
    </>
  );
}

function Item({ item }: { item: AdviceItem }) {
  return (
    <li class={`advice advice-${item.severity ?? "none"}`}>
      <p class="advice-head">
        <strong>{item.title}</strong>
        {item.severity === null ? null : <span class="risk">{item.severity}</span>}
      </p>
      {item.recommended === null ? null : (
        <p>
          {item.now === null ? null : <><code>{item.now}</code> <span class="arrow" aria-label="to">→</span> </>}
          <code>{item.recommended}</code>
        </p>
      )}
      {item.why === null ? null : <p class="lede">{item.why}</p>}
      {item.commands.map((command) => (
        <p key={command} class="copy-line">
          <code>{command}</code> <CopyButton text={command} what={`Command for ${item.title}`} />
        </p>
      ))}
    </li>
  );
}

function Advice({ advice }: { advice: unknown }): ComponentChildren {
  const items = adviceOf(advice);
  if (items === null) return <p class="quiet">None is stored. “pgdyno advise” gives it for a target that can be reached.</p>;
  if (items.length === 0) return <p class="quiet">Nothing to change was found.</p>;
  return (
    <ol class="advice-list">
      {items.map((item, row) => (
        <Item key={row} item={item} />
      ))}
    </ol>
  );
}

export function TargetContent({ target }: { target: Target }) {
  return (
    <>
      <Part id="changed" title="What is changed now">
        <Changed changed={target.changed} />
      </Part>
      <Part id="advice" title="Advice">
        <Advice advice={target.advice} />
      </Part>
      <Part id="experiments" title="Experiments on it">
        <ul class="target-list">
          {target.experiments.toSorted((a, b) => b - a).map((id) => (
            <li key={id}>
              <a href={addressOf.experiment("serve", id)}>experiment {id}</a>
            </li>
          ))}
        </ul>
      </Part>
      <Facts facts={target.facts ?? []} />
    </>
  );
}
