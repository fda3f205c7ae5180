/** `npm run client`: writes `src/written` anew after a change of openapi.json. */
import { readFileSync, writeFileSync } from 'node:fs';
import { emit } from './emit.ts';

const document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'));
for (const [name, text] of Object.entries(emit(document)))
  writeFileSync(new URL(`../src/written/${name}.ts`, import.meta.url), text);
