import type { ComponentChildren } from "preact";

interface Props {
  caption: string;
  /** Text headings in order; the first column holds the row's name. */
  headings: readonly ComponentChildren[];
  children: ComponentChildren;
  class?: string;
  captionHidden?: boolean;
}

/** A table that scrolls inside its own frame; the frame takes the keyboard, so that it scrolls
 * without a mouse. */
export function DataTable({ caption, headings, children, class: className = "", captionHidden = false }: Props) {
  return (
    <div class={`table-frame ${className}`} role="region" aria-label={caption} tabIndex={0}>
      <table role="table">
        <caption class={captionHidden ? "visually-hidden" : undefined}>{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {headings.map((heading, column) => (
              <th key={column} scope="col" role="columnheader">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">{children}</tbody>
      </table>
    </div>
  );
}

/** A cell that carries its heading along, for the narrow layout where rows become cards. Roles
 * keep it a table there. */
export function Cell({ label, number = false, children }: { label: string; number?: boolean; children: ComponentChildren }) {
  return (
    <td role="cell" data-label={label} class={number ? "number" : undefined}>
      {children}
    </td>
  );
}
