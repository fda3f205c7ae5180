import { anyState, type Box } from './read.ts';
import { textOf } from './words.ts';

/**
 * A chart as a Mermaid state diagram, for places that draw those, with every guard and action. Mermaid draws no line
 * from a state to one inside it and has no good place for words of a state that holds others: both go to a box of
 * their own, "any state".
 */
export function mermaidText(root: Box): string {
  return `${['stateDiagram-v2', ...insideOf(root, '  ')].join('\n')}\n`;
}

function insideOf(box: Box, indent: string): string[] {
  const lines = [`${indent}[*] --> ${nameOf(box.initial!)}`];
  const any = nameOf(`${box.path}.any`);
  if (box.rows.length > 0 || box.arrows.some(({ from }) => from === anyState)) {
    lines.push(...stateLines('any state', any, box, indent));
  }
  for (const child of box.children) {
    const name = nameOf(child.path);
    if (child.children.length === 0) lines.push(...stateLines(child.name, name, child, indent));
    else {
      lines.push(
        `${indent}state "${child.name}" as ${name} {`,
        ...insideOf(child, `${indent}  `),
        `${indent}}`,
      );
    }
  }
  for (const { from, to, notes } of box.arrows) {
    const words = notes.map((note) => plain(textOf(note))).join('<br/>');
    lines.push(`${indent}${from === anyState ? any : nameOf(from)} --> ${nameOf(to)} : ${words}`);
  }
  return lines;
}

function stateLines(title: string, name: string, { rows }: Box, indent: string): string[] {
  const words = rows.map((note) => `${indent}${name} : ${plain(textOf(note))}`);
  return [`${indent}state "${title}" as ${name}`, ...words];
}

/** Paths as names: Mermaid takes letters, digits and underscores. */
function nameOf(path: string): string {
  return path.replaceAll('.', '_');
}

/** Colons and semicolons end a label, and hash marks begin a character code. */
function plain(text: string): string {
  return text.replace(/[:;#]/g, ' ');
}
