import { useMemo, useState } from "preact/hooks";
import { plural } from "../format/number.ts";
import { LAYER_TITLE, searched, type Choice } from "./panels.ts";

interface Props {
  all: readonly Choice[];
  chosen: readonly string[];
  onToggle: (id: string) => void;
  onReset: () => void;
}

/** Which series are drawn: a search over everything that was recorded, by layer. */
export function Chooser({ all, chosen, onToggle, onReset }: Props) {
  const [words, setWords] = useState("");
  const found = useMemo(() => searched(all, words), [all, words]);
  const amount = found.reduce((sum, { choices }) => sum + choices.length, 0);
  return (
    <details class="chooser" data-print="folded">
      <summary class="button">Choose series · {chosen.length} of {all.length} drawn</summary>
      <div class="chooser-body">
        <div class="chooser-search">
          <input type="search" aria-label="Search series" placeholder="Search, as “wal” or “cpu steal”" value={words} onInput={(event) => { setWords(event.currentTarget.value); }} />
          <button type="button" class="button" onClick={onReset}>
            The first choice again
          </button>
          <span class="quiet" role="status">{words === "" ? "" : plural(amount, "series found", "series found")}</span>
        </div>
        <div class="chooser-layers">
          {found.map(({ layer, choices }) => (
            <fieldset key={layer} class="picker chooser-layer">
              <legend>{LAYER_TITLE[layer]}</legend>
              {choices.map(({ id, title, name }) => (
                <label key={id} title={name}>
                  <input type="checkbox" checked={chosen.includes(id)} onChange={() => { onToggle(id); }} />
                  <span>{title}</span>
                </label>
              ))}
            </fieldset>
          ))}
        </div>
      </div>
    </details>
  );
}
